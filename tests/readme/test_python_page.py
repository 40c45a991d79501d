"""The Python of docs/python.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytestmark = [pytest.mark.docs, pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def run(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    found = run(BLOCKS[0])["found"]
    assert any(s["name"].startswith("linear/") for s in found["scores"])
    assert {"audit.json", "scores.parquet", "decisions.parquet"} <= {
        p.name for p in Path("audits/random").iterdir()
    }
    assert "the weights are random" in found._repr_html_()


def test_transforms() -> None:
    out = run(BLOCKS[1])["train"](Image.new("RGB", (300, 260), (90, 120, 40)))
    assert out.size == (224, 224)
    assert len(BLOCKS) == 2
