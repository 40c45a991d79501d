"""The whole story on embedded images: two encoders that differ in one dial, both audited, one report."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from cuewise.audits.run import audit_models
from cuewise.config import merge
from cuewise.progress import clock
from cuewise.report.folders import report_audits
from cuewise.train.pretrain import run_pretrain
from cuewise.train.reload import progress_of

# Grey views, so that colour alone does not tell the images apart. Patches are large, because the textures of the
# embedded images are: a patch must hold a piece of texture for the negative to keep it.
COMMON: dict[str, Any] = {
    "data": ["shapes:aligned?rho=1&n=6400&part=train&size=32"],
    "method": "simclr",
    "model": "cuewise/resnet-tiny?width=16",
    "size": 32,
    "epochs": 6,
    "batch_size": 128,
    "views": {"scale": [0.2, 1.0], "gray_p": 1.0},
    "optim": {"lr": 0.004, "warmup_epochs": 1},
    "simclr": {"temperature": 0.2, "statistics": "shared"},
}
# The one difference.
ARMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "texture-averse": {"negatives": ["patch"], "alpha": [2.0], "patch_size": "5:12"},
}
AUDITS = ["accuracy", "shape_bias", "texture", "silhouette", "sketch", "similarity", "retrieval", "saliency"]


def run_demo(out: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """Both encoders, both audits, OUT/report.html. A second call starts from what is already there."""
    began = time.monotonic()
    for name, dial in ARMS.items():
        folder = out / name
        if overwrite or not finished(folder):
            print(f"pretraining {name}: {describe(dial)}", file=sys.stderr)
            fresh = overwrite and folder.exists()
            run_pretrain([merge(COMMON, dial)], folder, resume=folder.exists() and not fresh, overwrite=fresh)
    print("auditing both", file=sys.stderr)
    models = [str(out / name) for name in ARMS]
    found = audit_models(models, out / "audit", train=[], test=[], only=AUDITS, names=list(ARMS))
    result = report_audits(found, out, title="What changes when an encoder is taught to ignore texture")
    result["took"] = clock(time.monotonic() - began)
    return result


def describe(dial: dict[str, Any]) -> str:
    if not dial:
        return "SimCLR as it is"
    return f"the same with patch negatives, alpha {dial['alpha'][0]:g}"


def finished(folder: Path) -> bool:
    """Whether a run has been trained to its end."""
    done, total = progress_of(folder)
    return 0 < total <= done
