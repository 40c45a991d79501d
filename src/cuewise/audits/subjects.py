"""From what the user typed to models with the data they are asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cuewise.audits import sets
from cuewise.audits.answerer import Unasked, numbers
from cuewise.audits.audit import AUDITS, Audit
from cuewise.audits.coverage import coverage
from cuewise.audits.engine import Engine
from cuewise.audits.head import load_model, read_class_map
from cuewise.audits.measured import Measured
from cuewise.audits.subject import AuditSettings, Cut, Subject
from cuewise.audits.zero_shot import read_prompts
from cuewise.data.class_names import alike, listed, same_but_for
from cuewise.encoders import Encoder
from cuewise.encoders.card import warn_if_random
from cuewise.errors import UserError

ANSWERS = ("auto", "head", "probe")


@dataclass(frozen=True)
class AuditRequest:
    """What the user asked, as given."""

    train: list[str]
    test: list[str]
    answers: str
    seed: int
    settings: AuditSettings = field(default_factory=AuditSettings)
    words: tuple[str, ...] = ()  # options for the command that repeats the audit
    asked: Sequence[Audit] = ()  # they may declare further roles of test sets


def read_settings(
    limit: int,
    class_map: str | None,
    given: Mapping[str, str | None] | None = None,
    asked: Sequence[Audit] = (),
    prompts: str | None = None,
) -> AuditSettings:
    """Options that name files are read before any work is done; one that no asked audit reads is refused."""
    if limit < 0:
        raise UserError(f"--limit {limit}: give a number of images, 0 for all")
    own = {option.name: option for audit in asked for option in audit.options}
    options: dict[str, Any] = {}
    for name, typed in (given or {}).items():
        if typed is None:
            continue
        if name not in own:
            owner = next(
                (a.name for a in AUDITS.all().values() if any(o.name == name for o in a.options)), None
            )
            what = f"belongs to the audit {owner}: add it to --only" if owner else "is an option of no audit"
            raise UserError(f"--{name.replace('_', '-')} {what}")
        options[name] = own[name].read(typed)
    mapped = read_class_map(Path(class_map)) if class_map else None
    return AuditSettings(limit, mapped, read_prompts(Path(prompts)) if prompts else (), options)


def wants_head(request: AuditRequest) -> bool | None:
    if request.answers not in ANSWERS:
        raise UserError(f"--answers {request.answers}: {', '.join(ANSWERS)}")
    # with --train a class map is of the probe's classes
    mapped = request.settings.class_map is not None and not request.train
    if request.answers == "head" or (mapped and request.answers == "auto"):
        return True
    return False if request.answers == "probe" else None


def load_seeded(model: str | nn.Module, size: int | None, classifier: bool | None, seed: int) -> Encoder:
    """The model; one without weights gets the same random ones for the same seed, so that an audit can be repeated."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = load_model(model, size=size, classifier=classifier)
    warn_if_random(encoder.card, model if isinstance(model, str) else encoder.card.arch)
    return encoder


def prepare(
    model: str, name: str, encoder: Encoder, folder: Path, request: AuditRequest, engine: Engine
) -> Subject:
    """A model with its data: the user's, or the embedded shapes where there is none."""
    found = sets.open_sets(request.train, request.test, encoder.card.size, request.seed, request.asked)
    overlaps = sets.overlaps(found) if request.train and found.fitted else {}
    fitted = found.fitted and (bool(request.train) or found.embedded)
    answering = encoder.head is not None or encoder.text is not None
    if request.settings.prompts and encoder.text is None:
        raise UserError(
            f"--prompts: {model} knows no texts; leave it out, or give a model of open_clip or a CLIP of hf:"
        )
    head = answering and (wants_head(request) or (not request.train and not found.embedded))
    by = "head" if head else "probe" if fitted else "nothing"
    if request.answers == "head" and not head:
        raise UserError(f"--answers head: {model} has no classifier of its own; give --train for a probe")
    run = next((p for p in (Path(model), Path(model.rpartition("#")[0] or model)) if p.is_dir()), None)
    subject = Subject(
        Measured(name, encoder, run, request.seed, engine),
        found.train,
        found.test,
        found.conflict,
        folder,
        found.embedded,
        given=found.given,
        answers_by=by,
        settings=request.settings,
        roles=found.roles,
        overlaps=overlaps,
    )
    if by == "head":
        _number_by_head(subject)
    elif by == "probe" and request.settings.class_map is not None:
        _check_class_map(subject)
    _choose_base(subject, found)
    return subject


def _number_by_head(subject: Subject) -> None:
    """`train` of a model that answers by itself: the first labelled set whose classes it knows, by its own numbering."""
    for _, data in subject.asked:
        try:
            answerer = subject.answerer(data)
            subject.train = sets.renamed(data, answerer.labels(data), answerer.classes)
            return
        except Unasked:
            continue
    labelled = any(d.classes for _, d in subject.asked)
    if subject.settings.class_map is not None and labelled:
        raise UserError(_unmapped(subject))
    if not labelled:  # otherwise every question that needs answers will say that a map is missing
        subject.answers_by = "nothing"


def _check_class_map(subject: Subject) -> None:
    """A map that gathers training classes is refused where no set has the classes it names."""
    named = set(subject.settings.class_map or ())
    asked = [d for _, d in subject.asked]
    if not any(named & set(d.classes) for d in asked):
        raise UserError(_unmapped(subject))
    for data in asked:
        subject.classes_for(data)  # names that are no training class are refused before any work is done


def _unmapped(subject: Subject) -> str:
    """What --class-map and the test sets call their classes."""
    named = list(subject.settings.class_map or ())
    there = sorted({c for _, d in subject.asked for c in d.classes})
    cause = same_but_for(alike(there, named))
    words = f"--class-map names none of the classes of the test sets: it has {listed(named)}, they have {listed(there)}"
    return f"{words}; {cause}" if cause else words


def _choose_base(subject: Subject, found: sets.Sets) -> None:
    """The first plain labelled set whose classes the model knows, and conflicts made of it where none were given."""
    for name, data in found.plain:
        if subject.answers_by == "nothing":
            return
        try:
            classes = subject.classes_for(data)
        except Unasked as error:
            subject.baseless = subject.baseless or f"{name}: {error}"
            continue
        known = numbers(data.classes, classes)[data.labels] >= 0
        if not known.any():
            subject.baseless = subject.baseless or f"{name} {coverage(subject, data).nothing}"
        else:
            rows = sets.chosen(data, known, subject.settings.limit, subject.seed)
            subject.cut = Cut(data, rows)
            subject.base = (name, data if len(rows) == len(data) else data.select(rows))
            if subject.conflict is None:
                subject.conflict = sets.made_conflict(subject.base, subject.settings.limit, subject.seed)
            return
