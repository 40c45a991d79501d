"""Which image sets can be made: one maker for each cue operator, those of the files here, and those from outside."""

from __future__ import annotations

from cuewise.cues.cue import Cue
from cuewise.cues.registry import CUES
from cuewise.errors import unknown
from cuewise.makers.maker import Maker, OfCue
from cuewise.registry import TYPED, Registry, import_typed, subclasses_of

MAKERS = Registry[type[Maker]](
    kind="maker", package="cuewise.makers", is_member=lambda x: subclasses_of(Maker)(x) and x is not OfCue
)


def makers() -> dict[str, Maker]:
    """All makers by name with their default options, in alphabetical order; a file here replaces a cue's own maker."""
    found: dict[str, Maker] = {name: OfCue(kind()) for name, kind in CUES.all().items()}
    found |= {name: kind() for name, kind in MAKERS.all().items()}
    return dict(sorted(found.items()))


def maker(name: str) -> Maker:
    """The maker of that name, or the one that `package.module:Name` imports; a cue operator is accepted, too."""
    if TYPED.fullmatch(name):
        found = import_typed(name, "maker")
        return OfCue(found()) if subclasses_of(Cue)(found) else MAKERS.get(name)()
    known = makers()
    if name not in known:
        raise unknown("cannot make", name, known, "; your own is package.module:Name")
    return known[name]
