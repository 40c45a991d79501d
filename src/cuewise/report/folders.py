"""Audit and run folders in, one report out."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuewise.audits.names import folder_names, short_names, unique_names
from cuewise.audits.run import audit_models, comparison, finish
from cuewise.audits.saved import unfinished
from cuewise.data import open_data
from cuewise.errors import UserError, nearest
from cuewise.folders import hold_folder, is_embedded
from cuewise.report.card import card_of_run
from cuewise.report.page import incomparable, write_report
from cuewise.train.log import read_metrics
from cuewise.train.reload import read_images

Found = tuple[Path, dict[str, Any]]  # the folder of an audit and its document


def report_audits(
    found: Sequence[Found], out: Path, title: str | None = None, *, cards: bool = True
) -> dict[str, Any]:
    """report.html over one or more audits, with the training curves and first views of those that are runs.

    cards: also write the scores into each run's MODEL_CARD.md; not where a document says where the run is
    """
    documents = [d for _, d in found]
    names = [d["model"]["name"] for d in documents]
    runs = {n: Path(d["model"]["run"]) for n, d in zip(names, documents) if d["model"].get("run")}
    curves = {n: read_metrics(r / "metrics.jsonl") for n, r in runs.items() if (r / "metrics.jsonl").exists()}
    titles = {
        "views.png": "First views",
        "reconstructions.png": "Reconstructions over training",
        "confusion.png": "What images of each class (rows) are labelled as (columns)",
    }
    pictures = {
        f"{title}: {name}": run / file
        for name, run in runs.items()
        for file, title in titles.items()
        if (run / file).exists()
    }
    for name, run in runs.items() if cards else ():
        card_of_run(run, next(d for d in documents if d["model"]["name"] == name)["scores"])
    page = write_report(
        documents, out, title=title, curves=curves, pictures=pictures, roots=[folder for folder, _ in found]
    )
    single = len(documents) == 1
    scores = [
        {**s, "name": s["name"] if single else f"{d['model']['name']}: {s['name']}"}
        for d in documents
        for s in d["scores"]
    ]
    return {"report": str(page), "scores": scores, "models": names}


def audit_into(
    models: Sequence[Any], out: Path, *, overwrite: bool, reads: Sequence[str], **options: Any
) -> dict[str, Any]:
    """cuewise audit: a report in `out` over all models; an interrupted audit resumes.

    reads: models that must not lie in `out`. options: of `audit_models`
    """
    masks = options["options"].get("masks")
    images = [*options["train"], *options["test"], *([masks] if masks else [])]
    resuming = unfinished(out)
    with hold_folder(out, "audit", resume=resuming, overwrite=overwrite, reads=reads, images=images) as held:
        if held.resuming:
            print(f"{out}: resuming an interrupted audit", file=sys.stderr, flush=True)
        found = audit_models(models, out, unfinished=True, started=held.started, **options)
        result = report_audits(found, out)
        held.finished()
        finish(out)
    return {**result, **comparison([document for _, document in found])}


def compare_folders(
    folders: Sequence[Path],
    out: Path,
    *,
    overwrite: bool,
    names: Sequence[str],
    typed: Sequence[str],
    **options: Any,
) -> dict[str, Any]:
    """cuewise compare: audits as they are; runs are audited first. Writes nowhere but below `out`.

    typed: options that were given and are for runs alone. options: of `audit_models`, for the runs
    """
    if len(folders) < 2:
        raise UserError("compare needs two or more run or audit folders")
    runs = [f for f in folders if not (f / "audit.json").is_file()]
    for folder in runs:
        if not folder.exists():
            raise UserError(f"{folder}: there is no such folder; {_meant(folder)}")
        if not (folder / "encoder.safetensors").is_file():
            raise UserError(
                f"{folder} is neither an audit (audit.json) nor a finished run (encoder.safetensors)"
            )
    if typed and not runs:
        raise UserError(
            f"--{typed[0].replace('_', '-')} is for runs that are audited first, but all of these are already audits"
        )
    if twice := next((f for n, f in enumerate(folders) if f in folders[:n]), None):
        raise UserError(f"{twice} is given twice; compare takes each audit or run once")
    audits = {f: _read(f / "audit.json") for f in folders if f not in runs}
    called = unique_names(list(names or short_names([str(f) for f in folders])), [str(f) for f in folders])
    if runs:
        options = _with_data(runs, options)
    images = [*options["train"], *options["test"]]
    with hold_folder(out, "comparison", overwrite=overwrite, reads=folders, images=images):
        if runs:
            audits |= _audit_runs(runs, [called[folders.index(f)] for f in runs], out, options)
        found = [
            (f if f not in runs else Path(audits[f].pop("folder")), audits[f]) for f in folders if f in audits
        ]
        own = [d["model"]["name"] for _, d in found]
        if names or len(set(own)) < len(own):
            for folder, name in zip(folders, called):
                if folder in audits:  # not a model that could not be audited
                    audits[folder]["model"]["name"] = name
        result = report_audits(found, out, cards=False)
    for line in incomparable([document for _, document in found]):
        print(f"WARNING: {line}", file=sys.stderr, flush=True)
    return {**result, **comparison([document for _, document in found])}


def _meant(folder: Path) -> str:
    """The audit or run beside it whose name is nearest, or what would do."""
    beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
    names = [
        f.name for f in beside if any((f / file).is_file() for file in ("audit.json", "encoder.safetensors"))
    ]
    near = nearest(folder.name, names)
    if near:
        return f"did you mean {folder.parent / near}?"
    return "give folders of `cuewise audit` or of runs"


def _with_data(runs: Sequence[Path], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with the sets that were given, the runs' own labelled data, or none: the embedded shapes."""
    chosen = dict(options)
    if not chosen["train"] and not chosen["test"]:
        chosen["train"], chosen["test"] = own_data(runs)
    return chosen


