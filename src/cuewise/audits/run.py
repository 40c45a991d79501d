"""cuewise audit: every question put to every model, one document per model, one report for all."""

from __future__ import annotations

import hashlib
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from cuewise.audits import LIMIT, plan, sets
from cuewise.audits.audit import AUDITS, Audit, Finding, choose
from cuewise.audits.coverage import coverages, stated_once, uncovered
from cuewise.audits.engine import Engine
from cuewise.audits.figures import table
from cuewise.audits.keys import data_key
from cuewise.audits.names import folder_names, short_names, unique_names
from cuewise.audits.parquet import write_tables
from cuewise.audits.prompt_spread import asked_with_prompts
from cuewise.audits.ray_engine import RayEngine
from cuewise.audits.saved import Saved
from cuewise.audits.subject import Subject
from cuewise.audits.subjects import AuditRequest, load_seeded, prepare, read_settings, wants_head
from cuewise.data import Dataset
from cuewise.data.class_names import listed
from cuewise.data.overlap import content
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
    size: int | None,
    seed: int,
    device: str,
    names: list[str] | None,
    limit: int,
    answers: str,
    class_map: str | None,
    prompts: str | None,
    options: Mapping[str, str | None],
    workers: int | None,
    engine: str,
    address: str | None,
    unfinished: bool = False,
    started: Callable[[], None] = lambda: None,
) -> list[tuple[Path, dict[str, Any]]]:
    """Audit each model; writes audit.json into `out` (one model) or into one folder per model below it.

    options: of single audits, as typed: {"human": "decisions.csv"}
    unfinished: keep what an interrupted audit resumes from, for the caller to clear once the report is written
    started: called once there is something to resume from
    """
    if not models:
        raise UserError(
            "no MODEL given: name a run folder, torchvision/NAME, timm/NAME or encoder.safetensors"
        )
    questions = choose(only)
    settings = read_settings(limit, class_map, options, questions, prompts)
    typed = {
        "size": size,
        "seed": seed or None,
        "answers": answers,
        "class-map": class_map,
        "prompts": prompts,
    }
    typed |= options
    request = AuditRequest(train, test, answers, seed, settings, _words(typed, limit, only), questions)
    saved = Saved(out, started)
    runner = make_engine(engine, address, saved, workers)
    sets.forget()
    try:
        subjects = prepare_all(models, names, out, size, device, questions, request, runner)
        saved.begin()
        return _ask_all(subjects, questions, request, saved, runner, unfinished)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; give the same command again to resume") from None
    finally:
        runner.close()
        sets.forget()


def audit_pair(models: Sequence[str], out: Path, **options: Any) -> list[tuple[Path, dict[str, Any]]]:
    """Two models for the report of another command: on this machine, each at its own size."""
    here: dict[str, Any] = {"device": "auto", "workers": None, "engine": "local", "address": None}
    own: dict[str, Any] = {"size": None, "seed": 0, "class_map": None, "prompts": None, "options": {}}
    return audit_models(models, out, **here, **own, **options)


