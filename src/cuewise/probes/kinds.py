"""What a kind of probe is: a name, its options as fields, and how it runs; one class per kind, found by being there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from cuewise.options import checked
from cuewise.probes.task import Task
from cuewise.registry import Registry, subclasses_of
from cuewise.scores import Score


@dataclass(frozen=True)
class ProbeKind(ABC):
    """A kind of `cuewise probe`. Fields with a help text are its options; `estimator` is what learns in it."""

    name: ClassVar[str]
    summary: ClassVar[str]
    estimator: ClassVar[type[Any]]

    @abstractmethod
    def run(self, task: Task) -> list[Score]:
        """Fit on the training set and score each test set by itself."""


PROBES = Registry[type[ProbeKind]]("probe", "cuewise.probes", subclasses_of(ProbeKind))


def make_kind(name: str, options: dict[str, Any]) -> ProbeKind:
    """The kind of that name with the options that were given; one that it does not take is an error."""
    kind = PROBES.get(name)
    return kind(**checked(kind, options, f"the probe {kind.name}"))
