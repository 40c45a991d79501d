"""A cue operator as a transform of torchvision.transforms.v2."""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image as Pillow
from torchvision import tv_tensors
from torchvision.transforms import v2

from cuewise.cues.cue import Cue
from cuewise.cues.registry import CUES
from cuewise.errors import UserError


class CueTransform(v2.Transform):  # type: ignore[misc]  # torchvision has no types
    """A cue operator on tensors, `tv_tensors.Image` and PIL images, alone or inside `v2.Compose`.

    What goes in comes out in the same form: uint8 or float in [0, 1], so it belongs before `v2.Normalize`. Boxes, masks,
    key points and everything else pass unchanged; an operator that moves content refuses them, since they would no longer
    fit. What is random is drawn from torch's global generator, as in torchvision's own transforms: `torch.manual_seed`
    repeats it, and workers of a DataLoader draw differently. Images of one call share the seed, those of one batch
    N×C×H×W are drawn one after the other.
    """

    kind: ClassVar[type[Cue]]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.cue = self.kind().having(**options)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        found = next((x for x in flat_inputs if self.cue.moves and _is_place(x)), None)
        if found is not None:
            raise UserError(
                f"{self.cue.name} moves what an image shows, and {type(found).__name__} would no longer fit; give the image alone"
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"seed": int(torch.randint(0, 2**63 - 1, ()))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        rng = np.random.default_rng(params["seed"])
        if isinstance(inpt, tv_tensors.Image | tv_tensors.Video):
            return tv_tensors.wrap(self.cue(inpt.as_subclass(torch.Tensor), rng), like=inpt)
        if isinstance(inpt, Pillow.Image):
            return self.cue(inpt, rng)
        if type(inpt) is torch.Tensor:
            return self.cue(inpt, rng)
        return inpt  # what is known of the image, not the image

    def extra_repr(self) -> str:
        usual = type(self.cue)().settings
        return ", ".join(f"{k}={v!r}" for k, v in self.cue.settings.items() if v != usual[k])


def _is_place(value: object) -> bool:
    return isinstance(value, tv_tensors.TVTensor) and not isinstance(
        value, tv_tensors.Image | tv_tensors.Video
    )


def class_name(name: str) -> str:
    """ "anisotropic" → "Anisotropic"."""
    return "".join(part.capitalize() for part in re.split(r"[-_+.]", name))


def transform_class(kind: type[Cue]) -> type[CueTransform]:
    """The transform of a cue operator, with the operator's options."""
    name = class_name(kind.name)
    words = f"{kind.summary[0].upper()}{kind.summary[1:]}; see `CueTransform` and docs/cues.md."
    made = type(name, (CueTransform,), {"kind": kind, "__doc__": words, "__module__": "cuewise.transforms"})
    options = inspect.signature(kind).parameters.values()
    made.__signature__ = inspect.Signature([p.replace(kind=p.KEYWORD_ONLY) for p in options])  # type: ignore[attr-defined]
    return made


def transform_of(name: str, **options: Any) -> CueTransform:
    """The transform of any cue operator, also of `package.module:Name`."""
    return transform_class(CUES.get(name))(**options)
