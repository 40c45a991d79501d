"""What environment.json says of the working folder's git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cuewise.train.environment import environment

pytestmark = pytest.mark.shell


def git(*words: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *own, *words], check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_and_whether_its_files_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert environment()["git"] is None
    git("init")
    assert environment()["git"] is None  # no commit yet
    Path("a").write_text("1")
    git("add", "a")
    git("commit", "-m", "one")
    assert environment()["git"] == {"commit": git("rev-parse", "HEAD"), "changed": False}
    Path("b").write_text("not known to git")
    assert environment()["git"]["changed"] is False
    Path("a").write_text("2")
    assert environment()["git"]["changed"] is True