def _audit_runs(
    runs: Sequence[Path], names: Sequence[str], out: Path, options: Mapping[str, Any]
) -> dict[Path, dict[str, Any]]:
    """One audit of all runs, on the sets of the options."""
    fitted, tested = (" ".join(options[k]) or "the embedded shapes" for k in ("train", "test"))
    print(
        f"auditing {len(runs)} runs: probes fitted on {fitted}, tested on {tested}",
        file=sys.stderr,
        flush=True,
    )
    place = out / "audits" if len(runs) > 1 else out / "audits" / folder_names(names)[0]
    here: dict[str, Any] = {"prompts": None, "engine": "local", "address": None}
    found = audit_models([str(r) for r in runs], place, names=list(names), **here, **options)
    by_name = {d["model"]["name"]: {**d, "folder": str(f)} for f, d in found}
    return {run: by_name[name] for run, name in zip(runs, names) if name in by_name}


def own_data(runs: Sequence[Path]) -> tuple[list[str], list[str]]:
    """(train, test) that all runs share and that have labels: their training images, and --val or a held-out part.

    Nothing where they differ, have no labels, or are the embedded shapes, which have test sets of their own.
    """
    images = [read_images(run)[1:] for run in runs]
    data, val = images[0]
    if any(other != images[0] for other in images) or all(is_embedded(d) for d in data):
        return [], []
    if open_data(data).labels is None:
        return [], []
    return list(data), list(val or data)


def _read(file: Path) -> dict[str, Any]:
    """A document whose model and scores are what they should be; anything else is one line."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{file} cannot be read ({error}): run `cuewise audit` again") from None
    again = f"{file} is not an audit of cuewise{{}}: run `cuewise audit` again"
    if not isinstance(content, dict):
        raise UserError(again.format(""))
    scores, model = content.get("scores"), content.get("model")
    if (
        not isinstance(scores, list)
        or not isinstance(model, Mapping)
        or not isinstance(model.get("name"), str)
        or not isinstance(model.get("run"), str | None)
    ):
        raise UserError(again.format(" (it has no model and scores)"))
    for score in scores:
        whole = isinstance(score, Mapping) and isinstance(score.get("name"), str)
        numbers = [score.get(k) for k in ("value", "low", "high", "n")] if whole else ["?"]
        if not all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in numbers):
            name = score["name"] if whole else "a score"
            raise UserError(again.format(f" ({name!r:.60} is not a number)"))
    return content
