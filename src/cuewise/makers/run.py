"""`cuewise make`: from what the user typed to a finished set, and on from wherever an earlier run stopped."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cuewise
from cuewise.cluster import load_ray
from cuewise.data import Dataset, open_data, usable_cores
from cuewise.data.subset import Subset
from cuewise.data.unusable import say_unusable
from cuewise.errors import UserError
from cuewise.makers import estimate
from cuewise.makers.encode import Format
from cuewise.makers.engine import WorkOrder
from cuewise.makers.grid import read_grid
from cuewise.makers.maker import Maker
from cuewise.makers.manifest import check_form
from cuewise.makers.mirror import in_shards
from cuewise.makers.registry import maker
from cuewise.makers.render import SetSpec
from cuewise.makers.session import Session, as_declared, warm_up
from cuewise.makers.settings import resolve
from cuewise.makers.state import STATE, check_places, plain, read_state, refuse_change
from cuewise.makers.store import Store

Place = str | os.PathLike[str]
Given = Mapping[str, Any] | Sequence[str] | None


class NamedSetting(NamedTuple):
    """A setting of the maker `kind` that was given by an option of its own."""

    flag: str
    kind: str
    key: str
    value: str


def make_set(
    kind: str,
    src: Place | None,
    dst: Place,
    *,
    set: Given,
    named: Sequence[NamedSetting],
    format: str,
    shards: int | None,
    manifest: str,
    seed: int,
    workers: str | int,
    limit: int | None,
    dry_run: bool,
    both: bool,
    subset: Place | None,
    grid: Place | None,
    engine: str,
    address: str | None,
    overwrite: bool,
) -> dict[str, Any]:
    """Make an image set of `kind` from SRC in the folder DST, resuming where an earlier run stopped.

    set: settings of the maker. named: those that have an option of their own. shards: images per tar, instead of a tree of
    files. limit: only the first images. both: originals, too. subset: a file that lists classes, or a shipped list.
    grid: a YAML list of settings, one subfolder each.
    """
    if engine not in ("local", "ray"):
        raise UserError(f"engine {engine!r}: there are local and ray")
    ray = engine == "ray"
    if address is not None and not ray:
        raise UserError("--address is for --engine ray")
    if ray:
        load_ray(address)
    count = worker_count(workers)
    if limit is not None and limit < 1:
        raise UserError(f"limit {limit}: give 1 or more")
    check_form(manifest)
    form = Format.parse(format)
    wanted = SetRequest(
        src, named, form, shards, manifest, seed, count, limit, dry_run, both, subset, ray, address, overwrite
    )
    if grid is None:
        return wanted.make(kind, set, Path(dst))
    return make_grid(wanted, kind, set, grid, Path(dst))


@dataclass(frozen=True)
class SetRequest:
    """What was asked for, whatever the kind and its settings; see `make_set`."""

    src: Place | None
    named: Sequence[NamedSetting]
    form: Format
    shards: int | None
    manifest: str
    seed: int
    workers: int
    limit: int | None
    dry_run: bool
    both: bool
    subset: Place | None
    ray: bool  # on a cluster, not by local workers
    address: str | None
    overwrite: bool

    def make(self, kind: str, given: Given, folder: Path) -> dict[str, Any]:
        """One set of one kind."""
        return self.run(*self.plan(kind, given, folder))

    def plan(
        self, kind: str, given: Given, folder: Path, ready: Maker | None = None
    ) -> tuple[Maker, WorkOrder]:
        """The maker, and what it is to make; wrong settings and places are errors. ready: the maker of an earlier plan"""
        chosen = maker(kind)
        settings = resolve(kind, chosen.settings, joined(kind, given, self.named), chosen.numbers)
        chosen = chosen.having(**as_declared(chosen, settings))
        refuse_unused(chosen, self.form, self.shards, self.both)
        if chosen.has_source and self.src is not None:
            raise UserError(f"make {kind} takes no SRC: cuewise make {kind} DST")
        dataset = open_source(chosen, self.seed, self.src, self.subset)
        chosen = chosen.prepared(self.seed) if ready is None else ready
        layout = chosen.lay(dataset, self.seed, self.form.ending, chosen.name if self.both else "")
        layout = in_shards(layout.first(self.limit), self.shards) if self.shards is not None else layout
        check_places(folder, dataset)
        spec = SetSpec(kind, chosen.settings, self.seed, self.form, self.both)
        return chosen, WorkOrder(spec, layout, Store(folder, layout))

    def check(self, kind: str, given: Given, folder: Path) -> Maker:
        """The maker of a set that can be made in that folder; an error for anything that the user has to fix first."""
        chosen, order = self.plan(kind, given, folder)
        warm_up(chosen, self.seed)
        before = read_state(folder)
        if before is not None and not (self.overwrite or self.dry_run):
            refuse_change(folder, before, self.state(chosen, order))
        return chosen

    def state(self, chosen: Maker, order: WorkOrder) -> dict[str, Any]:
        """make.json."""
        first = self.limit if self.shards is not None else None
        return describe(order, self.manifest, self.shards, first, chosen.table)

    def run(self, chosen: Maker, order: WorkOrder) -> dict[str, Any]:
        """What was planned."""
        count = len(order.layout) if self.limit is None else min(self.limit, len(order.layout))
        if self.dry_run:
            warm_up(chosen, self.seed)
            result = estimate.estimate(order, count, self.workers)
            estimate.say(result)
            return result
        with Session(order, chosen, self.state(chosen, order), self.overwrite) as session:
            result = session.go(count, "ray" if self.ray else self.workers, self.address)
        say_unusable(result["broken"])
        return result


def make_grid(wanted: SetRequest, kind: str, given: Given, grid: Place, folder: Path) -> dict[str, Any]:
    """One set in a subfolder for each entry of a YAML list; all of them are checked before the first is made."""
    if given:
        raise UserError("give settings in the --grid file or with --set, not both")
    if (folder / STATE).exists():
        raise UserError(f"{folder} holds a set of its own; choose another folder for the --grid")
    entries = read_grid(grid, kind)
    ready = []
    for number, (name, own, settings) in enumerate(entries, 1):
        try:
            ready.append(wanted.check(own, settings, folder / name))
        except UserError as error:
            raise UserError(f"--grid {grid}, entry {number}: {error}") from None
    # planned again, one at a time: the lists of all sets would fill the memory
    return {
        "folder": str(folder),
        "sets": [
            wanted.run(*wanted.plan(own, settings, folder / name, chosen))
            for (name, own, settings), chosen in zip(entries, ready)
        ],
    }


def joined(kind: str, given: Given, named: Sequence[NamedSetting]) -> Given:
    """--set with the settings that were given by options of their own; one that is given twice is an error."""
    if not named:
        return given
    for one in named:
        if kind != one.kind:
            raise UserError(f"make {kind}: {one.flag} is for `make {one.kind}`")
    pairs = (
        dict(given)
        if isinstance(given, Mapping)
        else {t.partition("=")[0].strip(): t.partition("=")[2].strip() for t in given or ()}
    )
    if twice := [one.key for one in named if one.key in pairs]:
        raise UserError(f"make {kind}: {twice[0]} is given twice, by its option and by --set")
    return {**pairs, **{one.key: one.value for one in named}}


def open_source(chosen: Maker, seed: int, src: Place | None, subset: Place | None) -> Dataset:
    """The data set that SRC names, or the maker's own."""
    spec = chosen.source(seed) if src is None else os.fspath(src)
    dataset = open_data(spec)
    return dataset if subset is None else Dataset([Subset(dataset, subset, spec)])


