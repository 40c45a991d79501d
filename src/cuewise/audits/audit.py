"""What an audit is: a question put to a model, answered in scores, tables, figures and pictures.

One file per audit; the file declares everything that the report and the shell say about it:

    @audit(
        "sketch",
        "accuracy on sketches or edges: given, or drawn from the test images",
        question="How much does the model recognise from lines alone?",
        topic="one_cue",
        rank=24,
        kinds=(Kind("sketch/accuracy", "Sketch accuracy", "accuracy on line drawings", card=9),),
        needs=lambda subject: …,
    )
    def sketch(subject: Subject) -> Finding: …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuewise.audits.change import Change
from cuewise.audits.kinds import AuditOption, Kind
from cuewise.audits.subject import Named, Subject
from cuewise.registry import Registry, instances_of
from cuewise.scores import Score

Headline = Callable[[str, Mapping[str, Score]], str]


@dataclass
class Finding:
    """What one audit found; tables, figures and galleries are in the form of audit.json."""

    scores: list[Score] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    galleries: dict[str, Any] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)  # score → its value when the model guesses
    notes: dict[str, str] = field(default_factory=dict)  # score → what must be read beside it
    withheld: dict[str, str] = field(default_factory=dict)  # score → why no headline may rest on it
    warnings: list[str] = field(default_factory=list)  # on the terminal and on top of the report
    left: dict[str, str] = field(default_factory=dict)  # test set or score that was left out → why
    # test set ("" is the training set) → its files that could not be decoded: path, why; filled in for every audit
    skipped: dict[str, list[list[str]]] = field(default_factory=dict)

    def add(self, *scores: Score, chance: float | None = None) -> None:
        """Scores with their common chance level."""
        self.scores += scores
        if chance is not None:
            self.chance |= {s.name: chance for s in scores}

    def join(self, other: Finding) -> None:
        """Add what was found elsewhere, e.g. on another test set."""
        self.scores += other.scores
        self.warnings += other.warnings
        for name in ("tables", "figures", "galleries", "chance", "notes", "withheld", "left", "skipped"):
            getattr(self, name).update(getattr(other, name))


@dataclass(frozen=True)
class Needs:
    """What an audit will look at: whole sets unchanged, changed copies of the base set, pairs of training images."""

    sets: Sequence[Named] = ()
    changes: Sequence[Change] = ()
    pairs: bool = False


def needs_nothing(subject: Subject) -> Needs:
    return Needs()


@dataclass(frozen=True)
class Audit:
    """A registered audit.

    topic     audits of one topic share a part of the report; its question is that of the lowest rank
    rank      place in the report, from the front
    kinds     the forms that its scores take: name, unit, meaning, chance level, references, place among the cards
    options   options of `cuewise audit` that this audit alone reads
    headline  one sentence about one model, from its name and its scores; "" where there is nothing to say
    citation, equation  where the measure comes from, and what it is, in plain text
    needs_answers  whether it needs a classifier or a probe; others can be asked of any model and any images
    roles     test sets that it reads: ROLE of --test ROLE=DATA → the split of the embedded shapes that is read where they
              are audited, or ""
    needs     what it will ask for, so that all audits and models share one pass
    """

    name: str
    summary: str
    ask: Callable[[Subject], Finding]
    question: str = ""
    topic: str = ""
    rank: int = 100
    kinds: tuple[Kind, ...] = ()
    options: tuple[AuditOption, ...] = ()
    headline: Headline | None = None
    needs: Callable[[Subject], Needs] = needs_nothing
    needs_answers: bool = True
    citation: str = ""
    equation: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, subject: Subject) -> Finding:
        return self.ask(subject)

    def as_dict(self) -> dict[str, Any]:
        """What audit.json keeps of the declaration, for reports that are made without it."""
        kinds = [kind.as_dict() for kind in self.kinds]
        return {
            "question": self.question,
            "topic": self.topic or self.name,
            "rank": self.rank,
            "kinds": kinds,
        }


def audit(
    name: str,
    summary: str,
    *,
    question: str = "",
    topic: str = "",
    rank: int = 100,
    kinds: tuple[Kind, ...] = (),
    options: tuple[AuditOption, ...] = (),
    headline: Headline | None = None,
    needs: Callable[[Subject], Needs] = needs_nothing,
    needs_answers: bool = True,
    citation: str = "",
    equation: str = "",
    roles: Mapping[str, str] | None = None,
) -> Callable[[Callable[[Subject], Finding]], Audit]:
    """Decorator: the function becomes the audit `name`."""

    def make(ask: Callable[[Subject], Finding]) -> Audit:
        return Audit(
            name,
            summary,
            ask,
            question,
            topic,
            rank,
            kinds,
            options,
            headline,
            needs,
            needs_answers,
            citation,
            equation,
            roles or {},
        )

    return make


AUDITS: Registry[Audit] = Registry("audit", "cuewise.audits", instances_of(Audit))


def choose(names: Sequence[str]) -> list[Audit]:
    """The named audits (or package.module:Name), or all of cuewise's own and of installed packages."""
    return [AUDITS.get(name) for name in names] if names else list(AUDITS.all().values())
