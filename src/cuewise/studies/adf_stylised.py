"""A style that all views of an image share is a shortcut: MoCo and Jigsaw on stylised and on natural images (claim 28)."""

from __future__ import annotations

from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, below
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

METHODS = {"MoCo": "moco", "Jigsaw": "jigsaw"}


def arms(lab: Lab) -> list[Arm]:
    """Every image in a style, the same in all its views; the same steps in all arms."""
    styled: dict[str, Any] = {"views": {"style_p": 1.0, "same": ["texture"]}}
    out = []
    for name, method in METHODS.items():
        base = merge(lab.filtered, {"views": {"scale": [0.7, 1.0]}} if method == "jigsaw" else {})
        out.append(Arm(f"{name}, natural", base, method=method))
        out.append(Arm(f"{name}, stylised", merge(base, styled), method=method))
    return out


def pair(name: str) -> tuple[str, str]:
    return f"{name}, stylised", f"{name}, natural"


def falls_faster(lab: Lab) -> list[PairedDifference]:
    """Loss relative to that of a network that knows nothing, in the first tenth of training."""
    return [below(*pair("MoCo"), "pretext/early")]


def transfers_worse(lab: Lab) -> list[PairedDifference]:
    wanted = "wide/clean" if lab.name == "shapes" else "ood_train"
    return [below(*pair(name), wanted) for name in METHODS]


STUDY = Study(
    name="adf-stylised",
    summary="MoCo and Jigsaw on stylised and on natural images: curves of the pretext task, and transfer",
    reference="Figure 2.6, section 2.4.3.6 of Mishra's thesis",
    arms=arms,
    measures=("pretext", "wide", "ood"),
    claims=(
        Claim("28a", "on stylised images the loss of the pretext task falls faster early", "B", falls_faster),
        Claim("28b", "and features transfer worse than from natural images", "B", transfers_worse),
    ),
    figures=(
        Figure("loss", "Loss of the pretext task", "tenths of training", "loss", ("curve/loss",), over="training"),
        Figure("puzzle", "Accuracy of the puzzle", "tenths of training", "accuracy", ("curve/accuracy",), over="training"),
        Figure("accuracy", "Linear probes", "arm", "accuracy", ("wide/clean", "ood_train", "texture_free")),
    ),
)  # fmt: skip
