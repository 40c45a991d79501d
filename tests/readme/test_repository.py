"""Files for people and services around the code: they can be read, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_citation() -> None:
    found = read("CITATION.cff")
    assert found["cff-version"] == "1.2.0"
    assert found["license"] == "Apache-2.0"
    assert {"title", "authors", "message"} <= set(found)
    assert all({"title", "authors", "year"} <= set(paper) for paper in found["references"])


def test_workflow_and_hooks_call_what_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    steps = [s for job in read(".github/workflows/tests.yml")["jobs"].values() for s in job["steps"]]
    called = {word for s in steps for word in s.get("run", "").split() if word != "make"}
    assert {"lint", "types", "test", "docs"} <= called <= targets
    assert [h["id"] for h in read(".pre-commit-config.yaml")["repos"][0]["hooks"]] == [
        "ruff-check",
        "ruff-format",
        "mypy",
    ]
    assert (ROOT / read(".readthedocs.yaml")["sphinx"]["configuration"]).is_file()


def test_issue_forms() -> None:
    for name in ("bug", "idea"):
        form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert {"name", "description", "body"} <= set(form)
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len(set(ids))


def test_changes_have_versions_newest_first() -> None:
    versions = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert versions == sorted(versions, key=lambda v: [int(n) for n in v.split(".")], reverse=True)
    assert len(versions) >= 2


def test_licences_name_every_required_package() -> None:
    listed = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    project = (
        (ROOT / "pyproject.toml")
        .read_text(encoding="utf-8")
        .partition("dependencies = [")[2]
        .partition("\n]")[0]
    )
    for name in re.findall(r'^\s+"([A-Za-z0-9_-]+)', project, re.M):
        assert f"| {name.lower().replace('_', '-')} |" in listed, name
    assert re.search(r"on \d{4}-\d{2}-\d{2}", listed)
