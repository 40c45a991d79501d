"""What a run writes while it trains: metrics.jsonl, train.log, TensorBoard events."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from cuewise.files import write_text


class Log:
    """Rows keep their order through a resume: rows after the checkpoint's step are cut off first."""

    def __init__(self, folder: Path, step: int) -> None:
        self.file = folder / "metrics.jsonl"
        if self.file.exists():
            rows = [r for r in read_metrics(self.file) if r["step"] <= step]
            write_text(self.file, "".join(json.dumps(r) + "\n" for r in rows))
        self.handle = self.file.open("a", encoding="utf-8")
        self.text = (folder / "train.log").open("a", encoding="utf-8")
        self.board = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def row(self, row: dict[str, Any]) -> None:
        """One object per line; numbers that are not finite become null, since JSON has none."""
        plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        self.handle.write(json.dumps(plain) + "\n")
        self.handle.flush()
        for key, value in row.items():
            if isinstance(value, int | float) and key not in ("step", "epoch"):
                self.board.add_scalar(key, value, row["step"])

    def say(self, line: str) -> None:
        """A line with its time in train.log."""
        self.text.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
        self.text.flush()

    def close(self) -> None:
        self.handle.close()
        self.text.close()
        self.board.close()


def read_metrics(file: Path) -> list[dict[str, Any]]:
    """All whole rows; a last line that a kill cut short is left out."""
    rows = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows
