"""What a learner is shown: views whose sampled parameters are plain objects that can be copied."""

from __future__ import annotations

from cuewise.views.operations import apply, center
from cuewise.views.params import Crop, Jitter, ViewParams
from cuewise.views.preview import contact_sheet
from cuewise.views.recipes import RECIPES, Recipe
from cuewise.views.transform import PatchNegative, View, Views, ViewsParams

__all__ = [
    "RECIPES",
    "Crop",
    "Jitter",
    "PatchNegative",
    "Recipe",
    "View",
    "ViewParams",
    "Views",
    "ViewsParams",
    "apply",
    "center",
    "contact_sheet",
]
