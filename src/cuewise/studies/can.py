"""CAN beside its parts on one transformer: each term alone, and each left out (claims 38 and 39)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, below, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

# A small transformer on 32 pixels: 64 patches. Rates are those of AdamW on one core's worth of steps.
NETWORK: dict[str, Any] = {
    "model": "cuewise/vit-tiny?patch=4",
    "optim": {"lr": 1e-3, "weight_decay": 0.05, "warmup_share": 0.1, "warmup_epochs": 0},
}
PARTS = {"CAN": [0.03, 0.67, 0.30], "no contrast": [0, 0.67, 0.30], "no reconstruction": [0.03, 0, 0.30],
         "no denoising": [0.03, 0.67, 0]}  # fmt: skip
LEFT_OUT = tuple(PARTS)[1:]


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


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": [*PARTS, "SimCLR-ViT", "MAE"]}


CLAIMS = (
    Claim("38", "CAN probes better than MAE; without contrast it loses most; hidden patches are predicted better than by "
          "the image's mean", "B", beyond_mae),
    Claim("39", "a step of CAN at 50 % masking costs fewer FLOPs than one of SimCLR on the same transformer", "A", cheaper),
)  # fmt: skip
FIGURES = (
    Figure("accuracy", "Accuracy", "arm", "accuracy", ("clean", "knn", "finetuned"), groups),
    Figure("cost", "FLOPs per image of a forward pass", "arm", "10⁹ FLOPs", ("gflops",), groups),
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
