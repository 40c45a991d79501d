"""The Python on docs/data.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuewise.data import open_data

pytestmark = pytest.mark.docs

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_page_is_true(block, capsys):
    exec(compile(block, str(PAGE), "exec"), {"__name__": "page", "open_data": open_data})


def test_there_is_something_to_run():
    assert len(BLOCKS) == 4
