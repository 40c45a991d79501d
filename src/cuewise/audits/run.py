"""cuewise audit: every question put to every model, one document a model, one report for all."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from cuewise.audits import plan, sets
from cuewise.audits.audit import Audit, Finding, choose
from cuewise.audits.engine import Engine
from cuewise.audits.keys import data_key
from cuewise.audits.ray_engine import RayEngine
from cuewise.audits.saved import Saved
from cuewise.audits.subject import Settings, Subject
from cuewise.audits.subjects import Request, load_seeded, prepare, read_settings, wants_head
from cuewise.encoders.load import as_torch_device, parameters
from cuewise.errors import Interrupted, UserError
from cuewise.files import write_json
from cuewise.scores import Score
from cuewise.train.environment import environment


def audit_models(
    models: Sequence[str | nn.Module],
    out: Path,
    *,
    train: list[str],
    test: list[str],
    only: list[str],
    size: int | None = None,
    seed: int = 0,
    device: str = "auto",
    names: list[str] | None = None,
    limit: int = Settings.limit,
    answers: str = "auto",
    class_map: str | None = None,
    options: Mapping[str, str | None] | None = None,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    unfinished: bool = False,
    started: Callable[[], None] = lambda: None,
) -> list[tuple[Path, dict[str, Any]]]:
    """Audit each model; writes audit.json into `out` (one model) or into one folder per model below it.

    options: of single audits, as typed: {"human": "decisions.csv"}
    unfinished: keep what an interrupted audit resumes from, for the caller to clear once the report is written
    started: called once every model and set has been opened
    """
    if not models:
        raise UserError(
            "no MODEL given: name a run folder, torchvision/NAME, timm/NAME or encoder.safetensors"
        )
    questions = choose(only)
    settings = read_settings(limit, class_map, options, questions)
    typed = {"answers": answers, "class-map": class_map, **(options or {})}
    request = Request(train, test, answers, seed, settings, _words(typed, limit, only))
    saved = Saved(out)
    runner = make_engine(engine, address, saved, workers)
    sets.forget()
    try:
        subjects = []
        specs = [m if isinstance(m, str) else type(m).__name__ for m in models]
        for given, model, name in zip(models, specs, names or short_names(specs)):
            encoder = load_seeded(given, size, wants_head(request), seed).to(as_torch_device(device))
            folder = out if len(models) == 1 else out / _folder_name(name)
            subjects.append((model, prepare(model, name, encoder, folder, request, runner)))
        started()
        saved.begin()
        return _ask_all(subjects, questions, request, saved, runner, unfinished)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the same command goes on from here") from None
    finally:
        runner.close()
        sets.forget()


def make_engine(engine: str, address: str | None, saved: Saved, workers: int | None) -> Engine:
    """Here, or on a cluster."""
    if engine not in ("local", "ray"):
        raise UserError(f"--engine {engine}: local or ray")
    if engine == "local" and address is not None:
        raise UserError("--address belongs to --engine ray")
    return Engine(saved, workers) if engine == "local" else RayEngine(saved, address)


def _ask_all(
    subjects: Sequence[tuple[str, Subject]],
    questions: Sequence[Audit],
    request: Request,
    saved: Saved,
    engine: Engine,
    unfinished: bool,
) -> list[tuple[Path, dict[str, Any]]]:
    """Passes for what is not yet known, then the questions, then the documents."""
    todo = [(s, [q for q in questions if _known(s, q, saved) is None]) for _, s in subjects]
    plan.run_passes(todo, engine)
    documents = []
    for model, subject in subjects:
        found, left = ask(subject, questions, saved)
        if not any(f.scores or f.tables or f.galleries for f in found.values()):
            reasons = "; ".join(f"{name}: {why}" for name, why in left.items())
            raise UserError(f"nothing could be measured for {subject.name}. {reasons}")
        document = describe(subject, model, questions, found, left, request)
        subject.folder.mkdir(parents=True, exist_ok=True)
        write_json(subject.folder / "audit.json", document, indent=1)
        documents.append((subject.folder, document))
    if not unfinished:
        saved.clear()
    return documents


def ask(
    subject: Subject, questions: Sequence[Audit], saved: Saved
) -> tuple[dict[str, Finding], dict[str, str]]:
    """Findings by audit, and why others could not be asked."""
    found: dict[str, Finding] = {}
    left: dict[str, str] = {}
    for question in questions:
        known = _known(subject, question, saved)
        if known is None:
            try:
                known = question.ask(subject)
            except UserError as error:
                left[question.name] = str(error)
                print(f"{subject.name}: {question.name} left out: {error}", file=sys.stderr, flush=True)
                continue
            saved.keep(subject.name, question.name, _question_key(subject, question), known)
        found[question.name] = known
    return found, left


def _question_key(subject: Subject, question: Audit) -> str:
    from cuewise import __version__

    data = [d for _, d in [*subject.test, *([subject.conflict] if subject.conflict else [])]]
    data += [d for given in subject.given.values() for _, d in given]
    parts = [__version__, question.name, subject.key, *(data_key(d) for d in data)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _known(subject: Subject, question: Audit, saved: Saved) -> Finding | None:
    content = saved.finding(subject.name, question.name, _question_key(subject, question))
    if content is None:
        return None
    plain = [{k: math.nan if v is None else v for k, v in s.items()} for s in content["scores"]]
    scores = [Score(**s) for s in plain]  # type: ignore[arg-type]
    return Finding(scores, **{k: v for k, v in content.items() if k != "scores"})


def finish(out: Path) -> None:
    """The report is written: nothing is left to go on with."""
    Saved(out).clear()


def comparison(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Scores side by side where several models were audited."""
    if len(documents) < 2:
        return {}
    values = [{s["name"]: s["value"] for s in d["scores"]} for d in documents]
    names = list(dict.fromkeys(name for v in values for name in v))
    columns = ["score", *(d["model"]["name"] for d in documents)]
    return {"comparison": {"columns": columns, "rows": [[n, *(v.get(n) for v in values)] for n in names]}}


