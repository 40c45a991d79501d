"""Lightning Fabric without what it imports only to read a version."""

from __future__ import annotations

import importlib
import operator
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from lightning_utilities.core.imports import compare_version

from cuewise.train.fabric import only_its_version


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installed package of version 3.1 whose import is noticed."""
    (tmp_path / "heavy_one.py").write_text("__version__ = '3.1'\nloaded = True\n")
    about = tmp_path / "heavy_one-3.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: heavy_one\nVersion: 3.1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "heavy_one", raising=False)
    return "heavy_one"


def test_a_version_is_read_without_the_package(package: str) -> None:
    with only_its_version(package):
        assert compare_version(package, operator.ge, "3.1")
        assert not compare_version(package, operator.ge, "3.2")
        assert not hasattr(importlib.import_module(package), "loaded")
    assert importlib.import_module(package).loaded  # afterwards it is the package


def test_a_package_that_was_imported_before_stays(package: str) -> None:
    before = importlib.import_module(package)
    with only_its_version(package):
        assert importlib.import_module(package) is before
    assert sys.modules[package] is before


def test_a_package_that_is_not_installed_stays_missing() -> None:
    with only_its_version("no_such_package"), pytest.raises(ImportError):
        importlib.import_module("no_such_package")


def test_fabric_knows_the_version_of_torchmetrics() -> None:
    pytest.importorskip("torchmetrics")
    found = importlib.import_module("lightning_fabric.utilities.imports")._TORCHMETRICS_GREATER_EQUAL_1_0_0
    assert found == (int(version("torchmetrics").split(".")[0]) >= 1)
