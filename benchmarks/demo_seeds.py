"""The demo with several seeds: what tuning changed, paired by seed, with 95 % t intervals.

    python benchmarks/demo_seeds.py --seeds 5 --out runs/demo-seeds

A second call continues the first.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from cuewise.audits import LIMIT
from cuewise.audits.run import audit_pair
from cuewise.story import AVERSE, PLAIN, jobs_of
from cuewise.studies.jobs import run_job
from cuewise.studies.labs import SHAPES
from cuewise.studies.statistics import t_interval

AUDITS = ["accuracy", "shape_bias", "silhouette", "sketch"]


def scores_of(place: Path, seed: int) -> dict[str, dict[str, float]]:
    """Encoder → score → value, of one seed."""
    file = place / "scores.json"
    if not file.is_file():
        jobs = jobs_of(place, seed)
        for job in jobs:
            run_job(job, SHAPES)
        audit_pair([job.folder for job in jobs], place / "audit", train=list(SHAPES.sets["probe"]), test=[],
                   only=AUDITS, names=[PLAIN, AVERSE], limit=LIMIT, answers="auto")  # fmt: skip
        found = {}
        for name in (PLAIN, AVERSE):
            document = json.loads((place / "audit" / name / "audit.json").read_text())
            found[name] = {s["name"]: s["value"] for s in document["scores"]}
        file.write_text(json.dumps(found))
    return json.loads(file.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/demo-seeds"))
    args = parser.parse_args()
    found = []
    for seed in range(args.seeds):
        (args.out / str(seed)).mkdir(parents=True, exist_ok=True)
        found.append(scores_of(args.out / str(seed), seed))
    print("| score | plain | texture-averse | difference |\n| --- | --- | --- | --- |")
    for name in found[0][PLAIN]:
        before, after = (np.array([f[arm][name] for f in found]) for arm in (PLAIN, AVERSE))
        mean, low, high = t_interval(after - before)
        print(
            f"| {name} | {before.mean():.3f} | {after.mean():.3f} | {mean:+.3f} [{low:+.3f}, {high:+.3f}] |"
        )


if __name__ == "__main__":
    main()