def describe(
    subject: Subject,
    model: str,
    questions: Sequence[Audit],
    found: dict[str, Finding],
    left: dict[str, str],
    request: Request,
) -> dict[str, Any]:
    """audit.json."""
    from cuewise import __version__

    encoder = subject.encoder
    words = ["cuewise audit", model, f"--out {subject.folder}", *request.words]
    words += [f"--train {' '.join(request.train)}"] if request.train else []
    words += [f"--test {' '.join(request.test)}"] if request.test else []
    tables = {k: v for f in found.values() for k, v in f.tables.items()}
    if left:
        rows = [list(pair) for pair in left.items()]
        tables["not_measured"] = {"title": "Not measured, and why", "columns": ["audit", "why"], "rows": rows}
    asked = [*subject.test, *([subject.conflict] if subject.conflict else [])]
    own = subject.answers_by == "probe"
    return {
        "cuewise": __version__,
        "model": {
            "name": subject.name,
            "spec": model,
            **encoder.card.as_dict(),
            "parameters": parameters(encoder),
            "run": str(subject.run) if subject.run else None,
            "answers": {"probe": "a linear probe", "head": "its own classifier"}.get(subject.answers_by),
        },
        "scores": [s.as_dict() for f in found.values() for s in f.scores],
        "tables": tables,
        "figures": {k: v for f in found.values() for k, v in f.figures.items()},
        "galleries": {k: v for f in found.values() for k, v in f.galleries.items()},
        "chance": {k: v for f in found.values() for k, v in f.chance.items()},
        "notes": {k: v for f in found.values() for k, v in f.notes.items()},
        "withheld": {k: v for f in found.values() for k, v in f.withheld.items()},
        "audits": {q.name: q.as_dict() for q in questions if q.name in found},
        "data": {
            "train": subject.train.fingerprint() if own else None,
            "test": [d.fingerprint() for _, d in asked],
        },
        "environment": environment(),
        "command": " ".join(words),
    }


def _words(options: Mapping[str, str | None], limit: int, only: list[str]) -> tuple[str, ...]:
    given = [f"--{k.replace('_', '-')} {v}" for k, v in options.items() if v not in (None, "auto")]
    given += [f"--limit {limit}"] if limit != Settings.limit else []
    return tuple(given + ([f"--only {','.join(only)}"] if only else []))


def short_names(models: list[str]) -> list[str]:
    """The last part of each, or all of it where two would be the same."""
    short = [m.rstrip("/").rpartition("/")[2] for m in models]
    return short if len(set(short)) == len(short) else list(models)


def _folder_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip(".-") or "model"