def prepare_all(
    models: Sequence[str | nn.Module],
    names: Sequence[str] | None,
    out: Path,
    size: int | None,
    device: str,
    questions: Sequence[Audit],
    request: AuditRequest,
    engine: Engine,
) -> list[tuple[str, Subject]]:
    """Every model that can be asked, with its sets; one that cannot is left out before any work is done, with the reason."""
    specs = [m if isinstance(m, str) else type(m).__name__ for m in models]
    called = unique_names(names or short_names(specs), specs)
    folders = [out] if len(models) == 1 else [out / f for f in folder_names(called)]
    subjects, reasons = [], {}
    for given, model, name, folder in zip(models, specs, called, folders):
        encoder = load_seeded(given, size, wants_head(request), request.seed).to(as_torch_device(device))
        try:
            subject = prepare(model, name, encoder, folder, request, engine)
            check_answerable(subject, questions)
            subjects.append((model, subject))
        except UserError as error:
            reasons[name] = str(error)
    if not subjects:
        same = {*reasons.values()}  # of one model, or of a mistyped set: no name of a model before it
        raise UserError(same.pop() if len(same) == 1 else "; ".join(f"{n}: {w}" for n, w in reasons.items()))
    lines = [f"{name} left out: {why}" for name, why in reasons.items()]
    lines += [f"test set {name}: {role}" for name, role in subjects[0][1].roles]
    lines += [f"WARNING: --test {name}: {shared}" for name, shared in subjects[0][1].overlaps.items()]
    lines += [
        f"WARNING: {line}" for line in stated_once([(s.name, uncovered(s, questions)) for _, s in subjects])
    ]
    for line in lines:
        print(line, file=sys.stderr, flush=True)
    return subjects


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
    request: AuditRequest,
    saved: Saved,
    engine: Engine,
    unfinished: bool,
) -> list[tuple[Path, dict[str, Any]]]:
    """Passes for what is not yet known, then the questions, then the documents."""
    todo = [(s, [q for q in questions if _known(s, q, saved) is None]) for _, s in subjects]
    plan.run_passes(todo, engine)
    for line in stated_once([(s.name, unreadable(s)) for _, s in subjects]):
        print(f"WARNING: {line}", file=sys.stderr, flush=True)
    documents, failed = [], []
    for model, subject in subjects:
        found, left = ask(subject, questions, saved)
        if not any(f.scores or f.tables or f.galleries for f in found.values()):
            reasons = "; ".join(f"{name}: {why}" for name, why in left.items())
            failed.append(f"nothing could be measured for {subject.name}. {reasons}")
            continue
        document = describe(subject, model, questions, found, left, request)
        subject.folder.mkdir(parents=True, exist_ok=True)
        write_json(subject.folder / "audit.json", document, indent=1)
        write_tables(document, subject.folder)
        documents.append((subject.folder, document))
    if not documents:
        raise UserError(" ".join(failed))
    for why in failed:
        print(f"left out: {why}", file=sys.stderr, flush=True)
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
                known = asked_with_prompts(question, subject)
            except UserError as error:
                left[question.name] = str(error)
                loud = "WARNING: " if len(questions) < len(AUDITS.all()) else ""  # asked for by name
                print(f"{loud}{subject.name}: {question.name} left out: {error}", file=sys.stderr, flush=True)
                continue
            known.skipped = {name: [[*pair] for pair in lost] for name, lost in undecoded(subject).items()}
            saved.keep(subject.name, question.name, _question_key(subject, question), known)
        found[question.name] = known
        for part, why in known.left.items():
            what = part if part.startswith(f"{question.name}/") else f"{question.name}: {part}"
            left[what] = why
            print(f"{subject.name}: {what} left out ({why})", file=sys.stderr, flush=True)
        for text in (*known.warnings, *(f"{score}: {why}" for score, why in known.withheld.items())):
            print(f"WARNING: {subject.name}: {text}", file=sys.stderr, flush=True)
    return found, left


def undecoded(subject: Subject) -> dict[str, list[tuple[str, str]]]:
    """The files of each set ("" is the training set) that the passes could not decode: path and why."""
    seen, cut = subject.model.seen, subject.cut
    sets = [("", subject.train)] if subject.answers_by == "probe" else []
    out = {}
    for name, data in [*sets, *subject.asked]:
        found = seen.get(data_key(data))
        if found is None and cut is not None and cut.whole is data and subject.base is not None:
            found = seen.get(data_key(subject.base[1]))  # only its changed images were looked at
        if found is not None and found.skipped:
            out[name] = found.skipped
    return out


def unreadable(subject: Subject) -> list[str]:
    """The same in lines for the terminal."""
    sizes = {"": len(subject.train), **{name: len(data) for name, data in subject.asked}}
    return [
        f"{name or 'the training images'}: {len(lost)} of {sizes[name]} images cannot be decoded and are left out "
        f"({listed([path for path, _ in lost])})"
        for name, lost in undecoded(subject).items()
    ]


