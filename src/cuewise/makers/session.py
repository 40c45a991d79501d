"""One run into a folder: what is there already, the rest, and the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from cuewise.data import BrokenImage
from cuewise.errors import Interrupted, UserError
from cuewise.files import write_error
from cuewise.folders import hold_folder
from cuewise.makers import engine, ray_engine
from cuewise.makers.engine import Done, WorkOrder
from cuewise.makers.finish import finish, preview_path
from cuewise.makers.journal import Records
from cuewise.makers.layout import MakerTask
from cuewise.makers.maker import Maker
from cuewise.makers.manifest import MANIFESTS, to_journal
from cuewise.makers.shards import Packer
from cuewise.makers.state import read_state, refuse_change, remove_made, write_state
from cuewise.makers.store import AGAIN
from cuewise.options import alternatives
from cuewise.progress import Progress

LISTED = 20  # broken images named on the terminal


@dataclass
class Tally:
    """What a run has done so far."""

    made: int = 0
    size: int = 0
    broken: dict[int, str] = field(default_factory=dict)

    def add(self, one: Done) -> None:
        """Count one more item."""
        self.size += one.size
        if one.broken is None:
            self.made += 1
        else:
            self.broken[one.index] = one.broken


class Session:
    """Holds the folder for one run; entering refuses a folder that holds something else."""

    def __init__(self, order: WorkOrder, chosen: Maker, state: dict[str, Any], overwrite: bool) -> None:
        self.order, self.chosen, self.state, self.overwrite = order, chosen, state, overwrite
        self.manifest = order.store.folder / MANIFESTS[state["manifest"]]
        self.stack, self.warm = ExitStack(), False

    def __enter__(self) -> Session:
        store = self.order.store
        before = read_state(store.folder)
        if before is None or self.overwrite:  # bad settings end here, before anything is written or removed
            self.warm_up()
        try:
            self.stack.enter_context(hold_folder(store.folder, "set", resume=True))
            if before is not None and not self.overwrite:
                refuse_change(store.folder, before, self.state)
                store.prepare()
            else:
                remove_made(store.folder)
                store.prepare()
                write_state(store.folder, self.state)
        except OSError as error:
            self.stack.close()
            raise write_error(error, store.folder, AGAIN) from error
        except BaseException:
            self.stack.close()
            raise
        return self

    def warm_up(self) -> None:
        """Once for each run; see `warm_up`."""
        if not self.warm:
            warm_up(self.chosen, self.order.spec.seed)
            self.warm = True

    def __exit__(self, *exc: object) -> None:
        self.stack.close()

    def go(self, wanted: int, workers: int | Literal["ray"], address: str | None = None) -> dict[str, Any]:
        """Make what is missing of the first `wanted` items and finish the set."""
        try:
            return self._go(wanted, workers, address)
        except OSError as error:
            raise write_error(error, self.order.store.folder, AGAIN) from error
        except KeyboardInterrupt:
            raise Interrupted(f"stopped; {AGAIN}") from None

    def _go(self, wanted: int, workers: int | Literal["ray"], address: str | None) -> dict[str, Any]:
        store, began = self.order.store, time.monotonic()
        finished = self.manifest.exists()
        if finished:
            to_journal(self.manifest, store.journal(engine.new_name()))
        records = store.records()
        items = [i for i in range(wanted) if not store.done(i, records)]
        packed = _broken(records) if store.layout.shard_size else {}  # tars are not opened again
        packer = Packer(store, items, set(packed))
        records.close()
        if items:
            self.warm_up()
            with suppress(BrokenImage):  # reported when its turn comes
                self.order.layout.piece(items[0])  # generated sources have kernels, too
        start = time.monotonic()
        stream = (
            ray_engine.run(self.order, items, address)
            if workers == "ray"
            else engine.run(self.order, items, workers)
        )
        tally = self._watch(stream, packer, wanted - len(items), wanted)
        rate = tally.made / max(time.monotonic() - start, 1e-9)
        if items or not finished:
            records = store.records()
            _check_any(records, wanted)
            finish(self.order, self.chosen, records, self.state["manifest"], wanted)
            records.close()
        store.tidy()
        return self._result(tally, packed, wanted - len(items), time.monotonic() - began, rate)

    def _watch(self, stream: Generator[Done], packer: Packer, before: int, wanted: int) -> Tally:
        tally = Tally()
        label = f"making {self.order.spec.kind}"
        try:
            with Progress(wanted, "images", label, start=before) as bar:
                for one in stream:
                    packer.done(one.index, one.broken is not None)
                    tally.add(one)
                    bar.add(1)
                    if one.broken is not None:
                        self._say(bar, one, len(tally.broken))
        except KeyboardInterrupt:
            raise Interrupted(f"stopped after {before + tally.made} of {wanted} images; {AGAIN}") from None
        finally:
            stream.close()  # ends the workers now, not when the stream is collected
        return tally

    def _say(self, bar: Progress, one: Done, broken: int) -> None:
        if broken <= LISTED:
            bar.say(f"skipped {self.order.layout.names(one.index)[0]}: {one.broken}")
        elif broken == LISTED + 1:
            bar.say("skipped more; all are in the manifest")

    def _result(
        self, tally: Tally, packed: dict[int, str], skipped: int, seconds: float, rate: float
    ) -> dict[str, Any]:
        order, lost = self.order, {**packed, **tally.broken}
        skipped -= len(packed)
        broken = [{"path": order.layout.names(i)[0], "why": why} for i, why in sorted(lost.items())]
        return {
            "folder": str(order.store.folder),
            "kind": order.spec.kind,
            "images": tally.made + skipped,
            "made": tally.made,
            "skipped": skipped,
            "broken": broken + order.layout.dataset.fingerprint()["skipped"],
            "bytes": tally.size,
            "seconds": round(seconds, 3),
            "rate": round(rate, 3),
            **({"table": str(order.store.folder / self.chosen.table)} if self.chosen.table else {}),
            "manifest": str(self.manifest),
            "preview": str(preview_path(order)),
        }


def _broken(records: Records) -> dict[int, str]:
    """Items that were recorded as broken, and why."""
    rows = ((i, records.rows(i)[0]) for i in np.flatnonzero(records.file >= 0).tolist())
    return {i: str(row.get("broken") or "broken") for i, row in rows if row["name"] is None}


def _check_any(records: Records, wanted: int) -> None:
    """An error where not one image could be made."""
    first = None
    for i in range(wanted):
        if i in records:
            row = records.rows(i)[0]
            if row["name"] is not None:
                return
            first = first or row
    if first is not None:
        raise UserError(
            f"none of the {wanted} images could be made; the first is {first['source']}: {first['broken']}"
        )


def as_declared(chosen: Maker, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the types that the maker declares, or an error that names the first that is not; None stays."""
    hints = get_type_hints(type(chosen.declares))
    return {
        key: _as_declared(f"make {chosen.name}: {key}", alternatives(hints[key]), value)
        if key in hints and value is not None
        else value
        for key, value in settings.items()
    }


