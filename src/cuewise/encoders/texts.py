"""Models that know images and texts in one space: what a class is called is its classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Texts:
    """The text side of a model.

    encode  texts → N×D, in the space of the image features
    scale   what cosines are multiplied by before the softmax
    """

    encode: Callable[[Sequence[str]], Tensor]
    scale: float


class TextHead(nn.Module):
    """Logits of image features B×D: scale · cosine to the text of each class, C×D."""

    def __init__(self, texts: Tensor, scale: float) -> None:
        super().__init__()
        self.register_buffer("texts", F.normalize(texts.float(), dim=1))
        self.register_parameter("scale", nn.Parameter(torch.tensor(float(scale)), requires_grad=False))

    def forward(self, features: Tensor) -> Tensor:
        return self.scale * F.normalize(features.float(), dim=1) @ self.texts.T  # type: ignore[no-any-return, operator]
