"""What pretraining is good for downstream: nine arms with the same steps on the same scenes."""

from __future__ import annotations

from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above
from cuewise.studies.labs import QUICK, Lab
from cuewise.studies.study import Arm, Figure, Study

BANK: dict[str, Any] = {"queue": 1024, "momentum": 0.99}
DENSE = {"densecl": dict(BANK)}
# The rate is so small that no weight moves; batch statistics are those of the images, as everywhere else.
UNTRAINED = {"optim": {"lr": 1e-12, "weight_decay": 0.0}}
SMOOTH = {"suppress": "anisotropic"}


def arms(lab: Lab) -> list[Arm]:
    """All with the same images, batch and epochs, hence the same optimiser steps."""
    base = merge(QUICK, lab.scenes)
    moco = merge(base, {"moco": dict(BANK)})
    return [
        Arm("MoCo", moco, "moco"),
        Arm("MoCo smooth", merge(moco, SMOOTH), "moco"),
        Arm("DenseCL", merge(base, DENSE), "densecl"),
        Arm("DenseCL smooth", merge(base, DENSE, SMOOTH), "densecl"),
        Arm("object crops", merge(moco, {"crops": {"name": "object"}}), "moco"),
        Arm("HCL", base, "hcl"),
        Arm("patch", merge(moco, lab.negative(lab.useful["moco"])), "moco"),
        Arm("supervised", base, "supervised"),
        Arm("random", merge(moco, UNTRAINED), "moco"),
    ]


def suppression(lab: Lab) -> list[PairedDifference]:
    """Table 2.1 of the thesis: MoCo 82.4 → 83.7 AP50."""
    return [above("MoCo smooth", "MoCo", "detect/ap50"), above("DenseCL smooth", "DenseCL", "detect/ap50")]


def dense_suppression(lab: Lab) -> list[PairedDifference]:
    """DenseCL 69.4 → 70.5 mIoU."""
    return [above("DenseCL smooth", "DenseCL", "segment/miou")]


def crops(lab: Lab) -> list[PairedDifference]:
    """49.8 → 58.6 mAP, there with more steps for object crops."""
    return [above("object crops", "MoCo", "map")]


def beyond_random(lab: Lab) -> list[PairedDifference]:
    return [
        above(name, "random", quantity)
        for name in ("MoCo", "DenseCL")
        for quantity in ("detect/ap50", "segment/miou")
    ]


STUDY = Study(
    name="transfer",
    summary="Detection, segmentation, labels and breeds after nine kinds of pretraining with equal steps",
    reference="Tables 2.1 and 2.2 of Mishra 2022; Mishra et al. 2022 (object-aware crops)",
    arms=arms,
    measures=("detect", "segment", "multilabel", "fine", "disjoint"),
    claims=(
        Claim("D1", "texture suppression raises AP50 in detection, on MoCo and on DenseCL (published: +1.3 and +0.7)", "C",
              suppression),
        Claim("D2", "texture suppression raises the mIoU of DenseCL (published: +1.1)", "C", dense_suppression),
        Claim("D3", "object crops raise multi-label mAP over MoCo (published: +8.8, at more steps)", "C", crops),
        Claim("D4", "self-supervised pretraining beats random initialisation in detection and segmentation", "B",
              beyond_random),
    ),
    figures=(
        Figure("objects", "Objects in scenes", "arm", "AP50, mIoU, mAP", ("detect/ap50", "segment/miou", "map")),
        Figure("classes", "Classes", "arm", "accuracy", ("fine", "disjoint")),
    ),
)  # fmt: skip
