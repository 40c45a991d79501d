"""What a learner is shown: views whose sampled parameters are plain objects that can be copied."""

from __future__ import annotations

from cuewise.views.augmentations import (
    Augmentation,
    augmentation,
    augmentations,
    register_augmentation,
)
from cuewise.views.negatives import (
    NEGATIVES,
    Negative,
    PatchNegative,
    TextureNegative,
    negative_kind,
    negative_role,
    negative_settings,
)
from cuewise.views.operations import apply, center
from cuewise.views.params import Crop, Jitter, Suppress, ViewParams
from cuewise.views.partners import made_textures
from cuewise.views.preview import contact_sheet
from cuewise.views.rand_augment import RAND_AUGMENT
from cuewise.views.recipes import RECIPES, Recipe
from cuewise.views.styles import Styles
from cuewise.views.textures import MadeTextures, SynthesisedTextures, Textures
from cuewise.views.transform import View, Views, ViewsParams

__all__ = [
    "NEGATIVES",
    "RAND_AUGMENT",
    "RECIPES",
    "Augmentation",
    "Crop",
    "Jitter",
    "MadeTextures",
    "Negative",
    "PatchNegative",
    "Recipe",
    "Styles",
    "Suppress",
    "SynthesisedTextures",
    "TextureNegative",
    "Textures",
    "View",
    "ViewParams",
    "Views",
    "ViewsParams",
    "apply",
    "augmentation",
    "augmentations",
    "center",
    "contact_sheet",
    "made_textures",
    "negative_kind",
    "negative_role",
    "negative_settings",
    "register_augmentation",
]
