"""cuewise audit: every question put to every model, one document a model, one report for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cuewise.audits.audit import Finding, Subject, choose
from cuewise.audits.decisions import parse_stimulus
from cuewise.data import Dataset, open_data
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.load import as_torch_device, parameters
from cuewise.errors import UserError
from cuewise.train.checkpoint import write_text_atomically
from cuewise.train.environment import environment


def audit_models(
    models: list[str],
    out: Path,
    *,
    train: list[str],
    test: list[str],
    only: list[str],
    size: int | None = None,
    seed: int = 0,
    device: str = "auto",
    names: list[str] | None = None,
) -> list[tuple[Path, dict[str, Any]]]:
    """Audit each model; writes audit.json into `out` (one model) or into a folder a model below it."""
    if not models:
        raise UserError(
            "no MODEL given: name a run folder, torchvision/NAME, timm/NAME or encoder.safetensors"
        )
    questions = choose(only)
    documents = []
    for model, name in zip(models, names or short_names(models)):
        folder = out if len(models) == 1 else out / _folder_name(name)
        folder.mkdir(parents=True, exist_ok=True)
        encoder = load_encoder(model, size=size).to(as_torch_device(device))
        subject = prepare(model, name, encoder, folder, train, test, seed)
        found = {q.name: q.ask(subject) for q in questions}
        document = describe(subject, model, found, train, test)
        write_text_atomically(
            json.dumps(document, indent=1, ensure_ascii=False) + "\n", folder / "audit.json"
        )
        documents.append((folder, document))
    return documents


def prepare(
    model: str, name: str, encoder: Encoder, folder: Path, train: list[str], test: list[str], seed: int
) -> Subject:
    """The data of an audit: the user's, or the embedded shapes where there is none."""
    side = encoder.card.size
    embedded = not train
    specs = train or [f"shapes:aligned?rho=1&n=3200&part=train&size={side}"]
    data = open_data(specs)
    if data.labels is None:
        raise UserError(f"--train {' '.join(specs)} has no labels: put the images into one folder a class")
    tests = [(t, open_data(t)) for t in test]
    if embedded and not test:
        tests = [("shapes", open_data(f"shapes:aligned?rho=1&n=1200&part=test&size={side}"))]
    conflict = next(((n, d) for n, d in tests if is_conflict(d)), None)
    if embedded and conflict is None:
        conflict = ("shapes:conflict", open_data(f"shapes:conflict?n=1600&part=test&size={side}"))
    tests = [t for t in tests if t is not conflict]
    run = Path(model) if Path(model).is_dir() else None
    return Subject(name, encoder, data, tests, conflict, folder, run, seed, embedded)


def is_conflict(data: Dataset) -> bool:
    """Whether a set's file names tell shape and texture (cat7-elephant1.png) of its own classes."""
    names = [parse_stimulus(data.name(i)) for i in range(0, len(data), max(1, len(data) // 50))]
    known = set(data.classes)
    return bool(known) and all(n is not None and n[0] in known and n[1] in known for n in names)


def describe(
    subject: Subject, model: str, found: dict[str, Finding], train: list[str], test: list[str]
) -> dict[str, Any]:
    """audit.json."""
    from cuewise import __version__

    encoder = subject.encoder
    words = ["cuewise audit", model, f"--out {subject.folder}"]
    words += [f"--train {' '.join(train)}"] if train else []
    words += [f"--test {' '.join(test)}"] if test else []
    return {
        "cuewise": __version__,
        "model": {
            "name": subject.name,
            "spec": model,
            **encoder.card.as_dict(),
            "parameters": parameters(encoder),
            "run": str(subject.run) if subject.run else None,
        },
        "scores": [s.as_dict() for f in found.values() for s in f.scores],
        "tables": {k: v for f in found.values() for k, v in f.tables.items()},
        "figures": {k: v for f in found.values() for k, v in f.figures.items()},
        "galleries": {k: v for f in found.values() for k, v in f.galleries.items()},
        "data": {
            "train": subject.train.fingerprint(),
            "test": [
                d.fingerprint() for _, d in [*subject.test, *([subject.conflict] if subject.conflict else [])]
            ],
        },
        "environment": environment(),
        "command": " ".join(words),
    }


def short_names(models: list[str]) -> list[str]:
    """The last part of each, or all of it where two would be the same."""
    short = [m.rstrip("/").rpartition("/")[2] for m in models]
    return short if len(set(short)) == len(short) else list(models)


def _folder_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip(".-") or "model"
