"""An α sweep of `reproduce` on the embedded shapes, evaluation included, against its bound of 45 minutes on 2 cores.

`python benchmarks/sweep.py [--study ns-alpha] [--out DIR] [--seeds 3]`: four values of α, all seeds, every measure of the
study, in a fresh folder.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import cuewise
from cuewise.studies.labs import SHAPES
from cuewise.studies.ns_alpha import sweep
from cuewise.studies.run import job_count
from row import row

BOUND = 45.0  # minutes, 4 values and 3 seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", default="ns-alpha", choices=("ns-alpha", "ns-alpha-color"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int)
    options = parser.parse_args()
    arms = sweep(SHAPES)
    with tempfile.TemporaryDirectory() as place:
        out = options.out or Path(place) / "sweep"
        began = time.monotonic()
        cuewise.reproduce(options.study, out=out, seeds=options.seeds, epochs=options.epochs, arms=arms)
        minutes = (time.monotonic() - began) / 60
    runs = len(arms) * options.seeds
    workers, _ = job_count("auto")
    what = f"α sweep on shapes ({options.study}), {len(arms)} values, {options.seeds} seeds, {workers} cores"
    bound = BOUND * runs / 12
    row(what, f"{bound:.0f} minutes", minutes, "minutes", f"≤ {bound:.0f}")


if __name__ == "__main__":
    main()
