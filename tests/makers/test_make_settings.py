"""Settings of the wrong type are refused before anything is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuewise import UserError, make
from cuewise.makers.registry import makers
from cuewise.makers.session import as_declared

Photos = Callable[..., Path]


@pytest.mark.parametrize(
    ("kind", "given", "error"),
    [
        ("anisotropic", "steps=twenty", "steps=twenty: must be a whole number, or low and high as 10:20"),
        ("anisotropic", "steps=2.5", r"steps=2\.5: must be a whole number"),
        ("anisotropic", "steps=[1,2,3]", "steps=1:2:3: must be a whole number"),
        ("anisotropic", "steps=true", "steps=True: must be a whole number"),
        ("anisotropic", "option=7", "no option 7"),
        ("gaussian", "sigma=abc", "sigma=abc: must be a number$"),
        ("gaussian", "sigma=.inf", "sigma=inf: must be a number$"),
        ("texture", "size=big", "size=big: must be a whole number$"),
    ],
)
def test_nothing_is_written_for_a_wrong_setting(
    kind: str, given: str, error: str, photos: Photos, tmp_path: Path
) -> None:
    source = photos(1)
    with pytest.raises(UserError, match=error):
        make(kind, source, tmp_path / "new" / "set", set=[given], workers=0)
    assert os.listdir(tmp_path) == ["photos"]


def test_the_corrected_command_runs(photos: Photos, tmp_path: Path) -> None:
    source, target = photos(1), tmp_path / "set"
    with pytest.raises(UserError, match="steps=twenty"):
        make("anisotropic", source, target, set=["steps=twenty"], workers=0)
    assert make("anisotropic", source, target, set=["steps=2"], workers=0)["made"] == 2


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("anisotropic", {"steps": (1, 2)}),
        ("anisotropic", ["steps=1:2"]),
        ("gaussian", ["sigma=2"]),
        ("gaussian", ["sigma=1e-1"]),  # which YAML reads as text
        ("gaussian", ["sigma=null"]),
        ("texture", ["patch=20", "size=16"]),  # a number, or the name of a rule
    ],
)
def test_a_value_of_any_declared_type_is_taken(kind: str, given: Any, photos: Photos, tmp_path: Path) -> None:
    assert make(kind, photos(1), tmp_path / "set", set=given, workers=0)["made"] == 2


def test_the_defaults_of_every_maker_are_of_the_types_that_it_declares() -> None:
    for name, chosen in makers().items():
        assert as_declared(chosen, chosen.settings) == chosen.settings, name
