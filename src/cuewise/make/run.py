"""`cuewise make`: from what the user typed to a finished set, and on from wherever an earlier run stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cuewise
from cuewise.data import Dataset, open_data
from cuewise.errors import Interrupted, UserError
from cuewise.make import engine as local
from cuewise.make.encode import Format
from cuewise.make.finish import finish, preview_path
from cuewise.make.journal import Records
from cuewise.make.makers import Maker, maker
from cuewise.make.manifest import MANIFESTS, check_form, to_journal
from cuewise.make.names import distinct_stems, ending
from cuewise.make.plan import Piece, Plan
from cuewise.make.render import Recipe
from cuewise.make.settings import resolve
from cuewise.make.state import check_places, plain, read_state, refuse_change, remove_made, write_state
from cuewise.make.store import Store, locked, mendable
from cuewise.progress import Progress

LISTED = 20  # broken images named on the terminal
Given = Mapping[str, Any] | Sequence[str] | None


def make_set(
    kind: str,
    src: str | os.PathLike[str] | None,
    dst: str | os.PathLike[str],
    *,
    set: Given = None,
    format: str = "png",
    shards: int | None = None,
    manifest: str = "jsonl",
    seed: int = 0,
    workers: str | int = "auto",
    limit: int | None = None,
    dry_run: bool = False,
    both: bool = False,
    subset: str | os.PathLike[str] | None = None,
    grid: str | os.PathLike[str] | None = None,
    engine: str = "local",
    address: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Make an image set of `kind` from SRC in the folder DST, going on where an earlier run stopped."""
    chosen = maker(kind)
    settings = resolve(kind, chosen.settings, set)
    form = Format.parse(format)
    check_form(manifest)
    count = worker_count(workers)
    dataset = open_source(chosen, src)
    plan = lay_plan(chosen, dataset, settings, seed, form, both)
    if shards:
        plan = in_shards(plan.first(limit), shards)
    folder = Path(dst)
    recipe = Recipe(kind, settings, seed, form, both)
    job = local.Job(recipe, plan, Store(folder, plan))
    state = {
        "cuewise": cuewise.__version__,
        "kind": kind,
        "settings": settings,
        "seed": seed,
        "format": str(form),
        "both": both,
        "shards": shards,
        "manifest": manifest,
        **({"limit": limit} if shards else {}),
        "source": {key: dataset.fingerprint()[key] for key in ("count", "hash")},
    }
    check_places(folder, dataset)
    with Run(job, plain(state), overwrite) as run:
        wanted = len(plan) if limit is None else min(limit, len(plan))
        return run.go(wanted, count, chosen)


def open_source(chosen: Maker, src: str | os.PathLike[str] | None) -> Dataset:
    """The data set that SRC names, or the maker's own."""
    source = chosen.default_source if src is None else src
    if source is None:
        raise UserError(f"make {chosen.name} needs a source: cuewise make {chosen.name} SRC DST")
    return open_data(source)


def worker_count(workers: str | int) -> int:
    """auto: one for each usable core; 0: none, everything in this process."""
    if workers == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not str(workers).isdigit():
        raise UserError(f"workers {workers!r}: auto or a number")
    return int(workers)


def lay_plan(
    chosen: Maker, dataset: Dataset, settings: dict[str, Any], seed: int, form: Format, both: bool
) -> Plan:
    """Which files there will be."""
    if both and not chosen.takes_both:
        raise UserError(f"make {chosen.name}: --both is for makers that filter images one by one")
    if chosen.lay is not None:
        return chosen.lay(dataset, settings, seed, form.ending)
    suffix = f".{chosen.name}.{form.ending}" if both else f".{form.ending}"
    own = f".{form.ending}"
    kept = {id(s): len(s) > 0 and s.read(0) is not None for s in dataset.sources} if both else {}
    names = [dataset.name(i) for i in range(len(dataset))]
    ends = [
        (ending(name) if kept[id(dataset.locate(i)[0])] else own) or own for i, name in enumerate(names)
    ] if both else None  # fmt: skip
    end_of = dict(zip(names, ends)) if ends else {}

    def files(stem: str, name: str) -> Iterable[str]:
        return (stem + suffix, stem + end_of[name]) if both else (stem + suffix,)

    facts: dict[str, Sequence[Any]] = {}
    if dataset.labels is not None:
        facts["class"] = [dataset.classes[k] for k in dataset.labels.tolist()]
    sources = np.arange(len(dataset), dtype=np.int64)[:, None]
    return Plan(dataset, sources, distinct_stems(names, files), (("", suffix),), ends, facts)


