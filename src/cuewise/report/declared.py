"""What audits declare about themselves, for the page: kinds of scores, questions, topics and their order.

Audits of cuewise and of installed packages are asked directly; for any other, audit.json carries the declaration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from cuewise.audits.audit import AUDITS, Headline
from cuewise.audits.kinds import Kind, read_kind
from cuewise.report.markup import clean
from cuewise.report.reading import mapping, sequence

LAST = 1000  # rank of a topic that nothing declares


@dataclass(frozen=True)
class AuditDeclaration:
    """One audit as it declares itself."""

    question: str
    topic: str
    rank: int
    kinds: tuple[Kind, ...]
    headline: Headline | None = None


_FROM_DOCUMENTS: ContextVar[Mapping[str, AuditDeclaration] | None] = ContextVar("declared", default=None)


@cache
def installed() -> dict[str, AuditDeclaration]:
    """The audits that can be imported here, by rank."""
    found = {
        name: AuditDeclaration(a.question, a.topic or name, a.rank, a.kinds, a.headline)
        for name, a in AUDITS.all().items()
    }
    return dict(sorted(found.items(), key=lambda pair: pair[1].rank))


def declared() -> Mapping[str, AuditDeclaration]:
    """All audits that are known while a page is written."""
    return _FROM_DOCUMENTS.get() or installed()


@contextmanager
def with_documents(documents: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """Also know the audits that these documents describe and that are not installed here."""
    found = dict(installed())
    for document in documents:
        for name, content in mapping(mapping(document).get("audits")).items():
            found.setdefault(clean(name), _read(mapping(content), clean(name)))
    token = _FROM_DOCUMENTS.set(dict(sorted(found.items(), key=lambda pair: pair[1].rank)))
    try:
        yield
    finally:
        _FROM_DOCUMENTS.reset(token)


def _read(content: Mapping[str, Any], name: str) -> AuditDeclaration:
    kinds = tuple(k for k in map(read_kind, map(mapping, sequence(content.get("kinds")))) if k is not None)
    rank = content.get("rank")
    return AuditDeclaration(
        clean(content.get("question") or ""),
        clean(content.get("topic") or name),
        rank if isinstance(rank, int) else LAST,
        kinds,
    )


def kind_of(name: str) -> Kind:
    """The kind of a score; one that no audit declares is a plain number under its own name."""
    found = (k for audit in declared().values() for k in audit.kinds if k.matches(name))
    return next(found, None) or Kind(name, words(name), "", unit="number")


def is_declared(name: str) -> bool:
    """Whether an audit declares scores of this name."""
    return any(k.matches(name) for audit in declared().values() for k in audit.kinds)


def title_of(name: str) -> str:
    """A score's name in words; a name from elsewhere that is not plain words stays unchanged."""
    return kind_of(name).title_of(name) if is_declared(name) else words(name)


def words(name: str) -> str:
    """`my_score/of_this` as `My score · of this`."""
    out = " · ".join(part.replace("_", " ") for part in clean(name).split("/") if part) or "unnamed"
    return out[0].upper() + out[1:]


def leading() -> str:
    """The score that a comparison begins with."""
    return next((k.pattern for audit in declared().values() for k in audit.kinds if k.leads), "")


def topic_of(name: str) -> str:
    """The topic of a figure, gallery or table, which is named after its audit up to the first slash."""
    first = clean(name).partition("/")[0]
    found = declared().get(first)
    return found.topic if found else first


def question_of(topic: str) -> str:
    """The question of the first audit of a topic."""
    return next((a.question for a in declared().values() if a.topic == topic), "")


def rank_of(topic: str) -> int:
    """Where a topic comes on the page."""
    return min((a.rank for a in declared().values() if a.topic == topic), default=LAST)
