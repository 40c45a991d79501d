"""What a measure is: named quantities of a trained arm, taken where the lab has every set that is needed; the list of all."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuewise.studies.labs import Lab, Sets
from cuewise.studies.trained import Trained

Quantities = dict[str, float]


@dataclass(frozen=True)
class Measure:
    """`needs`: roles of the lab's sets; a role that ends in / stands for all that begin so, one that ends in ? may be missing."""

    name: str
    needs: tuple[str, ...]
    version: int
    take: Callable[[Trained, Lab], Quantities]

    def sets(self, lab: Lab) -> Sets | None:
        """The sets it would use, or None where the lab lacks one that it cannot do without."""
        found: dict[str, Sequence[str]] = {}
        for need in self.needs:
            name = need.removesuffix("?")
            own = {
                r: s for r, s in lab.sets.items() if r == name or (name.endswith("/") and r.startswith(name))
            }
            if not own and name == need:
                return None
            found |= own
        return found

    def protocol(self, lab: Lab) -> str:
        """A hash of everything that the numbers depend on beside the arm."""
        content = {"name": self.name, "version": self.version, "sets": self.sets(lab)}
        if self.name == "similarity":
            content["pairs"] = {"patch": lab.patch, "views": lab.base.get("views"), "size": lab.base["size"]}
        text = json.dumps(content, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


_MEASURES: dict[str, Measure] = {}


def measure(name: str, *needs: str, version: int = 1) -> Callable[..., Callable[[Trained, Lab], Quantities]]:
    """Decorator: list the function as measure `name`."""

    def add(take: Callable[[Trained, Lab], Quantities]) -> Callable[[Trained, Lab], Quantities]:
        _MEASURES[name] = Measure(name, needs, version, take)
        return take

    return add


def applicable(names: tuple[str, ...], lab: Lab) -> list[Measure]:
    """Those of the named measures for which the lab has the data."""
    return [m for n in names if (m := find_measure(n)).sets(lab) is not None]


def find_measure(name: str) -> Measure:
    """By its name."""
    for room in ("cue_measures", "factor_measures"):
        importlib.import_module(f"cuewise.studies.{room}")
    return _MEASURES[name]
