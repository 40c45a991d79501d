"""A cache of its own for each test, and a folder of photographs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from make_files import put


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUEWISE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def photos(tmp_path: Path) -> Callable[..., Path]:
    """`photos(5)`: a folder of two classes with five JPEGs each."""

    def write(each: int = 5, name: str = "photos", **size: int) -> Path:
        for k, kind in enumerate(("cat", "dog")):
            for i in range(each):
                put(tmp_path / name / kind / f"{i:03d}.jpg", seed=100 * k + i, **size)
        return tmp_path / name

    return write
