"""Every benchmark in turn, then the table that the README shows: `make bench`, or `python benchmarks/run.py [NAME…]`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from row import MARK

ONE_THREAD = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# name → arguments, environment
BENCHMARKS: dict[str, tuple[list[str], dict[str, str]]] = {
    "step": (["--negatives"], {}),
    "looc": ([], {}),
    "pretrain": ([], {}),
    "object_crops": ([], ONE_THREAD),
    "boxes": ([], ONE_THREAD),
    "suppress": ([], {}),
    "views": (["--loader"], ONE_THREAD),
    "shapes": ([], ONE_THREAD),
    "cues": (["--clock", "cpu"], ONE_THREAD),
    "corruptions": ([], ONE_THREAD),
    "index": ([], {}),
    "first_batch": ([], {}),
    "make": ([], {}),
    "inspection": ([], {}),
    "audit": (["--full"], {}),
    "probe": (["--model", "torchvision/resnet18", "--size", "64", "--epochs", "2", "--no-accuracy"], {}),
    "detect": ([], {}),
}


def run(name: str) -> list[list[str]]:
    """Print what the benchmark prints; return its rows."""
    arguments, environment = BENCHMARKS[name]
    print(f"\n== {name}", flush=True)
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), *arguments]
    rows = []
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"{MARK}\t"):
                rows.append(line.rstrip("\n").split("\t")[1:])
            else:
                print(line, end="", flush=True)
    if process.returncode:
        rows.append([name, "–", f"failed with exit code {process.returncode}"])
    return rows


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    rows = [r for name in names for r in run(name)]
    print("\n| what | against | result |\n| --- | --- | --- |")
    for what, against, result in rows:
        print(f"| {what} | {against} | {result} |")


if __name__ == "__main__":
    main()
