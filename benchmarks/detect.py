"""A training step of `cuewise probe detect` over the same step written with torchvision alone.

    python benchmarks/detect.py [--rounds 9]

Both train torchvision's Faster R-CNN with a feature pyramid on a ResNet-18 at 192 pixels, from the same decoded images and
boxes in memory to the optimiser's step. The peer is the loop of torchvision's references: images and targets as lists,
`sum(losses)`, backward, SGD. They take turns in one process; the number is the median over rounds of ratios within a round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torchvision.models import resnet18
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.backbone_utils import _resnet_fpn_extractor
from torchvision.models.detection.rpn import AnchorGenerator

from cuewise.data import Batch, Loader, open_data
from cuewise.encoders import load_encoder
from cuewise.probes.dense.detector import BoxView, Detector, inputs
from cuewise.probes.dense.fit import Fit
from cuewise.probes.dense.schedule import DenseSchedule
from row import row

BATCH, SIZE, GOAL = 4, 192, 1.03
CPU = torch.device("cpu")


def own_step(batch: Batch, names: tuple[str, ...]) -> Callable[[], None]:
    """As the probe takes it: modes, seeds, rate, loss, gradient, optimiser."""
    encoder = load_encoder("torchvision/resnet18", size=SIZE)
    schedule = DenseSchedule(0.0001, BATCH, None, 1000)
    detector = Detector(encoder, names, SIZE, schedule)
    fit = Fit(detector.network, schedule, 0, {}, None)

    def step() -> None:
        detector._modes()
        fit._advance(batch, lambda b: sum(detector.network(*inputs(b, CPU)).values()), 1e-4)

    return step


def bare_step(batch: Batch, classes: int) -> Callable[[], None]:
    """torchvision's own model and loop."""
    backbone = _resnet_fpn_extractor(resnet18(weights=None), 5)
    anchors = AnchorGenerator(tuple((8 * s,) for s in (4, 8, 16, 32, 64)), ((0.5, 1.0, 2.0),) * 5)
    longest = round(1333 * SIZE / 800)
    network = FasterRCNN(backbone, classes + 1, min_size=SIZE, max_size=longest, rpn_anchor_generator=anchors,
                         rpn_post_nms_top_n_train=2000, rpn_pre_nms_top_n_train=2000)  # fmt: skip
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4)
    network.train()

    def step() -> None:
        images, targets = inputs(batch, CPU)
        loss = sum(network(images, targets).values())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        loss.item()
        optimizer.step()

    return step


def timed(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    data = open_data(f"shapes:scenes?n={BATCH}&size={SIZE}")
    view = BoxView(tuple(range(len(data.object_classes))), flip=True)
    batch = next(iter(Loader(data, view, batch_size=BATCH, seed=0, workers=0).batches()))
    torch.manual_seed(0)
    own, bare = own_step(batch, data.object_classes), bare_step(batch, len(data.object_classes))
    for step in (own, bare):
        timed(step)
    ratios, seconds = [], []
    for number in range(rounds):
        first, second = (own, bare) if number % 2 else (bare, own)
        took = {first: timed(first), second: timed(second)}
        ratios.append(took[own] / took[bare])
        seconds.append(took[own])
    took_ms = 1000 * statistics.median(seconds)
    row(
        f"training step of a detector, ResNet-18 with a pyramid, {BATCH} images at {SIZE} px ({took_ms:.0f} ms)",
        "the same step with torchvision alone",
        ratios,
        goal=f"≤ {GOAL}",
    )


if __name__ == "__main__":
    main()
