"""Progress that a person can read: a bar on a terminal or in a notebook, plain lines in a log."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any

from tqdm import tqdm

QUIET_SECONDS = 15.0  # between two lines where there is no terminal


class Progress:
    """`with Progress(total, "images", "embedding") as bar: bar.add(n, loss=…)`: rate, time left and fields."""

    def __init__(self, total: int, unit: str, label: str, *, start: int = 0) -> None:
        self.total, self.unit, self.label = total, unit, label
        self.done = self.start = start
        self.began = self.last = time.monotonic()
        self.bar: tqdm[Any] | None = None
        kind = bar_class()
        if kind is not None:
            self.bar = kind(
                total=total, initial=start, unit=f" {unit}", desc=label, dynamic_ncols=True, leave=True
            )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.close()
        elif exc[0] is None and self.done > self.start:
            self._line({}, final=True)

    def add(self, n: int = 1, **fields: object) -> None:
        """Count n more done; fields are shown beside the rate."""
        self.done += n
        if self.bar is not None:
            self.bar.update(n)
            if fields:
                self.bar.set_postfix_str(_join(fields), refresh=False)
        elif time.monotonic() - self.last >= QUIET_SECONDS:
            self._line(fields)

    def skip(self, n: int) -> None:
        """Count n as done before: they say nothing about the rate."""
        self.start += n
        self.done += n
        if self.bar is not None:
            self.bar.initial += n
            self.bar.update(n)

    def say(self, text: str) -> None:
        """A line above the bar."""
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    def _line(self, fields: dict[str, object], final: bool = False) -> None:
        now = time.monotonic()
        self.last = now
        rate = (self.done - self.start) / max(now - self.began, 1e-9)
        if final:
            tail = f"in {clock(now - self.began)}"
        else:
            tail = f"{clock((self.total - self.done) / rate)} left" if rate > 0 else "starting"
        extra = f"  {_join(fields)}" if fields else ""
        text = f"{self.label}: {self.done}/{self.total} {self.unit}  {rate:.1f} {self.unit}/s  {tail}{extra}"
        print(text, file=sys.stderr, flush=True)


def bar_class() -> type[tqdm[Any]] | None:
    """The bar that suits what standard error is: a widget or text in a notebook, text on a terminal, none in a log."""
    if not in_notebook():
        return tqdm if sys.stderr.isatty() else None
    if importlib.util.find_spec("ipywidgets") is None:
        return tqdm
    from tqdm.notebook import tqdm as widget

    return widget


def in_notebook() -> bool:
    """Whether the session is one of Jupyter; IPython is asked only where it is already loaded."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def clock(seconds: float) -> str:
    """75 → '1:15', 3675 → '1:01:15'."""
    s = max(0, round(seconds))
    h, m, s = s // 3600, s // 60 % 60, s % 60
    return f"{h}:{m:02d}:{s:02d}" if h else f"{m}:{s:02d}"


def _join(fields: dict[str, object]) -> str:
    return "  ".join(f"{k} {v}" for k, v in fields.items())