def worker_count(workers: str | int) -> int:
    """auto: one for each usable core; 0: none, everything in this process."""
    if workers == "auto":
        return usable_cores()
    if not str(workers).isdigit():
        raise UserError(f"workers {workers!r}: auto or a number")
    return int(workers)


def refuse_unused(chosen: Maker, form: Format, shards: int | None, both: bool) -> None:
    """An error for an option that has no meaning for this kind of set."""
    if both and not chosen.takes_both:
        raise UserError(f"make {chosen.name}: --both is for kinds that filter images one by one")
    if chosen.draws_images:
        return
    if shards is not None or form != Format.parse("png"):
        raise UserError(f"make {chosen.name} writes a table and no images: leave out --format and --shards")


def describe(
    order: WorkOrder, manifest: str, shards: int | None, limit: int | None, table: str
) -> dict[str, Any]:
    """make.json: all that the images and the manifest depend on."""
    spec, fingerprint = order.spec, order.layout.dataset.fingerprint()
    state = {
        "cuewise": cuewise.__version__,
        "kind": spec.kind,
        "settings": spec.settings,
        "seed": spec.seed,
        "format": str(spec.format),
        "both": spec.both,
        "shards": shards,
        "limit": limit,  # of shards only: a tree can be extended
        "manifest": manifest,
        "source": {"count": fingerprint["count"], "hash": fingerprint["hash"]},
        **({"table": table} if table else {}),
    }
    return plain(state)
