"""`cuewise transfer`: every task on every encoder, each cell once, whatever interrupts it."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuewise.audits.names import folder_names, short_names, unique_names
from cuewise.data.overlap import identity
from cuewise.encoders import load_encoder
from cuewise.errors import UserError
from cuewise.files import write_json
from cuewise.folders import hold_folder
from cuewise.probes.run import Draws, measure_once, paired_difference, read_measured
from cuewise.report.transfer import write_transfer_page
from cuewise.suites.suite import HEADLINES, SuiteTask, read_suite
from cuewise.train.environment import environment

Scored = tuple[dict[str, Any], Draws]
FORMAT = 1  # raise when a change of the code makes stored cells stale


@dataclass(frozen=True)
class Cell:
    """One task on one encoder, and its folder."""

    task: SuiteTask
    model: str
    folder: Path


def run_transfer(
    models: Sequence[str],
    out: Path,
    *,
    suite: str,
    names: Sequence[str],
    seed: int,
    device: str,
    overwrite: bool,
) -> dict[str, Any]:
    """The table of all tasks and encoders; a second call with the same --out continues the first."""
    if not models:
        raise UserError("no MODEL given: name one or more encoders")
    if not all(isinstance(m, str) for m in models):
        raise UserError("transfer takes each MODEL by name, so that its finished tasks are found again")
    identity.cache_clear()  # files may have changed since an earlier call in this process
    tasks = read_suite(suite, seed, device)
    called = unique_names(list(names) or short_names(list(models)), list(models))
    # which weights each has, so that a cell is not taken for another's; an unusable MODEL is an error here
    known = [load_encoder(m).card.weights for m in models]
    images = [s for t in tasks for s in (*t.request.train, *t.request.test)]
    with hold_folder(out, "transfer", resume=True, overwrite=overwrite, reads=models, images=images) as held:
        held.started()
        folders = folder_names(called)
        rows = []
        for task in tasks:
            cells = [
                Cell(task, m, out / "cells" / f"{slug(task.name)}-{f}-{key(task, m, k)}")
                for m, f, k in zip(models, folders, known)
            ]
            measured = [run_cell(c, name) for c, name in zip(cells, called)]
            rows += table_rows(task, cells, measured)
            document = {"suite": suite, "models": list(called), "specs": list(models), "weights": known, "seed": seed,
                        "rows": rows, "environment": environment()}  # fmt: skip
            write_json(out / "transfer.json", document)
        page = write_transfer_page(document, out)
        held.finished()
    return {**shown(document), "report": str(page)}


def key(task: SuiteTask, model: str, weights: Any) -> str:
    """A hash of all that the numbers of a cell depend on."""
    images = identity((*task.request.train, *task.request.test))
    content = json.dumps(
        [FORMAT, task.request.as_dict(), model, weights, *images], sort_keys=True, default=str
    )
    return hashlib.sha256(content.encode()).hexdigest()[:10]


def run_cell(cell: Cell, name: str) -> Scored:
    """The stored result, or a new one; a task that this encoder cannot do is reported in the table."""
    if (cell.folder / "result.json").is_file():
        return read_measured(cell.folder)
    print(f"{cell.task.name} · {name}", file=sys.stderr, flush=True)
    try:
        found = measure_once(cell.task.request, cell.model, cell.folder)
    except UserError as error:
        print(f"{cell.task.name} · {name}: {error}", file=sys.stderr, flush=True)
        return {"failed": str(error), "scores": []}, {}
    shutil.rmtree(cell.folder / "checkpoints", ignore_errors=True)  # a detector per cell would fill the disk
    return found


def table_rows(task: SuiteTask, cells: Sequence[Cell], measured: Sequence[Scored]) -> list[dict[str, Any]]:
    """A row per headline score: each encoder's value, and its difference from the first encoder."""
    results, draws = [r for r, _ in measured], [d for _, d in measured]
    names = dict.fromkeys(s["name"] for r in results for s in r["scores"])
    chosen = [n for n in names if n.startswith(HEADLINES)] or list(names)[:1]
    rows: list[dict[str, Any]] = []
    for name in chosen or ["failed"]:
        found = [next((s for s in r["scores"] if s["name"] == name), None) for r in results]
        shots = [pictures(c, r) for c, r in zip(cells, results)] if not rows else []
        rows.append(
            {
                "task": task.name,
                "probe": task.request.kind.name,
                "score": name,
                "values": found,
                "differences": [None, *(apart(found, draws, k) for k in range(1, len(cells)))],
                "seconds": [r.get("seconds") for r in results],
                "failed": [r.get("failed") for r in results],
                "skipped": [len(r.get("skipped", [])) for r in results],
                "overlap": next((r["overlap"] for r in results if r.get("overlap")), []),
                "tests": next((r["tests"] for r in results if "tests" in r), []),
                "pictures": shots,
            }
        )
    return rows


def pictures(cell: Cell, result: dict[str, Any]) -> list[dict[str, Any]]:
    """The pictures of a cell, their files below --out."""
    place = f"{cell.folder.parent.name}/{cell.folder.name}"
    return [{**p, "file": f"{place}/{p['file']}"} for p in result.get("pictures", [])]


def apart(found: Sequence[Any], draws: Sequence[Draws], k: int) -> dict[str, Any] | None:
    """Encoder k minus the first."""
    if found[0] is None or found[k] is None:
        return None
    score = paired_difference(found[k], found[0], draws[k], draws[0])
    return None if score is None else score.as_dict()


def shown(document: dict[str, Any]) -> dict[str, Any]:
    """The table for the terminal, and every value as a score."""
    cells: list[list[Any]] = []
    for r in document["rows"]:
        values = [None if v is None else v["value"] for v in r["values"]]
        name = f"{r['task']}: {r['score'].partition('/')[0]}"
        cells.append([name, *(float("nan") if v is None else v for v in values)])
    scores = [
        {**v, "name": f"{model}: {r['task']}: {v['name']}"}
        for r in document["rows"]
        for model, v in zip(document["models"], r["values"])
        if v is not None
    ]
    return {"scores": scores, "comparison": {"columns": ["task", *document["models"]], "rows": cells}}


def slug(name: str) -> str:
    """A task's name as a part of a folder's."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:40]
