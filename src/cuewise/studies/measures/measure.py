"""What a measure is: named quantities of a trained arm, taken where the lab has every set that it needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuewise.data.overlap import identity
from cuewise.registry import Registry, instances_of
from cuewise.studies.labs import Lab, Sets
from cuewise.studies.measures.arm import Quantities as Quantities
from cuewise.studies.measures.arm import TrainedArm

Take = Callable[[TrainedArm], Quantities]
Settings = Callable[[Lab], Mapping[str, Any]]


@dataclass(frozen=True)
class Measure:
    """`needs`: roles of the lab's sets. A role that ends in / stands for all that begin with it; one that ends in ? is optional.

    version: raise it when the numbers change, so that they are taken again.
    settings: what of the lab the numbers depend on beside its sets, by name, as JSON can hold it.
    """

    name: str
    summary: str
    needs: tuple[str, ...]
    take: Take
    version: int = 1
    settings: Settings | None = None

    def sets(self, lab: Lab) -> Sets | None:
        """The sets it would use, or None where the lab lacks one that it needs."""
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
        sets = self.sets(lab) or {}
        content: dict[str, Any] = {"name": self.name, "version": self.version, "sets": self.sets(lab)}
        if images := identity(tuple(spec for specs in sets.values() for spec in specs)):
            content["images"] = images
        if self.settings is not None:
            content |= self.settings(lab)
        text = json.dumps(content, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def measure(
    name: str, summary: str, *needs: str, version: int = 1, settings: Settings | None = None
) -> Callable[[Take], Measure]:
    """Decorator: the function becomes the measure `name`."""
    return lambda take: Measure(name, summary, needs, take, version, settings)


MEASURES: Registry[Measure] = Registry("measure", "cuewise.studies.measures", instances_of(Measure))


def find_measure(name: str) -> Measure:
    """By its name, or by package.module:Name."""
    return MEASURES.get(name)


def applicable(names: Sequence[str], lab: Lab) -> list[str]:
    """Those of the named measures for which the lab has the data."""
    return [n for n in names if find_measure(n).sets(lab) is not None]
