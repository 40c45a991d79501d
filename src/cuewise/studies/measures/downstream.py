"""What an encoder is good for on scenes: boxes and pixels of objects."""

from __future__ import annotations

from cuewise.probes.detect import Detect
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.segment import Segment
from cuewise.probes.task import Task
from cuewise.studies.measures.arm import TrainedArm
from cuewise.studies.measures.measure import Quantities, measure

SIZE = 64  # pixels: objects of a scene are small
EPOCHS = 6  # of a detector, all layers trained


def scored(arm: TrainedArm, kind: ProbeKind) -> dict[str, float]:
    """Scores by name, without the name of the test set."""
    train, test = (list(arm.lab.sets[role]) for role in ("objects_train", "objects"))
    task = Task(arm.model.encoder, train, test, keep=False, size=SIZE)
    return {s.name.partition("/")[0]: s.value for s in kind.run(task)}


@measure("detect", "a detector trained with all layers: AP50 and AP of VOC 2007", "objects_train", "objects")
def detect(arm: TrainedArm) -> Quantities:
    found = scored(arm, Detect(epochs=EPOCHS))
    return {"detect/ap50": found["voc07_ap50"], "detect/ap": found["voc07_ap"]}


@measure("segment", "a linear layer per pixel on frozen features: mIoU", "objects_train", "objects")
def segment(arm: TrainedArm) -> Quantities:
    return {"segment/miou": scored(arm, Segment())["miou"]}
