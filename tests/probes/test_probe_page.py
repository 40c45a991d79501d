"""The page about probes: its Python runs, its table of labels and class map are read, its presets are the real ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cuewise.options import options_of
from cuewise.probes.kinds import PROBES
from cuewise.probes.label_table import read_table
from cuewise.probes.sgd import PRESETS
from cuewise.probes.tunings import TUNINGS

pytestmark = pytest.mark.docs

PAGE = (Path(__file__).parents[2] / "docs" / "probe.md").read_text(encoding="utf-8")


def test_the_python_runs(capsys) -> None:  # type: ignore[no-untyped-def]
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(block, {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("knn5_t0.07 ")


def test_the_tables_are_read(tmp_path: Path) -> None:
    block = re.search(r"^( {4}image,labels.*?)\n\n", PAGE, re.S | re.M)
    assert block
    (tmp_path / "t.csv").write_text(block[1].replace("    ", ""))
    table = read_table(tmp_path / "t.csv")
    assert table.classes == ("bicycle", "car", "person")
    assert table.present["street/002.jpg"] == ()
    assert table.difficult["street/001.jpg"] == ("bicycle",)
    assert json.loads(re.search(r'^ {4}(\{"crimson".*)$', PAGE, re.M)[1])["pink"] is None  # type: ignore[index]


def test_every_kind_preset_and_option_is_reported() -> None:
    for name, kind in PROBES.all().items():
        row = re.search(rf"^\| `{name}` \|(.*)$", PAGE, re.M)
        assert row, name
        for option in options_of(kind) if name != "multilabel" else ("labels", "preset"):
            assert f"`--{option.replace('_', '-')}" in row[1], (name, option)
    for name, s in PRESETS.items():
        row = re.search(rf"^\| `{name}` \|(.*)$", PAGE, re.M)
        assert row, name
        drops = f"× 0.1 at {', '.join(map(str, s.milestones))}" if s.milestones else "cosine"
        assert f"batch {s.batch_size}, {s.epochs} epochs, {drops}" in row[1].replace("16,384", "16384")
        assert f"lr {s.lr[0]:g}" in row[1]
    assert all(f"`{name}` (" in PAGE or f"--preset {name}" in PAGE for name in TUNINGS)
