"""The mean corruption error: errors under corruption relative to those of a reference model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise import scores
from cuewise.cues.corruptions import CORRUPTIONS, SEVERITIES
from cuewise.errors import UserError
from cuewise.scores import Score

# Mean error over severities on ImageNet-C (1000 classes, 224 pixels), by name: lists in another order are in circulation.
ALEXNET: dict[str, float] = {
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}


def read_reference(file: Path) -> dict[str, float]:
    """corruption → mean error over severities, from a JSON file; anything that mCE cannot be computed with is refused."""
    form = '{"gaussian_noise": 0.73, …}: the mean error over five severities, or [0.6, 0.7, …], one for each'
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"--reference-errors {file} cannot be read ({error}); give {form}") from None
    if not isinstance(content, dict):
        raise UserError(f"--reference-errors {file} cannot be read (no names of corruptions); give {form}")
    strange = [name for name in content if name not in CORRUPTIONS]
    missing = [name for name in ALEXNET if name not in content]
    if strange or missing:
        what = (
            f"no corruption is called {', '.join(strange)}" if strange else f"it has no {', '.join(missing)}"
        )
        raise UserError(f"--reference-errors {file}: {what}; mCE needs each of: {', '.join(ALEXNET)}")
    return {name: _mean_error(value, name, file) for name, value in content.items()}


def _mean_error(value: Any, name: str, file: Path) -> float:
    """One number, or one for each severity."""
    values = value if isinstance(value, list) else [value]
    if len(values) not in (1, len(SEVERITIES)) or (isinstance(value, list) and len(values) == 1):
        raise UserError(
            f"--reference-errors {file}: {name} has {len(values)} severities, not {len(SEVERITIES)}; "
            "mCE is taken over all of them"
        )
    if not all(type(v) in (int, float) and 0 <= v <= 1 for v in values) or not sum(values) > 0:
        raise UserError(
            f"--reference-errors {file}: {name} is {value!r}, not an error between 0 and 1 (a share)"
        )
    return float(sum(values) / len(values))


def mce(
    right: NDArray[np.float64], names: Sequence[str], reference: Mapping[str, float], protocol: str
) -> Score:
    """100 · mean over corruptions of Σ_s E / Σ_s E_reference; right: N×C×S of 0 and 1, interval over images.

    D. Hendrycks, T. Dietterich, ICLR 2019. reference: corruption → mean error over severities.
    """
    missing = [n for n in names if n not in reference]
    wrong = [n for n in names if not 0 < reference.get(n, 1.0) <= 1]
    if missing or wrong:
        what = (
            f"no {missing[0]}" if missing else f"{wrong[0]} = {reference[wrong[0]]:g}, not an error in (0, 1]"
        )
        raise UserError(f"--reference-errors has {what}; give one for each of: {', '.join(names)}")
    good = right[~np.isnan(right).any((1, 2))]
    error = 1 - good.mean(2)  # N×C
    weights = np.array([1 / reference[n] for n in names])
    found = scores.mean("corruption/mce", 100 * (error * weights).mean(1), protocol)
    return replace(found, low=max(0.0, found.low))