def in_shards(plan: Plan, shards: int) -> Plan:
    """The plan with `shards` images a tar; what is made of one image stays together."""
    raise NotImplementedError


class Run:
    """One run into a folder: what is there already, the rest, and the end."""

    def __init__(self, job: local.Job, state: dict[str, Any], overwrite: bool) -> None:
        self.job, self.state, self.overwrite = job, state, overwrite
        self.form = state["manifest"]

    def __enter__(self) -> Run:
        store = self.job.store
        before = read_state(store.folder)
        try:
            store.hidden.mkdir(parents=True, exist_ok=True)
            self.lock = locked(store.hidden)
            self.lock.__enter__()
            if before is not None and self.overwrite:
                remove_made(store.folder)
            elif before is not None:
                refuse_change(store.folder, before, self.state)
            store.prepare()
            write_state(store.folder, self.state)
        except OSError as error:
            raise mendable(error, store.folder) from error
        return self

    def __exit__(self, *exc: object) -> None:
        self.lock.__exit__(None, None, None)

    def go(self, wanted: int, workers: int, chosen: Maker) -> dict[str, Any]:
        """Make what is missing of the first `wanted` items and finish the set."""
        job, store, began = self.job, self.job.store, time.monotonic()
        ready = store.folder / MANIFESTS[self.form]
        if ready.exists():
            to_journal(ready, store.journal(local.new_name()))
        records = store.records()
        items = [i for i in range(wanted) if not store.done(i, records)]
        records.close()
        if items:
            warm_up(chosen, job.recipe)
        made = self._make(items, wanted, workers)
        seconds = time.monotonic() - began
        if items or not ready.exists():
            records = store.records()
            self._check_any(records, wanted)
            finish(job, records, self.form, wanted)
            records.close()
        store.tidy()
        return self._result(made, wanted - len(items), seconds)

    def _make(self, items: list[int], wanted: int, workers: int) -> list[local.Done]:
        done, broken = [], 0
        label = f"making {self.job.recipe.kind}"
        try:
            with Progress(wanted, "images", label, start=wanted - len(items)) as bar:
                for one in local.run(self.job, items, workers):
                    bar.add(1)
                    done.append(one)
                    if one.broken is not None:
                        broken += 1
                        self._say(bar, one, broken)
        except KeyboardInterrupt:
            total = wanted - len(items) + len(done)
            raise Interrupted(
                f"stopped after {total} of {wanted} images; run the same command again to go on"
            ) from None
        return done

    def _say(self, bar: Progress, one: local.Done, broken: int) -> None:
        if broken <= LISTED:
            bar.say(f"skipped {self.job.plan.names(one.index)[0]}: {one.broken}")
        elif broken == LISTED + 1:
            bar.say("skipped more; all are in the manifest")

    def _check_any(self, records: Records, wanted: int) -> None:
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

    def _result(self, done: list[local.Done], skipped: int, seconds: float) -> dict[str, Any]:
        job = self.job
        made = sum(one.broken is None for one in done)
        listed = [{"path": s["path"], "why": s["why"]} for s in job.plan.dataset.fingerprint()["skipped"]]
        broken = [
            {"path": job.plan.names(d.index)[0], "why": d.broken}
            for d in sorted(done, key=_index)
            if d.broken
        ]
        return {
            "folder": str(job.store.folder),
            "kind": job.recipe.kind,
            "images": made + skipped,
            "made": made,
            "skipped": skipped,
            "broken": broken + listed,
            "bytes": sum(one.size for one in done),
            "seconds": round(seconds, 3),
            "rate": round(made / seconds, 3) if made and seconds > 0 else 0.0,
            "manifest": str(job.store.folder / MANIFESTS[self.form]),
            "preview": str(preview_path(job)),
        }


def _index(done: local.Done) -> int:
    return done.index


def warm_up(chosen: Maker, recipe: Recipe) -> None:
    """Make a small picture here: bad settings show before any work, and kernels are compiled once, for all workers."""
    ramp = np.linspace(0, 255, 96, dtype=np.uint8)
    image = np.ascontiguousarray(
        np.stack(np.broadcast_arrays(ramp[None], ramp[:, None], ramp[::-1][None]), -1)
    )
    piece = Piece(0, ("warm-up",) * chosen.inputs, (image,) * chosen.inputs, ())
    try:
        for _ in chosen.draw(piece, recipe.settings, recipe.seed):
            pass
    except UserError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise UserError(f"make {recipe.kind}: these settings make no sense to it ({error})") from error


__all__ = ["make_set"]
