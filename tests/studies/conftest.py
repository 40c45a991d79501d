"""Studies without worker processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cuewise.studies.pool import raise_error
from cuewise.studies.worker import serve


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run in this process, one after the other."""

    def run_all(
        lines: Sequence[str],
        workers: int,
        threads: int,
        log: Path,
        done: Callable[[int, dict[str, Any]], None],
        tick: Callable[[list[int]], None] = lambda running: None,
    ) -> None:
        for number, line in enumerate(lines):
            tick([number])
            answer = serve(line)
            raise_error(answer, log)
            done(number, answer)

    monkeypatch.setattr("cuewise.studies.run.run_all", run_all)
