"""An α sweep of `reproduce` on the embedded shapes, evaluation included, against its bound of 45 minutes on 2 cores.

`python benchmarks/sweep.py [--out DIR] [--seeds 3]`: four values of α, all seeds, every measure of ns-alpha, in a fresh folder.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from cuewise.studies.labs import SHAPES
from cuewise.studies.ns_alpha import STUDY
from cuewise.studies.run import job_count, run_studies
from row import row

BOUND = 45.0  # minutes, 4 values and 3 seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int)
    options = parser.parse_args()
    alphas = SHAPES.alphas if len(SHAPES.alphas) <= 4 else (*SHAPES.alphas[:3], SHAPES.alphas[-1])
    lab = replace(SHAPES, alphas=alphas, out_alphas=())
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        run_studies(
            [STUDY], options.out or Path(place) / "sweep", lab=lab, seeds=options.seeds, epochs=options.epochs
        )
        minutes = (time.monotonic() - began) / 60
    runs = len(alphas) * options.seeds
    workers, _ = job_count("auto")
    what = f"α sweep on shapes, {len(alphas)} values, {options.seeds} seeds, {workers} cores"
    bound = BOUND * runs / 12
    row(what, f"{bound:.0f} minutes", f"{minutes:.1f} minutes ({minutes / bound:.2f} × the bound)")


if __name__ == "__main__":
    main()
