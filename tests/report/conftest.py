"""Fixtures of the report's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_audits import two_runs


@pytest.fixture
def two(tmp_path: Path) -> dict[str, Any]:
    """Arguments of write_report: two runs that differ in one dial."""
    return two_runs(tmp_path)
