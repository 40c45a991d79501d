"""What a run writes while it trains: metrics.jsonl, train.log, and what --log names."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuewise.files import write_text
from cuewise.train.sinks import open_sinks

KEYS = ("step", "epoch")


class Log:
    """Rows keep their order through a resume: rows after the checkpoint's step are cut off first."""

    def __init__(self, folder: Path, step: int, sinks: Sequence[str] = ("auto",)) -> None:
        self.file = folder / "metrics.jsonl"
        if self.file.exists():
            rows = [r for r in read_metrics(self.file) if r["step"] <= step]
            write_text(self.file, "".join(json.dumps(r) + "\n" for r in rows))
        self.handle = self.file.open("a", encoding="utf-8")
        self.text = (folder / "train.log").open("a", encoding="utf-8")
        self.sinks = open_sinks(sinks, folder, step)

    def row(self, row: dict[str, Any]) -> None:
        """One object per line; numbers that are not finite become null, since JSON has none."""
        plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        self.handle.write(json.dumps(plain) + "\n")
        self.handle.flush()
        numbers = {k: float(v) for k, v in row.items() if isinstance(v, int | float) and k not in KEYS}
        for sink in self.sinks:
            sink.write(numbers, int(row["step"]))

    def say(self, line: str) -> None:
        """A line with its time in train.log."""
        self.text.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
        self.text.flush()

    def close(self) -> None:
        self.handle.close()
        self.text.close()
        for sink in self.sinks:
            sink.close()


def read_metrics(file: Path) -> list[dict[str, Any]]:
    """All whole rows; a last line that a kill cut short is left out."""
    rows = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows
