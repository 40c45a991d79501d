"""Which cue operators there are: those of the files here, of installed packages, and `package.module:Name`."""

from __future__ import annotations

from typing import Any

from cuewise.cues.cue import Cue
from cuewise.registry import Registry, subclasses_of

CUES = Registry[type[Cue]](kind="cue", package="cuewise.cues", is_member=subclasses_of(Cue))


def cues() -> dict[str, Cue]:
    """All cues by name with their default options, in alphabetical order."""
    return {name: kind() for name, kind in CUES.all().items()}


def cue(name: str, **options: Any) -> Cue:
    """The cue of that name with these options, or an error that lists what there is."""
    return CUES.get(name)().having(**options)
