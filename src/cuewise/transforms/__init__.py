"""Every cue operator as a transform of torchvision.transforms.v2, made from the registry of operators.

    v2.Compose([v2.RandomResizedCrop(224), cuewise.transforms.Anisotropic(steps=20), v2.ToDtype(torch.float32, scale=True)])

The stub beside this file, written by `python -m cuewise.stub`, shows editors and type checkers all of them.
"""

from typing import Any

from cuewise.registry import summaries
from cuewise.transforms.transform import CueTransform, class_name, transform_class, transform_of

_NAMES = {class_name(name): name for name in summaries("cues", "cuewise.cues")}
__all__ = ["CueTransform", "transform_of", *_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(
            f"module 'cuewise.transforms' has no attribute {name!r}; it has: {', '.join(_NAMES)}"
        )
    from cuewise.cues.registry import CUES

    found = transform_class(CUES.get(_NAMES[name]))
    globals()[name] = found  # one class, so that pickles find it
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
