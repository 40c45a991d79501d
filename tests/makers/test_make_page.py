"""Every command on the page about `make` runs as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cuewise.cli import main
from cuewise.data import open_data
from cuewise.makers.registry import makers

pytestmark = pytest.mark.docs

PAGE = Path(__file__).parents[2] / "docs" / "make.md"


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line and "/data/" not in line]


@pytest.mark.parametrize("command", commands())
def test_command(
    command: str, photos: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos(3)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "classes.txt").write_text("dog\n")
    grid = re.search(r"\n\n((?: {6}- .*\n)+)", PAGE.read_text(encoding="utf-8"))
    assert grid is not None
    (tmp_path / "study.yaml").write_text(grid[1])
    program, *words = command.split()
    assert program == "cuewise"
    if "parquet" in command:
        pytest.importorskip("pyarrow")
    assert main(words) == 0
    target = (
        tmp_path
        / [word for word in words[: 4 if words[1] != "shapes" else 3] if not word.startswith("-")][-1]
    )
    if "--dry-run" in words:
        assert not target.exists()
    elif "--shards" in words:
        assert len(open_data(f"{target}/shards-{{000..001}}.tar")) == 6
    elif "--grid" in words:
        assert len(list(target.iterdir())) == 3
    elif "boxes" in words:
        assert (target / "boxes.csv").read_text().startswith("image,label,xmin")
    else:
        assert len(open_data(str(target))) > 0


def test_every_kind_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [kind for kind in makers() if f"`{kind}`" not in text] == []
