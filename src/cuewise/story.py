"""The whole story on embedded images: an encoder, the same one tuned away from texture, both audited, one report."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from cuewise.audits import LIMIT
from cuewise.audits.run import audit_pair
from cuewise.config import merge
from cuewise.data import open_data
from cuewise.errors import Interrupted, UserError
from cuewise.folders import hold_folder
from cuewise.progress import clock
from cuewise.report.folders import report_audits
from cuewise.studies.jobs import ArmJob, images_of, is_begun, is_trained
from cuewise.studies.labs import SHAPES
from cuewise.studies.run import job_count, run_jobs
from cuewise.train.tune import BATCH, preset

TITLES = {"simclr": "SimCLR as it is", "tune": "the same encoder, away from texture, kept near what it knew"}

PLAIN, AVERSE = "plain", "texture-averse"
MOST_THREADS = 4  # more do not help so small a network
AUDITS = ["accuracy", "shape_bias", "texture", "silhouette", "sketch", "similarity", "retrieval", "saliency"]


def arms(place: Path, seed: int = 0) -> dict[str, dict[str, Any]]:
    """The configurations of both encoders: SimCLR as it is, then the same encoder, tuned away from texture."""
    plain = SHAPES.config({}, "simclr", seed=seed, epochs=6)
    averse = merge(
        preset("texture"),
        {
            "method": "tune",
            "model": str(place / PLAIN),
            "data": plain["data"],
            "size": plain["size"],
            "seed": seed,
        },
        {"epochs": 1, "batch_size": BATCH, "tune": {"images": 0}, "workers": "0"},
    )
    return {PLAIN: plain, AVERSE: averse}


def run_demo(out: Path, *, overwrite: bool) -> dict[str, Any]:
    """Both encoders, both audits, OUT/report.html. A second call starts from what is already there."""
    began = time.monotonic()
    jobs = jobs_of(out)
    with hold_folder(out, "demo", resume=True, overwrite=overwrite) as held:
        held.started()
        for job in jobs:
            if (Path(job.folder) / "config.yaml").is_file() and not is_begun(job):
                raise UserError(
                    f"{job.folder} holds another run; name another --out, or --overwrite to replace it"
                )
        threads = min(MOST_THREADS, job_count("1")[1])
        for job, doing in zip(jobs, ("pretraining", "tuning")):
            if not is_trained(job):
                print(f"{doing}: {TITLES[job.config['method']]}", file=sys.stderr)
                try:
                    run_jobs([job], SHAPES, out / "workers.log", 1, threads, doing)
                except KeyboardInterrupt:
                    raise Interrupted("stopped; the same command resumes") from None
        print("auditing both", file=sys.stderr)
        found = audit_pair(
            [job.folder for job in jobs],
            out / "audit",
            train=list(SHAPES.sets["probe"]),
            test=[],
            only=AUDITS,
            names=[PLAIN, AVERSE],
            limit=LIMIT,
            answers="auto",
        )
        result = report_audits(found, out, title="What changes when an encoder is taught to ignore texture")
        result["took"] = clock(time.monotonic() - began)
        return result


def jobs_of(out: Path, seed: int = 0) -> list[ArmJob]:
    """Both runs, in their order."""
    found = arms(out, seed).items()
    return [ArmJob(c, str(out / n), (), images_of(c, len(open_data(c["data"])))) for n, c in found]
