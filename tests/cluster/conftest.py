"""One Ray instance for all tests of the cluster: starting one takes seconds, and its workers keep what they imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.makers.make_files import put


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield ray
    ray.shutdown()


@pytest.fixture
def photos(tmp_path: Path) -> Callable[..., Path]:
    """`photos(5)`: a folder of two classes with five JPEGs each."""

    def write(each: int = 5, **size: int) -> Path:
        for k, kind in enumerate(("cat", "dog")):
            for i in range(each):
                put(tmp_path / "photos" / kind / f"{i:03d}.jpg", seed=100 * k + i, **size)
        return tmp_path / "photos"

    return write
