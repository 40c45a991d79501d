"""What must be read beside the numbers of a study: too few seeds, and tests on images that were trained on."""

from __future__ import annotations

from cuewise.data import open_data
from cuewise.data.overlap import check_overlap
from cuewise.errors import UserError
from cuewise.studies.claims import few_seeds
from cuewise.studies.labs import Lab


def cautions(lab: Lab, seeds: int) -> list[str]:
    """One sentence each; a test set of nothing but training images is refused."""
    own = lab.name != "shapes"
    found = [few_seeds(seeds), *([_no_test_set(lab), *_overlaps(lab)] if own else [])]
    return [text for text in found if text]


def _no_test_set(lab: Lab) -> str:
    if "clean" in lab.sets:
        return ""
    return (
        "no --val: clean, rotation, colour and heads are measured on a held-out fifth of --data, which the probes have not "
        "seen but the encoders were pretrained on; give --val for images that are new to both"
    )


def _overlaps(lab: Lab) -> list[str]:
    """--val against --data, and every other domain of --ood against the first."""
    pairs = [("probe", "clean", "--val", "--data")] if "clean" in lab.sets else []
    pairs += [
        ("ood_train", role, "--ood", "its first domain") for role in lab.sets if role.startswith("ood/")
    ]
    out = []
    for train, test, option, where in pairs:
        specs = " ".join(lab.sets[test])
        found = check_overlap(open_data(list(lab.sets[train])), open_data(list(lab.sets[test])))
        if found.whole:
            raise UserError(
                f"{option} {specs}: all of its {found.images} images are in {where} as well, so accuracies would be of "
                "images that were trained on; give other images"
            )
        if found.count:
            out.append(f"{option} {specs}, compared with {where}: {found}")
    return out
