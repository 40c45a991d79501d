"""A cache of its own for each test, and a way to put real images into folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from image_files import encoded, pixels


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("CUEWISE_CACHE", str(folder))
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """`write("set/dog/a.jpg")` puts a real image (or the given bytes) there."""

    def put(name: str, data: bytes | None = None, *, seed: int = 0) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        form = {"jpg": "JPEG", "png": "PNG", "gif": "GIF", "webp": "WEBP"}.get(name[-3:].lower(), "PNG")
        path.write_bytes(encoded(pixels(seed=seed), form) if data is None else data)
        return path

    return put
