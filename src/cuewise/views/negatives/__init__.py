"""Kinds of negatives: a new one is one file in this package (or your own, as package.module:Name)."""

from cuewise.registry import Registry, subclasses_of
from cuewise.views.negatives.negative import Negative, Origin, negative_role
from cuewise.views.negatives.patch import PatchNegative
from cuewise.views.negatives.texture import TextureNegative

NEGATIVES = Registry[type[Negative]]("negative", "cuewise.views.negatives", subclasses_of(Negative))

__all__ = ["NEGATIVES", "Negative", "Origin", "PatchNegative", "TextureNegative", "negative_role"]
