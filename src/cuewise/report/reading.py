"""Audit documents read leniently: whatever is missing or misshapen becomes empty, so that the page is always written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuewise.encoders.card import describe_weights, is_random
from cuewise.report.markup import clean
from cuewise.scores import Score


@dataclass(frozen=True)
class ReadAudit:
    """One model's audit document; `place` is its position and so its colour, `root` the folder of its pictures."""

    name: str
    place: int
    root: Path
    version: str
    model: Mapping[str, Any]
    scores: tuple[Score, ...]
    tables: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, Mapping[str, Any]]
    galleries: Mapping[str, Mapping[str, Any]]
    data: Mapping[str, Any]
    environment: Mapping[str, Any]
    command: str
    chance: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    withheld: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def weights(self) -> str:
        """Where the weights come from, in words; empty where that is not recorded."""
        found = self.model.get("weights")
        return clean(describe_weights(found)) if isinstance(found, (str, dict)) and found else ""

    @property
    def untrained(self) -> bool:
        """Whether the weights are random."""
        found = self.model.get("weights")
        return isinstance(found, (str, dict)) and is_random(found)

    @property
    def loud(self) -> list[str]:
        """What must be known before any number is read."""
        random = "the weights are random: every number is about an untrained network"
        return [*([random] if self.untrained else []), *self.warnings]

    def score(self, name: str) -> Score | None:
        """The first score of that name."""
        return next((s for s in self.scores if s.name == name), None)


def read_audits(documents: Sequence[Mapping[str, Any]], roots: Sequence[Path]) -> list[ReadAudit]:
    """Documents as `Audit`s; equal model names get a number, since the name is how a reader distinguishes them."""
    audits: list[ReadAudit] = []
    for place, (document, root) in enumerate(zip(documents, roots, strict=True)):
        model = mapping(mapping(document).get("model"))
        base = clean(model.get("name") or f"model {place + 1}").strip() or f"model {place + 1}"
        taken = {a.name for a in audits}
        name, copy = base, 2
        while name in taken:
            name, copy = f"{base} ({copy})", copy + 1
        audits.append(_read(mapping(document), name, place, root, model))
    return audits


def _read(
    document: Mapping[str, Any], name: str, place: int, root: Path, model: Mapping[str, Any]
) -> ReadAudit:
    draws = mapping(document.get("draws"))
    return ReadAudit(
        name=name,
        place=place,
        root=root,
        version=clean(document.get("cuewise") or ""),
        model=model,
        scores=tuple(
            replace(s, draws=tuple(number(v) for v in sequence(draws.get(s.name))))
            for s in map(read_score, sequence(document.get("scores")))
        ),
        tables=_named(document.get("tables")),
        figures=_named(document.get("figures")),
        galleries=_named(document.get("galleries")),
        data=mapping(document.get("data")),
        environment=mapping(document.get("environment")),
        command=clean(document.get("command") or ""),
        chance={
            k: v
            for k, v in ((clean(k), number(v)) for k, v in mapping(document.get("chance")).items())
            if v == v
        },
        notes={clean(k): clean(v) for k, v in mapping(document.get("notes")).items()},
        withheld={clean(k): clean(v) for k, v in mapping(document.get("withheld")).items()},
        warnings=tuple(clean(w) for w in sequence(document.get("warnings"))),
    )


def read_score(value: object) -> Score:
    """A Score or its dictionary; None becomes NaN again."""
    if isinstance(value, Score):
        return value
    d = mapping(value)
    n = number(d.get("n"))
    return Score(
        name=clean(d.get("name") or "unnamed"),
        value=number(d.get("value")),
        low=number(d.get("low")),
        high=number(d.get("high")),
        n=int(n) if n == n and abs(n) < 1e15 else 0,
        protocol=clean(d.get("protocol") or ""),
    )


def number(value: object) -> float:
    """`value` as float; anything that is not a number is NaN."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> list[Any]:
    """`value` as a list; strings and everything that has no order are empty."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else []


def flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings, nested to any depth, as one list of dotted names and values; what is not set is left out."""
    stack: list[tuple[str, Any]] = [(clean(k), v) for k, v in reversed(list(values.items()))]
    while stack:
        key, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [(f"{key}.{clean(k)}", v) for k, v in reversed(list(value.items()))]
        elif isinstance(value, (list, tuple)) or value not in (None, ""):
            yield key, value


def in_line(value: Any) -> str:
    """A setting on one line; of a list the first 20 values."""
    return ", ".join(map(clean, value[:20])) if isinstance(value, (list, tuple)) else clean(value)


def _named(value: object) -> dict[str, Mapping[str, Any]]:
    return {clean(k): v for k, v in mapping(value).items() if isinstance(v, Mapping)}


def merged_names(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys of several mappings in the order in which they are first seen."""
    return list(dict.fromkeys(key for part in parts for key in part))
