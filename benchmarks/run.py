"""Every benchmark in turn: `make bench`, or `python benchmarks/run.py [NAME…] [--page]`.

Each benchmark's rows are stored in docs/performance/NAME.json with the date, the commit and every repetition, and
docs/performance.md is written from all stored files; --page only writes the page. Take them on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from performance_page import STORED, write_page
from row import MARK, Row

HERE = Path(__file__).resolve().parent
ONE_THREAD = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# name → arguments, environment
BENCHMARKS: dict[str, tuple[list[str], dict[str, str]]] = {
    "step": (["--negatives"], {}),
    "methods": ([], {}),
    "layout": ([], {}),
    "looc": ([], {}),
    "can": ([], ONE_THREAD),
    "pretrain": (["--rounds", "5"], {}),
    "object_crops": ([], ONE_THREAD),
    "boxes": ([], ONE_THREAD),
    "suppress": ([], {}),
    "memory": ([], {}),
    "page_faults": ([], ONE_THREAD),
    "scaling": ([], {}),
    "growth": ([], ONE_THREAD),
    "views": (["--loader"], ONE_THREAD),
    "shapes": ([], ONE_THREAD),
    "cues": (["--clock", "cpu"], ONE_THREAD),
    "corruptions": ([], ONE_THREAD),
    "index": ([], {}),
    "first_batch": (["--runs", "5"], {}),
    "make": ([], {}),
    "inspection": ([], {}),
    "audit": (["--full"], {}),
    "solver": ([], ONE_THREAD),
    "probe": (["--model", "torchvision/resnet18", "--size", "64", "--epochs", "1", "--no-accuracy"], {}),
    "detect": ([], {}),
}


def run(name: str) -> list[dict[str, Any]]:
    """Print what the benchmark prints; return its rows, none where it fails."""
    arguments, environment = BENCHMARKS[name]
    print(f"\n== {name}", flush=True)
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    rows = []
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"{MARK}\t"):
                rows.append(json.loads(line.partition("\t")[2]))
                line = f"{rows[-1]['what']} | {rows[-1]['against']} | {Row(**rows[-1]).result()}\n"
            print(line, end="", flush=True)
    if process.returncode:
        print(f"{name} failed with exit code {process.returncode}: what is stored of it stays", flush=True)
        return []
    return rows


def commit() -> str:
    """The commit, with a mark where files differ from it."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=10"], cwd=HERE, capture_output=True, text=True
    )
    return found.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--page", action="store_true", help="write the page from what is stored")
    given = parser.parse_args()
    if strange := [n for n in given.names if n not in BENCHMARKS]:
        parser.error(f"{strange[0]}: choose from {', '.join(BENCHMARKS)}")
    for name in [] if given.page else given.names or list(BENCHMARKS):
        load = os.getloadavg()[0]
        if rows := run(name):
            content = {
                "command": " ".join(["python", f"benchmarks/{name}.py", *BENCHMARKS[name][0]]),
                "date": time.strftime("%Y-%m-%d"),
                "commit": commit(),
                "cores": os.cpu_count(),
                "load": round(load, 1),
                "rows": rows,
            }
            STORED.mkdir(exist_ok=True)
            text = json.dumps(content, ensure_ascii=False, indent=1)
            (STORED / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    write_page()


if __name__ == "__main__":
    main()
