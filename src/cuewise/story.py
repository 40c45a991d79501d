"""The whole story on embedded images: two encoders that differ in one dial, both audited, one report."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from cuewise.audits.run import audit_models
from cuewise.config import merge
from cuewise.data import open_data
from cuewise.errors import Interrupted, UserError
from cuewise.folders import claim_folder
from cuewise.progress import clock
from cuewise.report.folders import report_audits
from cuewise.studies.jobs import ArmJob, images_of, is_begun, is_trained
from cuewise.studies.labs import SHAPES
from cuewise.studies.run import job_count, run_jobs

# The arms of the α sweep (`cuewise reproduce ns-alpha`), first seed.
COMMON: dict[str, Any] = SHAPES.config({}, "simclr", seed=0, epochs=6)
# The one difference.
ARMS: dict[str, dict[str, Any]] = {"plain": {}, "texture-averse": SHAPES.negative(alpha=3)}
AUDITS = ["accuracy", "shape_bias", "texture", "silhouette", "sketch", "similarity", "retrieval", "saliency"]


def run_demo(out: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """Both encoders, both audits, OUT/report.html. A second call starts from what is already there."""
    began = time.monotonic()
    images = images_of(COMMON, len(open_data(COMMON["data"])))
    jobs = [ArmJob(merge(COMMON, dial), str(out / name), (), images) for name, dial in ARMS.items()]
    with claim_folder(out, "demo", resume=True, overwrite=overwrite) as claim:
        claim.started()
        for job in jobs:
            if (Path(job.folder) / "config.yaml").is_file() and not is_begun(job):
                raise UserError(
                    f"{job.folder} holds another run; name another --out, or --overwrite to replace it"
                )
        if not all(is_trained(job) for job in jobs):
            text = ", ".join(f"{name} ({describe(dial)})" for name, dial in ARMS.items())
            print(f"pretraining side by side: {text}", file=sys.stderr)
            workers, _ = job_count("auto")
            try:
                run_jobs(jobs, SHAPES, out / "workers.log", workers, 1, "pretraining")
            except KeyboardInterrupt:
                raise Interrupted("stopped; the same command resumes") from None
        print("auditing both", file=sys.stderr)
        found = audit_models(
            [job.folder for job in jobs],
            out / "audit",
            train=list(SHAPES.sets["probe"]),
            test=[],
            only=AUDITS,
            names=list(ARMS),
        )
        result = report_audits(found, out, title="What changes when an encoder is taught to ignore texture")
        result["took"] = clock(time.monotonic() - began)
        return result


def describe(dial: dict[str, Any]) -> str:
    if not dial:
        return "SimCLR as it is"
    return f"the same with patch negatives, alpha {dial['alpha'][0]:g}"
