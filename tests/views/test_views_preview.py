"""The contact sheet shows every view, unaltered, under its role."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pillow_views import photo

from cuewise.errors import UserError
from cuewise.views import contact_sheet


def find(sheet: np.ndarray, picture: np.ndarray) -> tuple[int, int] | None:
    """Where `picture` stands in `sheet`, pixel for pixel."""
    h, w = picture.shape[:2]
    starts = np.argwhere((sheet[: -h + 1, : -w + 1] == picture[0, 0]).all(-1))
    for y, x in starts:
        if np.array_equal(sheet[y : y + h, x : x + w], picture):
            return int(y), int(x)
    return None


def test_rows_are_images_and_columns_are_roles(tmp_path: Path) -> None:
    columns = {role: np.stack([photo(64, 64, 10 * k + i) for i in range(3)]) for k, role in enumerate("abc")}
    contact_sheet(columns, cell=64).save(tmp_path / "views.png")
    sheet = np.asarray(Image.open(tmp_path / "views.png"))
    places = {(role, i): find(sheet, columns[role][i]) for role in columns for i in range(3)}
    assert all(places.values())
    for role in columns:
        assert len({places[role, i][1] for i in range(3)}) == 1  # type: ignore[index]
    for i in range(3):
        assert len({places[role, i][0] for role in columns}) == 1  # type: ignore[index]
    top = places["a", 0][0]  # type: ignore[index]
    for role in columns:  # ink above each column
        x = places[role, 0][1]  # type: ignore[index]
        assert sheet[:top, x : x + 64].min() < 100


def test_small_views_are_enlarged_and_large_ones_fitted() -> None:
    small = contact_sheet({"query": np.stack([photo(32, 32)])}, cell=160)
    assert find(np.asarray(small), photo(32, 32).repeat(5, 0).repeat(5, 1)) is not None
    assert contact_sheet({"query": np.stack([photo(224, 224)])}, cell=160).width < 224


def test_labels_widen_the_sheet_and_long_names_fit() -> None:
    views = np.stack([photo(32, 32)])
    plain = contact_sheet({"q": views}, cell=32)
    assert contact_sheet({"q": views}, ["dog/a long name.jpg"], cell=32).width > plain.width + 60
    assert contact_sheet({"a role with a long name": views}, cell=32).width > plain.width + 60


def test_rows_are_limited_and_nothing_to_show_is_reported() -> None:
    views = np.stack([photo(16, 16)] * 20)
    assert contact_sheet({"q": views}, rows=2, cell=16).height < 16 * 8
    with pytest.raises(UserError, match="no view to show"):
        contact_sheet({})
    with pytest.raises(UserError, match="no view to show"):
        contact_sheet({"q": views[:0]})
