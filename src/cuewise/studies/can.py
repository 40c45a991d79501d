"""CAN beside its parts on one transformer: each term alone, and each left out (claims 38 and 39)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, below, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

# 64 patches of 4 pixels in a narrow network: of what one core trains in a minute, this probes best (16 patches of 8 pixels,
# 128 wide, cost as much and probe 11 points lower on the shapes). Small batches and a rate of 0.001 for them: a few hundred
# steps must do.
NETWORK: dict[str, Any] = {
    "model": "cuewise/vit-tiny?patch=4&width=64",
    "batch_size": 64,
    "optim": {"lr": 4e-3, "weight_decay": 0.05, "warmup_share": 0.1, "warmup_epochs": 0},
}
PARTS = {"CAN": [0.03, 0.67, 0.30], "no contrast": [0, 0.67, 0.30], "no reconstruction": [0.03, 0, 0.30],
         "no denoising": [0.03, 0.67, 0]}  # fmt: skip
STRONG = "CAN, contrast 1"  # shows in few steps; the published weight is made for hundreds of epochs
UNTRAINED = "untrained"  # a rate that moves nothing, on any images


def arms(lab: Lab, data: Mapping[str, Any] | None = None) -> list[Arm]:
    """All with two views of an image per step but MAE, which has one, as published; all with the same steps."""
    base = merge(NETWORK, data or {})
    own = [
        Arm(name, merge(base, {"can": {"weights": w, "views": 2}}), method="can") for name, w in PARTS.items()
    ]
    return [
        *own,
        Arm("SimCLR-ViT", merge(base, {"can": {"weights": [1.0, 0, 0], "mask": 0.0}}), method="can"),
        Arm("MAE", base, method="mae"),
        Arm(STRONG, merge(base, {"can": {"weights": [1.0, 0.67, 0.30]}}), method="can"),
        Arm(UNTRAINED, merge(base, {"optim": {"lr": 1e-30}, "data": ["shapes?n=64&size=32"]}), method="mae"),
    ]


def beyond_mae(lab: Lab) -> list[PairedDifference]:
    """Claim 38: probing above MAE; leaving contrast out costs more than leaving out another term; patches are predicted
    better than by the mean of the image."""
    worst = [
        above("no reconstruction", "no contrast", "clean"),
        above("no denoising", "no contrast", "clean"),
        above("CAN", "no contrast", "clean"),
    ]
    below_mean = combined("1 − error / error of the mean: CAN", {("CAN", "reconstruction/ratio"): -1.0}, margin=-1.0,
                          because="below the mean's")  # fmt: skip
    return [above("CAN", "MAE", "clean"), *worst, below_mean]


def cheaper(lab: Lab) -> list[PairedDifference]:
    """Claim 39: encoder on visible patches with decoder, against two whole views."""
    return [below("CAN", "SimCLR-ViT", "gflops")]


def learned(lab: Lab) -> list[PairedDifference]:
    """Our own: that the setting suffices for the other claims to mean something."""
    return [above("CAN", UNTRAINED, "clean"), above("CAN", UNTRAINED, "knn")]


def more_contrast(lab: Lab) -> list[PairedDifference]:
    """Our own: the published weight of contrast is small for so few steps."""
    return [above(STRONG, "CAN", "clean")]


CLAIMS = (
    Claim("38", "CAN probes better than MAE; without contrast it loses most; hidden patches are predicted better than by "
          "the image's mean", "B", beyond_mae),
    Claim("39", "a step of CAN at 50 % masking costs fewer FLOPs than one of SimCLR on the same transformer", "A", cheaper),
    Claim("38u", "CAN probes better than the same transformer untrained", "A", learned),
    Claim("38w", "in a short run CAN probes better with contrast of weight 1 than with the published 0.03", "C",
          more_contrast),
)  # fmt: skip
FIGURES = (
    Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "knn", "finetuned")),
    Figure("cost", "FLOPs per image of a forward pass", "arm", "10⁹ FLOPs", ("gflops",)),
)
MEASURES = ("clean", "knn", "finetuned", "conflict", "corrupted", "reconstruction", "cost")

STUDY = Study(
    name="can",
    summary="CAN, MAE, SimCLR-ViT, and CAN without each of its terms",
    reference="Tables 1 and 5 of Mishra et al. 2022",
    arms=arms,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    times=2,
)
