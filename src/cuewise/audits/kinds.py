"""What a score is: how it is called, written, explained and judged; declared by the audit that measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

UNITS = ("share", "cosine", "nats", "bits", "number")


@dataclass(frozen=True)
class Reference:
    """A published value of a score; it holds only where the protocol contains the phrase `where`."""

    who: str
    value: float
    where: str


@dataclass(frozen=True)
class Kind:
    """The scores whose names match `pattern` (with * as in file names).

    title     in words; {} is what stands for the *
    meaning   one sentence: the glossary, and what is shown when the pointer rests on a name
    unit      share (0 to 1, written in per cent), cosine, nats, bits, number
    card      place among the score cards, from the front; 0: in the table only
    chance    what guessing gives, where that is the same everywhere; an audit gives others with its scores
    accuracy  a share of right answers: the headline may name it
    leads     the number that a comparison of models begins with
    reading   how to read the number where guessing has no value, e.g. "0 is perfect"
    better    "high" or "low" where one end is better, else ""
    panel     "TITLE: AXIS" of the figure over a dial in which the score is a line; "": in none
    zoo       axis in the scatter of many models: "images" or "textures" for accuracy on them; "": neither
    """

    pattern: str
    title: str
    meaning: str
    unit: str = "share"
    card: int = 0
    chance: float | None = None
    accuracy: bool = False
    leads: bool = False
    reading: str = ""
    better: str = ""
    panel: str = ""
    zoo: str = ""
    references: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"{self.pattern}: no unit {self.unit!r}")

    def matches(self, name: str) -> bool:
        return fnmatchcase(name, self.pattern)

    def title_of(self, name: str) -> str:
        """The score's name in words."""
        return self.title.replace("{}", self.part_of(name))

    def part_of(self, name: str) -> str:
        """What stands for the *."""
        head, star, tail = self.pattern.partition("*")
        return name[len(head) : len(name) - len(tail)] if star else ""

    def as_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = {k: v for k, v in vars(self).items() if k != "references"}
        return plain | {"references": [vars(r) for r in self.references]}


# a share of right answers that the headline may name
accuracy_kind = partial(Kind, accuracy=True, better="high")


def read_kind(content: Mapping[str, Any]) -> Kind | None:
    """A kind from audit.json; None where it is not one."""
    texts = {k: content.get(k) for k in ("pattern", "title", "meaning", "unit", "reading", "better")}
    figures = {k: v for k in ("panel", "zoo") if isinstance(v := content.get(k), str)}
    if not all(isinstance(v, str) for v in texts.values()) or texts["unit"] not in UNITS:
        return None
    card, chance = content.get("card"), content.get("chance")
    listed = content.get("references")
    found = [r for r in (listed if isinstance(listed, list) else ()) if isinstance(r, Mapping)]
    references = tuple(
        Reference(str(r.get("who")), float(r["value"]), str(r.get("where")))
        for r in found
        if isinstance(r.get("value"), int | float)
    )
    return Kind(
        **texts,  # type: ignore[arg-type]
        **figures,
        card=card if isinstance(card, int) else 0,
        chance=float(chance) if isinstance(chance, int | float) else None,
        accuracy=content.get("accuracy") is True,
        leads=content.get("leads") is True,
        references=references,
    )


@dataclass(frozen=True)
class AuditOption:
    """An option of `cuewise audit` that one audit reads; `read` makes its value of what was typed, or raises UserError.

    The audit finds the value under `subject.option(name)`; None where it was not given.
    """

    name: str
    help: str
    read: Callable[[str], Any] = str
