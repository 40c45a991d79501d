"""Supervised training on images and their diffused copies (claims 23, 24 and 27)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, crossed
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

ORIGINAL, BOTH, ONLY = "original", "original ∪ anisotropic", "anisotropic only"
LEARNED = "Pix2Pix-Anisotropic"  # the filter is a generator that is trained along
ARMS = (ORIGINAL, BOTH, ONLY)
LITTLE = 0.02  # "changes little"


def filtered(lab: Lab, share: float, name: str = "anisotropic", **options: Any) -> dict[str, Any]:
    """An arm on images of which a share is filtered: half of them is what the doubled set has, in the same steps."""
    own: Mapping[str, Any] = {"name": name, "share": share, **options}
    return merge(lab.filtered, lab.started, {"suppress": dict(own), "views": {"blur_p": 0.0}})


def original(lab: Lab) -> dict[str, Any]:
    return merge(lab.filtered, lab.started, {"views": {"blur_p": 0.0}})


def arms(lab: Lab) -> list[Arm]:
    """The same images and steps in all arms; a learned filter shows every image as it is and filtered."""
    settings = (original(lab), filtered(lab, 0.5, **lab.diffusion), filtered(lab, 1.0, **lab.diffusion))
    found = [Arm(name, own, method="supervised") for name, own in zip(ARMS, settings)]
    learned = merge(original(lab), {"generator": lab.generator})
    return [*found, *([Arm(LEARNED, learned, method="supervised")] if lab.generator else [])]


def drawn(lab: Lab) -> str:
    """The domain of drawings: embedded sketches, or what the user calls so."""
    named = [r.partition("/")[2] for r in lab.sets if r.startswith("ood/") and "sketch" in r]
    return named[0] if named else "sketch"


def beyond_texture(lab: Lab) -> list[PairedDifference]:
    """After fine-tuning on clean images: better without texture, and clean accuracy no more than a little lower."""
    sets = ("silhouette", "sketch", "disjoint") if lab.name == "shapes" else ("texture_free", drawn(lab))
    out = [above(BOTH, ORIGINAL, f"after/{name}") for name in sets]
    return [*out, above(BOTH, ORIGINAL, "after/clean", margin=-LITTLE, because="no more than 2 points lower")]


def before_tuning(lab: Lab) -> list[PairedDifference]:
    """Before it: better without texture too, the reading that fine-tuning does not touch."""
    sets = ("silhouette", "sketch", "disjoint") if lab.name == "shapes" else ("texture_free", drawn(lab))
    return [above(BOTH, ORIGINAL, f"before/{name}") for name in sets]


def clean_is_lost(lab: Lab) -> list[PairedDifference]:
    return [above(arm, ORIGINAL, "before/clean", -1) for arm in (BOTH, ONLY)]


def most_on_sketches(lab: Lab, arm: str = BOTH) -> list[PairedDifference]:
    """The gain on drawings, and that gain against the one on each other set."""
    sketch = drawn(lab)
    others = (
        ("silhouette", "disjoint")
        if lab.name == "shapes"
        else tuple(n for r in lab.sets if r.startswith("ood/") and (n := r.partition("/")[2]) != sketch)
    )
    gains = [
        crossed(f"gain on {sketch} − gain on {n}", arm, ORIGINAL, f"before/{sketch}", f"before/{n}")
        for n in ("clean", *others)
    ]
    return [above(arm, ORIGINAL, f"before/{sketch}"), *gains]


def loss_under(change: str, arm: str, other: str) -> PairedDifference:
    """How much more accuracy an arm loses under a change than another arm, claimed to be above 0."""
    return crossed(f"loss under {change}: {arm} − {other}", arm, other, "before/clean", f"before/{change}")


def fewer_losses(lab: Lab) -> list[PairedDifference]:
    return [loss_under(change, ORIGINAL, BOTH) for change in ("lowpass", "noise")]


def weather(lab: Lab) -> list[PairedDifference]:
    return [loss_under("weather", BOTH, ORIGINAL)]


def spread(lab: Lab) -> list[PairedDifference]:
    return [above(BOTH, ORIGINAL, "before/saliency")]


def confident(lab: Lab) -> list[PairedDifference]:
    return [above(BOTH, ORIGINAL, "before/confidence")]


STUDY = Study(
    name="adf-supervised",
    summary="Supervised training on images and their diffused copies, before and after fine-tuning on clean images",
    reference="Tables 2.3, 2.4, 2.6, 2.11 and 2.12, figures 2.4, 2.5 and 2.8 of Mishra's thesis",
    arms=arms,
    measures=("answers",),
    claims=(
        Claim("23a", "trained on original ∪ diffused and fine-tuned on clean images, a classifier is better on images "
              "without texture and on new textures; clean accuracy changes little", "B", beyond_texture),
        Claim("23b", "the same before fine-tuning", "B", before_tuning),
        Claim("23c", "without fine-tuning, clean accuracy is lost", "B", clean_is_lost),
        Claim("23d", "original ∪ diffused gains most on sketches", "B", most_on_sketches),
        Claim("23e", "with a learned filter the gain on sketches is the largest, too", "B",
              lambda lab: most_on_sketches(lab, LEARNED)),
        Claim("24a", "it loses less than the baseline when high frequencies are removed and under noise", "B", fewer_losses),
        Claim("24b", "it loses more under weather", "C", weather),
        Claim("27a", "its saliency is more spread", "C", spread),
        Claim("27b", "it is more confident on the images that it gets right", "C", confident),
    ),
    figures=(
        Figure("before", "Accuracy before fine-tuning on clean images", "arm", "accuracy",
               tuple(f"before/{n}" for n in ("clean", "texture_free", "lowpass", "noise", "weather"))),
        Figure("after", "Accuracy after fine-tuning on clean images", "arm", "accuracy",
               tuple(f"after/{n}" for n in ("clean", "texture_free", "lowpass", "noise", "weather"))),
    ),
)  # fmt: skip
