"""Object-aware crops beside random ones, at equal steps (claim 35)."""

from __future__ import annotations

from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

RANDOM, MODES = "scene–scene", ("dilate", "scene", "shift")
ONE_RANDOM, ONE_OBJECT = "single, scene–scene", "single, dilate"  # the control: images of one large object
ALIKE = 0.01  # "no worse", "no clear difference": so much of mAP


def arms(lab: Lab) -> list[Arm]:
    """Every arm has as many images per step and as many steps: boxes of an image do not count as images."""

    def crops(mode: str) -> dict[str, Any]:
        return {"crops": {"name": "object", "mode": mode}}

    found = [Arm(RANDOM, lab.scenes, "moco")]
    found += [Arm(mode, merge(lab.scenes, crops(mode)), "moco") for mode in MODES]
    if lab.single:
        found += [
            Arm(ONE_RANDOM, lab.single, "moco"),
            Arm(ONE_OBJECT, merge(lab.single, crops("dilate")), "moco"),
        ]
    return found


def on_scenes(lab: Lab) -> list[PairedDifference]:
    return [
        above("dilate", RANDOM, "map"),
        above("dilate", "shift", "map", margin=-ALIKE, because="no worse"),
    ]


def on_single_objects(lab: Lab) -> list[PairedDifference]:
    """The gain is one of scenes: there it is, it is larger than the gain on single objects, and that is no clear one."""
    gain = {("dilate", "map"): 1.0, (RANDOM, "map"): -1.0}
    single = {(ONE_OBJECT, "map/single"): -1.0, (ONE_RANDOM, "map/single"): 1.0}
    return [
        above("dilate", RANDOM, "map"),
        combined("gain on scenes − gain on single objects", gain | single),
        combined("loss on single objects", single, margin=-ALIKE, because="no clear gain"),
    ]


STUDY = Study(
    name="oac",
    summary="Random crops and the three object-aware ones on scenes; two of them on single objects",
    reference="Table 2 of Mishra et al. 2022",
    arms=arms,
    measures=("multilabel", "single"),
    claims=(
        Claim("35", "on scenes dilated boxes give a higher multi-label mAP than random crops, and no lower one than "
              "shifted boxes", "B", on_scenes),
        Claim("35b", "on single large objects there is no clear difference", "B", on_single_objects),
    ),
    figures=(Figure("map", "Mean average precision", "arm", "mAP", ("map", "map/single")),),
)  # fmt: skip
