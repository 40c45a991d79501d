"""The mean corruption error against a loop over images, corruptions and severities, and the bounds of its reference."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuewise.errors import UserError
from cuewise.probes.mce import ALEXNET, mce, read_reference

# Hendrycks & Dietterich 2019, table of AlexNet's errors: the mean over the 15 corruptions, in per cent
PUBLISHED_MEAN = 78.9
NAMES = ("fog", "snow", "frost")
REFERENCE = {"snow": 0.8, "fog": 1.0, "frost": 0.5, "contrast": 0.1}


def loop(right: np.ndarray, names: tuple[str, ...], reference: dict[str, float]) -> list[float]:
    """100 · mean over corruptions of Σ_s E / Σ_s E_reference, one value per image without NaN."""
    out = []
    for image in right:
        if any(math.isnan(v) for row in image for v in row):
            continue
        ratios = [sum(1 - v for v in row) / (len(row) * reference[name]) for row, name in zip(image, names)]
        out.append(100 * sum(ratios) / len(ratios))
    return out


def test_value_and_interval_are_those_of_the_loop() -> None:
    rng = np.random.default_rng(0)
    right = (rng.random((40, 3, 5)) < 0.4).astype(np.float64)
    right[3, 1, 2] = right[17, 0, 0] = np.nan
    wanted = loop(right, NAMES, REFERENCE)
    found = mce(right, NAMES, REFERENCE, "protocol")
    assert len(wanted) == found.n == 38
    m = sum(wanted) / 38
    half = 1.959964 * math.sqrt(sum((w - m) ** 2 for w in wanted) / 37) / math.sqrt(38)
    assert found.value == pytest.approx(m)
    assert (found.low, found.high) == pytest.approx((m - half, m + half))
    assert (found.name, found.protocol) == ("corruption/mce", "protocol")


def test_no_interval_reaches_below_zero() -> None:
    right = np.ones((4, 3, 5))
    right[0, 0, 0] = 0
    wanted = loop(right, NAMES, REFERENCE)
    found = mce(right, NAMES, REFERENCE, "p")
    assert found.value == pytest.approx(sum(wanted) / 4)
    assert found.low == 0.0
    assert found.high > found.value


def test_alexnet_against_itself_is_one_hundred() -> None:
    assert 100 * sum(ALEXNET.values()) / 15 == pytest.approx(PUBLISHED_MEAN, abs=0.1)
    images = 2000
    right = np.ones((images, 15, 5))
    for c, error in enumerate(ALEXNET.values()):
        right[: round(error * images), c] = 0
    assert mce(right, tuple(ALEXNET), ALEXNET, "p").value == pytest.approx(100, abs=0.05)


def test_a_reference_error_is_in_zero_to_one() -> None:
    right = np.zeros((2, 3, 5))
    for value in (0.0, -0.1, 1.01):
        with pytest.raises(UserError, match=r"has fog = .*, not an error in \(0, 1\]"):
            mce(right, NAMES, REFERENCE | {"fog": value}, "p")
    with pytest.raises(UserError, match="has no snow; give one for each of: fog, snow, frost"):
        mce(right, NAMES, {"fog": 0.5, "frost": 0.5}, "p")
    assert mce(right, NAMES, dict.fromkeys(NAMES, 1.0), "p").value == pytest.approx(100)


def read(folder: Path, content: Any) -> dict[str, float]:
    file = folder / "errors.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_reference(file)


def test_a_reference_by_severity_is_their_mean(tmp_path: Path) -> None:
    table: dict[str, Any] = dict.fromkeys(ALEXNET, 0.5) | {
        "fog": [0, 0.2, 0.4, 0.6, 1],
        "snow": 1,
        "frost": 1.0,
    }
    wanted = dict.fromkeys(ALEXNET, 0.5) | {"fog": 2.2 / 5, "snow": 1.0, "frost": 1.0, "saturate": 0.25}
    assert read(tmp_path, table | {"saturate": 0.25}) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"fog": True}, "fog is True, not an error"),
        ({"fog": [0.5, 0.5, 0.5, 0.5, True]}, "not an error"),
        ({"fog": [0, 0, 0, 0, 0]}, "not an error"),
        ({"fog": -0.1}, "not an error"),
        ({"fog": 1.0001}, "not an error"),
        ({"fog": [-0.1, 0.5, 0.5, 0.5, 0.5]}, "not an error"),
        ({"fog": [1.1, 0.5, 0.5, 0.5, 0.5]}, "not an error"),
        ({"fog": None}, "not an error"),
        ({"fog": []}, "fog has 0 severities, not 5"),
        ({"fog": [0.5]}, "fog has 1 severities, not 5"),
        ({"fog": [0.5] * 6}, "fog has 6 severities, not 5"),
        ({"mist": 0.5}, "no corruption is called mist; mCE needs each of: gaussian_noise, "),
    ],
)
def test_other_references_are_refused(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        read(tmp_path, dict.fromkeys(ALEXNET, 0.5) | change)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_reference(tmp_path / "nothing.json")
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path, "{")
    with pytest.raises(UserError, match=r"cannot be read \(no names of corruptions\)"):
        read(tmp_path, [0.5] * 15)
    with pytest.raises(UserError, match="it has no frost, fog; mCE needs each of"):
        read(tmp_path, {n: 0.5 for n in ALEXNET if n not in ("fog", "frost")})
