"""What a study is: arms to train, quantities to measure, claims to judge, figures to draw; and the list of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from cuewise.errors import UserError
from cuewise.registry import Registry, instances_of
from cuewise.studies.claims import Claim
from cuewise.studies.labs import Lab


@dataclass(frozen=True)
class Arm:
    """One setting: overrides on the lab's common configuration. `x` is its place on the axis of the figure, `y` on the
    other one where the figure is a plane."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""  # the lab's main method unless named
    x: float | None = None
    y: float | None = None


def one_line(lab: Lab) -> dict[str, Sequence[str]]:
    """No groups: all arms are one line."""
    return {}


@dataclass(frozen=True)
class Figure:
    """Lines of quantities over the arms' x (or bars over the arms' names); one line through all arms, or several by `groups`."""

    name: str
    title: str
    xlabel: str
    ylabel: str
    quantities: tuple[str, ...]
    groups: Callable[[Lab], Mapping[str, Sequence[str]]] = one_line  # line → its arms in order
    # "training": a line per arm through QUANTITY/NUMBER; "plane": a cell per arm at its x and y
    over: str = ""


def nothing_wrong(lab: Lab, values: Sequence[Any]) -> str:
    """Any values will do."""
    return ""


@dataclass(frozen=True)
class Sweep:
    """What `--values` of a study replaces: `SIDES = Sweep("sides", int, (16, 32))`, whose study reads `SIDES.values(lab)`.

    parse: one value from its text; a ValueError says why it is none
    usual: without `--values`
    wrong: what is wrong with all of the values in that lab, or nothing
    """

    name: str
    parse: Callable[[str], Any]
    usual: tuple[Any, ...] = ()
    wrong: Callable[[Lab, Sequence[Any]], str] = nothing_wrong

    def values(self, lab: Lab) -> tuple[Any, ...]:
        """Those of the lab, or the usual ones."""
        return tuple(lab.own.get(self.name, self.usual))

    def put(self, lab: Lab, values: Sequence[Any]) -> Lab:
        """The lab with other values."""
        return replace(lab, own={**lab.own, self.name: tuple(values)})


class SweepOfLab(Sweep):
    """Over the constant of the lab that has its name."""

    def values(self, lab: Lab) -> tuple[Any, ...]:
        return tuple(getattr(lab, self.name))

    def put(self, lab: Lab, values: Sequence[Any]) -> Lab:
        constant: dict[str, Any] = {self.name: tuple(values)}
        return replace(lab, **constant)


@dataclass(frozen=True, eq=False)
class Study:
    """One experiment of a paper."""

    name: str
    summary: str
    arms: Callable[[Lab], list[Arm]]
    measures: tuple[str, ...]
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]
    reference: str = ""  # the figure or table it mirrors
    times: int = 1  # so many times the lab's epochs: some effects come late
    sweep: Sweep | None = None  # what `--values` replaces
    tunes: bool = False  # whether it starts from a trained model, `--model`


STUDIES: Registry[Study] = Registry("study", "cuewise.studies", instances_of(Study), "studies")


def studies() -> dict[str, Study]:
    """All studies by name, those of installed packages included."""
    return STUDIES.all()


def choose(names: Sequence[str | Study]) -> list[Study]:
    """The named studies (or package.module:Name, or Study objects), or all."""
    if not names:
        return list(studies().values())
    return [STUDIES.get(n) if isinstance(n, str) else n for n in dict.fromkeys(names)]


def only_arms(chosen: Sequence[Study], lab: Lab, patterns: Sequence[str]) -> list[Study]:
    """The studies with the arms whose names fit a pattern; what needs another arm is then not measured."""
    if not patterns:
        return list(chosen)
    for pattern in patterns:
        names = [a.name for s in chosen for a in s.arms(lab)]
        if not any(fnmatchcase(n, pattern) for n in names):
            raise UserError(
                f"--arms {pattern}: no arm has such a name; there are: {', '.join(dict.fromkeys(names))}"
            )

    def kept(study: Study, lab: Lab) -> list[Arm]:
        return [a for a in study.arms(lab) if any(fnmatchcase(a.name, p) for p in patterns)]

    return [replace(s, arms=partial(kept, s)) for s in chosen if kept(s, lab)]
