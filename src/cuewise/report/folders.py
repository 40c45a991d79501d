"""Audit and run folders in, one report out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuewise.audits.run import audit_models, short_names
from cuewise.errors import UserError
from cuewise.folders import claim_folder
from cuewise.report.card import card_of_run
from cuewise.report.page import write_report
from cuewise.train.log import read_metrics

Found = tuple[Path, dict[str, Any]]  # the folder of an audit and its document


def report_audits(found: Sequence[Found], out: Path, title: str | None = None) -> dict[str, Any]:
    """report.html over one or more audits, with the training curves and first views of those that are runs."""
    documents = [d for _, d in found]
    names = [d["model"]["name"] for d in documents]
    runs = {n: Path(d["model"]["run"]) for n, d in zip(names, documents) if d["model"].get("run")}
    curves = {n: read_metrics(r / "metrics.jsonl") for n, r in runs.items() if (r / "metrics.jsonl").exists()}
    pictures = {f"First views: {n}": r / "views.png" for n, r in runs.items() if (r / "views.png").exists()}
    for name, run in runs.items():
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


def compare_folders(folders: Sequence[Path], out: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """cuewise compare: audits as they are; runs are audited on the embedded shapes first."""
    if len(folders) < 2:
        raise UserError("compare needs two or more run or audit folders")
    for folder in folders:
        if not (folder / "audit.json").is_file() and not (folder / "encoder.safetensors").is_file():
            raise UserError(
                f"{folder} is neither an audit (audit.json) nor a finished run (encoder.safetensors)"
            )
    with claim_folder(out, "comparison", overwrite=overwrite, reads=folders):
        found: list[Found] = []
        for folder, name in zip(folders, short_names([str(f) for f in folders])):
            if (folder / "audit.json").is_file():
                found.append((folder, _read(folder / "audit.json")))
            else:
                place = out / "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
                found += audit_models([str(folder)], place, train=[], test=[], only=[], names=[name])
        names = [d["model"]["name"] for _, d in found]
        if len(set(names)) < len(names):  # two audits of models of the same name: call them by their folders
            for (_, document), name in zip(found, short_names([str(f) for f in folders])):
                document["model"]["name"] = name
        return report_audits(found, out)


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(content["scores"], list) or not isinstance(content["model"], Mapping):
            raise KeyError
    except (json.JSONDecodeError, KeyError, UnicodeDecodeError) as error:
        raise UserError(f"{file} is not an audit of cuewise: run `cuewise audit` again") from error
    return dict(content)
