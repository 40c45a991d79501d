"""The end of a run: manifest and preview, from what the journals say and the files that lie there."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cuewise.data import BrokenImage, Image, decode
from cuewise.files import writing
from cuewise.make.encode import Format
from cuewise.make.engine import Job
from cuewise.make.journal import Records
from cuewise.make.manifest import MANIFESTS, write_rows
from cuewise.make.preview import PAIRS, grid, spread


def finish(job: Job, records: Records, form: str, wanted: int) -> None:
    """Write manifest and preview; the first `wanted` items are made, others perhaps."""
    store = job.store
    with writing(store.folder / MANIFESTS[form]) as file:
        write_rows(file, all_rows(job, records, wanted), form)
    pairs = list(preview_pairs(job, records))
    if pairs:
        with writing(preview_path(job)) as file:
            file.write(Format("png").encode(grid(pairs)))


def all_rows(job: Job, records: Records, wanted: int) -> Iterator[dict[str, Any]]:
    """Rows of all items that are made or broken, then the files that could not even be listed as images."""
    for i in range(len(job.plan)):
        if i in records and (i < wanted or job.store.done(i, records)):
            yield from records.rows(i)
    for skipped in job.plan.dataset.fingerprint()["skipped"]:
        yield {"index": None, "name": None, "source": skipped["path"], "kind": job.recipe.kind,
               "broken": skipped["why"]}  # fmt: skip


def preview_path(job: Job) -> Path:
    """In the folder itself, unless it would be taken there for an image of the set."""
    nested = not job.plan.stems.flat or all("/" in before for before, _ in job.plan.variants)
    return (job.store.folder if nested and not job.plan.shard_size else job.store.hidden) / "preview.png"


def preview_pairs(job: Job, records: Records) -> Iterator[list[Image]]:
    """(original, result) of items spread over the set; of several variants a different one each time."""
    made = [i for i in spread(len(job.plan), 8 * PAIRS) if i in records and job.store.done(i, records)]
    made = [i for i in made if records.rows(i)[0]["name"] is not None]
    for number, k in enumerate(spread(len(made), PAIRS)):
        i = made[k]
        rows = records.rows(i)[1 if job.recipe.both else 0 :]
        try:
            originals = [job.plan.dataset.image(int(s)) for s in job.plan.sources[i]]
            picture = written(job, rows[(number * 7) % len(rows)])
        except (BrokenImage, OSError, KeyError):  # a source may be gone by now
            continue
        yield [*originals, decode(picture, rows[0]["name"])]


def written(job: Job, row: dict[str, Any]) -> bytes:
    """The bytes of a file that was made, from the tree or its tar."""
    if not job.plan.shard_size:
        return (job.store.folder / row["name"]).read_bytes()
    path = job.store.folder / row["shard"]
    with tarfile.open(path, "r:", encoding="utf-8", errors="surrogateescape") as tar:
        file = tar.extractfile(row["name"])
        assert file is not None
        return file.read()
