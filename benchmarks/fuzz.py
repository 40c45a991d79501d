"""Mutation fuzzing of the readers of files from strangers: no traceback, no hang, bounded memory.

    python benchmarks/fuzz.py [zip tar voc coco …] [--minutes 2] [--seed 0] [--keep FOLDER] [--results FILE.jsonl]

Each case is a valid file with a few bytes, values or words replaced (fuzz_readers.py lists the readers). A reader may
accept it, skip images and say why, or end in one line (UserError); anything else is a failure, and so are 10 seconds or
1 GB more than at the start. Failing cases are written to --keep; --results appends one line per reader. Prints counts
as JSON, then as a table.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from fuzz_readers import READERS, Reader

SECONDS, GIGABYTE = 10, 1 << 30


class Slow(BaseException):
    """A case took too long; no reader catches it."""


def too_slow(number: int, frame: Any) -> None:
    raise Slow


def judge(reader: Reader, data: bytes) -> str:
    """accepted, refused, or what went wrong."""
    from cuewise.errors import UserError

    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            reader.read(data)
    except UserError as error:
        return "refused" if len(str(error).splitlines()) == 1 else f"{len(str(error).splitlines())} lines"
    except Slow:
        return "hang"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"
    finally:
        signal.alarm(0)
    return "accepted"


def fuzz(name: str, minutes: float, seed: int, keep: Path | None, place: Path) -> dict[str, Any]:
    """Counts of what became of the cases of one reader."""
    reader, rng = READERS[name](place), np.random.default_rng(seed)
    reader.read(reader.seed)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    counts: Counter[str] = Counter()
    end, slowest = time.monotonic() + 60 * minutes, 0.0
    while time.monotonic() < end:
        data, began = reader.change(reader.seed, rng), time.monotonic()
        found = judge(reader, data)
        slowest = max(slowest, time.monotonic() - began)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
        if grown > GIGABYTE:
            found, base = "memory", base + grown
        if found not in ("accepted", "refused") and counts[found] == 0 and keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{sum(counts.values())}-{name}").write_bytes(data)
        counts[found] += 1
    wrong = {k: n for k, n in counts.items() if k not in ("accepted", "refused")}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
    return {"reader": name, "seed": seed, "minutes": minutes, "cases": sum(counts.values()),
            "accepted": counts["accepted"], "refused": counts["refused"], "failures": wrong,
            "slowest_s": round(slowest, 2), "more_memory_mb": grown >> 20}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readers", nargs="*", default=list(READERS), help=", ".join(READERS))
    parser.add_argument("--minutes", type=float, default=2, help="for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for failing cases")
    parser.add_argument("--results", type=Path, help="append counts as JSON lines")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, too_slow)
    warnings.simplefilter("ignore")
    rows = []
    for name in given.readers:
        with tempfile.TemporaryDirectory() as place:
            rows.append(fuzz(name, given.minutes, given.seed, given.keep, Path(place)))
        print(json.dumps(rows[-1]), flush=True)
        if given.results is not None:
            with given.results.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print("\n| reader | cases | accepted | refused | failures | slowest case | more memory |")
    print("|---|---|---|---|---|---|---|")
    for r in rows:
        wrong = "; ".join(f"{n} × {k}" for k, n in r["failures"].items()) or "none"
        cells = (r["reader"], r["cases"], r["accepted"], r["refused"], wrong, f"{r['slowest_s']} s")
        print("| " + " | ".join(map(str, (*cells, f"{r['more_memory_mb']} MB"))) + " |")
    return 1 if any(r["failures"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