def _question_key(subject: Subject, question: Audit) -> str:
    from cuewise import __version__

    data = [*subject.test, *subject.conflicts, *(pair for given in subject.given.values() for pair in given)]
    parts = [__version__, question.name, subject.key, *(data_key(d) for _, d in data)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _known(subject: Subject, question: Audit, saved: Saved) -> Finding | None:
    content = saved.finding(subject.name, question.name, _question_key(subject, question))
    if content is None:
        return None
    plain = [{k: math.nan if v is None else v for k, v in s.items()} for s in content["scores"]]
    scores = [Score(**{**s, "draws": tuple(s.get("draws") or ())}) for s in plain]  # type: ignore[arg-type]
    return Finding(scores, **{k: v for k, v in content.items() if k != "scores"})


def finish(out: Path) -> None:
    """The report is written: nothing is left to resume."""
    Saved(out).clear()


def comparison(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Scores side by side where several models were audited."""
    if len(documents) < 2:
        return {}
    values = [
        {s["name"]: s["value"] for s in d["scores"] if {"name", "value"} <= s.keys()} for d in documents
    ]
    names = list(dict.fromkeys(name for v in values for name in v))
    columns = ["score", *(d["model"]["name"] for d in documents)]
    found = {"columns": columns, "rows": [[n, *(v.get(n) for v in values)] for n in names]}
    counts = [{s["name"]: s["n"] for s in d["scores"] if {"name", "n"} <= s.keys()} for d in documents]
    return {
        "comparison": {**found, "n": [[c.get(n) for c in counts] for n in names]} if any(counts) else found
    }


def describe(
    subject: Subject,
    model: str,
    questions: Sequence[Audit],
    found: dict[str, Finding],
    left: dict[str, str],
    request: AuditRequest,
) -> dict[str, Any]:
    """audit.json."""
    from cuewise import __version__

    encoder = subject.encoder
    words = ["cuewise", "audit", model, "--out", str(subject.folder), *request.words]
    words += ["--train", *request.train] if request.train else []
    words += ["--test", *request.test] if request.test else []
    whole = Finding()
    for each in found.values():
        whole.join(each)
    if left:
        rows = [list(pair) for pair in left.items()]
        whole.tables["not_measured"] = table("Not measured, and why", ["audit", "why"], rows)
    judged = [*subject.test, *subject.conflicts, *subject.given.get("corrupted", [])]
    roles = dict(subject.roles)
    own = subject.answers_by == "probe"
    return {
        "cuewise": __version__,
        "model": {
            "name": subject.name,
            "spec": model,
            **encoder.card.as_dict(),
            "parameters": parameters(encoder),
            "run": str(subject.run) if subject.run else None,
            "answers": _answers(subject),
        },
        "scores": [s.as_dict() for s in whole.scores],
        "draws": {s.name: list(s.draws) for s in whole.scores if s.draws},
        "tables": whole.tables,
        "figures": whole.figures,
        "galleries": whole.galleries,
        "chance": whole.chance,
        "notes": whole.notes,
        "warnings": [
            *(f"--test {name}: {shared}" for name, shared in subject.overlaps.items() if own),
            *uncovered(subject, questions),
            *whole.warnings,
        ],
        "withheld": whole.withheld,
        "audits": {q.name: q.as_dict() for q in questions if q.name in found},
        "data": {
            "train": _recorded(subject.train, whole.skipped.get("", [])) if own else None,
            "overlap": {name: shared.as_dict() for name, shared in subject.overlaps.items()},
            "test": [
                {"name": n, "role": roles.get(n, "embedded"), **_recorded(d, whole.skipped.get(n, []))}
                for n, d in judged
            ],
        },
        "environment": environment(),
        "command": shlex.join(words),
    }


def _recorded(data: Dataset, undecoded: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The names of a set's images, and what some of them hold; those that could not be decoded do not count."""
    known = data.fingerprint()
    skipped = [*known["skipped"], *({"path": path, "why": why} for path, why in undecoded)]
    return {**known, "count": len(data) - len(undecoded), "skipped": skipped, "content": content(data)}


def _words(options: Mapping[str, Any], limit: int, only: list[str]) -> tuple[str, ...]:
    given = [(f"--{k.replace('_', '-')}", str(v)) for k, v in options.items() if v not in (None, "auto")]
    given += [("--limit", str(limit))] if limit != LIMIT else []
    given += [("--only", ",".join(only))] if only else []
    return tuple(word for pair in given for word in pair)


def check_answerable(subject: Subject, questions: Sequence[Audit]) -> None:
    """An error where no question can be asked of this model, before any work is done."""
    if any(not q.needs_answers for q in questions):
        return
    if subject.answers_by == "nothing" and subject.encoder.head is not None:
        raise UserError(
            "no labelled test set and no cue-conflict images: give --test with one folder per class"
        )
    if subject.answers_by == "nothing":
        raise UserError("no labelled images to fit a probe on: give --train with one folder per class")
    if subject.embedded:
        return
    found = coverages(subject)
    if found and all(one.nothing for one in found.values()):
        raise UserError("; ".join(f"{name} {one.nothing}" for name, one in found.items()))


def _answers(subject: Subject) -> str | None:
    """Who answers, in words."""
    own = "texts (zero-shot)" if subject.by_text else "its own classifier"
    return {"probe": "a linear probe", "head": own}.get(subject.answers_by)