def _as_declared(where: str, kinds: tuple[Any, ...], value: Any) -> Any:
    words = []
    for kind in sorted(
        kinds, key=lambda kind: kind is str
    ):  # a number that may be a text, too, stays a number
        if kind in _WORDS:
            found, word = _WORDS[kind][1](value), _WORDS[kind][0]
        elif get_origin(kind) is tuple:
            found, word = _pair_of(get_args(kind), value), "low and high as 10:20"
        else:
            return value  # a choice of words, or a type of its own: the maker checks it
        if found is not None:
            return found
        words.append(word)
    shown = ":".join(map(str, value)) if isinstance(value, tuple) else value
    raise UserError(f"{where}={shown}: must be {', or '.join(words)}")


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


def _number(value: Any) -> Any:
    """A finite number as it is; 1e-1, which YAML reads as text, as one."""
    if isinstance(value, bool) or not isinstance(value, Real | str):
        return None
    try:
        return (value if isinstance(value, Real) else float(value)) if math.isfinite(float(value)) else None
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str | Real | PathLike) and not isinstance(value, bool) else None


def _pair_of(items: tuple[Any, ...], value: Any) -> Any:
    if items not in ((int, int), (float, float)):
        return value if isinstance(value, tuple) else None
    read = _whole if items[0] is int else _number
    if not isinstance(value, tuple):  # one for both, where the maker takes that
        return value if read(value) is not None and not isinstance(value, str) else None
    return value if len(value) == 2 and all(read(v) is not None for v in value) else None


_WORDS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    int: ("a whole number", _whole),
    float: ("a number", _number),
    bool: ("true or false", lambda value: value if isinstance(value, bool) else None),
    str: ("text", _text),
}


def warm_up(chosen: Maker, seed: int) -> None:
    """Make a small picture here: bad settings show before any work, and kernels are compiled once, for all workers."""
    ramp = np.linspace(0, 255, 96, dtype=np.uint8)
    planes = np.broadcast_arrays(ramp[None], ramp[:, None], ramp[::-1][None])
    image = np.ascontiguousarray(np.stack(planes, -1))
    piece = MakerTask(0, ("warm-up",) * chosen.inputs, (image,) * chosen.inputs, ())
    try:
        for _ in chosen.draw(piece, seed):
            pass
    except UserError:
        raise
    except BrokenImage:  # a picture of nothing: the settings are legal, and it has no object
        pass
    except (TypeError, ValueError, KeyError) as error:
        raise UserError(f"make {chosen.name}: invalid settings ({error})") from error
