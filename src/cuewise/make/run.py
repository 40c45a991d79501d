"""`cuewise make`: from what the user typed to a finished set, and on from wherever an earlier run stopped."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cuewise
from cuewise.cluster import load_ray
from cuewise.data import Dataset, open_data
from cuewise.data.subset import Subset
from cuewise.errors import UserError
from cuewise.make import estimate
from cuewise.make.encode import Format
from cuewise.make.engine import Job
from cuewise.make.grid import read_grid
from cuewise.make.layout import in_shards, mirror
from cuewise.make.makers import Maker, Settings, maker
from cuewise.make.manifest import check_form
from cuewise.make.plan import Plan
from cuewise.make.render import Recipe
from cuewise.make.session import Session, warm_up
from cuewise.make.settings import resolve
from cuewise.make.state import STATE, check_places, plain
from cuewise.make.store import Store

Place = str | os.PathLike[str]
Given = Mapping[str, Any] | Sequence[str] | None


def make_set(
    kind: str,
    src: Place | None,
    dst: Place,
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
    subset: Place | None = None,
    grid: Place | None = None,
    engine: str = "local",
    address: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Make an image set of `kind` from SRC in the folder DST, going on where an earlier run stopped.

    set: settings of the maker. shards: images a tar, instead of a tree of files. limit: only the first images. both:
    originals, too. subset: a file that lists classes, or a shipped list. grid: a YAML list of settings, one subfolder each.
    """
    if engine not in ("local", "ray"):
        raise UserError(f"engine {engine!r}: there are local and ray")
    if address is not None and engine != "ray":
        raise UserError("--address is for --engine ray")
    if engine == "ray":
        load_ray()
    folder, count = Path(dst), worker_count(workers)
    if limit is not None and limit < 1:
        raise UserError(f"limit {limit}: give 1 or more")
    check_form(manifest)
    form = Format.parse(format)

    def one(kind: str, given: Given, folder: Path) -> dict[str, Any]:
        chosen = maker(kind)
        settings = resolve(kind, chosen.settings, given, chosen.numbers)
        dataset = open_source(chosen, settings, seed, src, subset)
        plan = lay_plan(chosen, dataset, settings, seed, form, both)
        plan = in_shards(plan.first(limit), shards) if shards is not None else plan
        check_places(folder, dataset)
        job = Job(Recipe(kind, settings, seed, form, both), plan, Store(folder, plan))
        wanted = len(plan) if limit is None else min(limit, len(plan))
        if dry_run:
            return look_ahead(chosen, job, wanted, count)
        state = describe(job, manifest, shards, limit if shards is not None else None)
        with Session(job, chosen, state, overwrite) as session:
            return session.go(wanted, "ray" if engine == "ray" else count, address)

    if grid is None:
        return one(kind, set, folder)
    if set:
        raise UserError("give settings in the --grid file or with --set, not both")
    if (folder / STATE).exists():
        raise UserError(f"{folder} holds a set of its own; choose another folder for the --grid")
    entries = read_grid(grid, kind)
    return {
        "folder": str(folder),
        "sets": [one(own, settings, folder / name) for name, own, settings in entries],
    }


def open_source(
    chosen: Maker, settings: Settings, seed: int, src: Place | None, subset: Place | None
) -> Dataset:
    """The data set that SRC names, or the maker's own."""
    if src is None and chosen.default_source is None:
        raise UserError(f"make {chosen.name} needs a source: cuewise make {chosen.name} SRC DST")
    if src is None and chosen.default_source is not None:
        src = chosen.default_source(settings, seed)
    dataset = open_data(os.fspath(src or ""))
    return dataset if subset is None else Dataset([Subset(dataset, subset, os.fspath(src or ""))])


def worker_count(workers: str | int) -> int:
    """auto: one for each usable core; 0: none, everything in this process."""
    if workers == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not str(workers).isdigit():
        raise UserError(f"workers {workers!r}: auto or a number")
    return int(workers)


def lay_plan(
    chosen: Maker, dataset: Dataset, settings: Settings, seed: int, form: Format, both: bool
) -> Plan:
    """Which files there will be."""
    if both and not chosen.takes_both:
        raise UserError(f"make {chosen.name}: --both is for kinds that filter images one by one")
    if chosen.lay is not None:
        return chosen.lay(dataset, settings, seed, form.ending)
    return mirror(dataset, form.ending, both=chosen.name if both else "")


def describe(job: Job, manifest: str, shards: int | None, limit: int | None) -> dict[str, Any]:
    """make.json: all that the images and the manifest depend on."""
    recipe, fingerprint = job.recipe, job.plan.dataset.fingerprint()
    state = {
        "cuewise": cuewise.__version__,
        "kind": recipe.kind,
        "settings": recipe.settings,
        "seed": recipe.seed,
        "format": str(recipe.format),
        "both": recipe.both,
        "shards": shards,
        "limit": limit,  # of shards only: a tree can be extended
        "manifest": manifest,
        "source": {"count": fingerprint["count"], "hash": fingerprint["hash"]},
    }
    return plain(state)


def look_ahead(chosen: Maker, job: Job, wanted: int, workers: int) -> dict[str, Any]:
    """--dry-run."""
    warm_up(chosen, job.recipe)
    result = estimate.estimate(job, wanted, workers)
    estimate.say(result)
    return result
