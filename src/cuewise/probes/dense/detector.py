"""Faster R-CNN of torchvision on an encoder: trained, then asked for boxes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign

from cuewise.data import Batch, Boxes, Dataset, Loader, Sample, Shown, auto_workers, no_boxes, ordered
from cuewise.encoders import Encoder
from cuewise.encoders.embed import evaluating
from cuewise.encoders.maps import is_resnet
from cuewise.errors import UserError
from cuewise.probes.dense.bodies import C4, Layer4Head, Pyramid
from cuewise.probes.dense.boxes_ap import Detections
from cuewise.probes.dense.fit import Fit, freeze, freeze_norms, precise_norms, seeded
from cuewise.probes.dense.schedule import DenseSchedule
from cuewise.progress import Progress

PUBLISHED = 800  # short side in pixels that published anchors and proposals are made for


@dataclass(frozen=True)
class DetectorHeads:
    """Sizes of what is new in a detector; torchvision's own are the default."""

    channels: int = 256  # of the pyramid
    hidden: int = 1024  # of the box head
    boxes: int = 512  # sampled per image for the box head
    anchors: int = 256  # sampled per image for the proposals
    proposals: tuple[int, int] = (2000, 1000)  # kept in training and at test

    def __str__(self) -> str:
        return f"heads{self.channels}-{self.hidden}-{self.boxes}-{self.proposals[0]}"


@dataclass(frozen=True)
class BoxView:
    """The original image, flipped in half of the cases, with its boxes; sizes are the detector's business."""

    classes: tuple[int, ...]  # class of the set → trained class, −1 for one that was not trained
    flip: bool = False

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        image, boxes = sample.image, sample.facts.boxes or no_boxes()
        numbers = np.array([*self.classes, -1], np.int64)[boxes.classes]
        boxes = Boxes(boxes.corners, numbers, boxes.flags).select(numbers >= 0)
        if self.flip and rng.random() < 0.5:
            width = image.shape[1]
            corners = np.stack([width - boxes.corners[:, 2], boxes.corners[:, 1], width - boxes.corners[:, 0],
                                boxes.corners[:, 3]], 1)  # fmt: skip
            image, boxes = np.ascontiguousarray(image[:, ::-1]), Boxes(corners, boxes.classes, boxes.flags)
        return Shown({}, {"image": image, "boxes": boxes})


@dataclass
class Detector:
    """fit(data) learns boxes of `names`; predict(data) gives those it finds, for every readable image.

    body    c4, fpn, or auto: fpn
    frozen  only what is new is trained; norm: batch statistics of the encoder are trained or frozen
    size    short side at test; scales: those drawn from in training
    """

    encoder: Encoder
    names: tuple[str, ...]
    size: int
    schedule: DenseSchedule
    heads: DetectorHeads = field(default_factory=DetectorHeads)
    body: str = "fpn"
    frozen: bool = False
    norm: str = "train"
    scales: tuple[int, ...] = ()
    precise: int = 0  # batches over which batch statistics are taken again at the end
    seed: int = 0
    file: Path | None = None
    skipped: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.body not in ("c4", "fpn"):
            raise UserError(f"--body {self.body}: c4 or fpn")
        if self.norm not in ("train", "frozen"):
            raise UserError(f"--norm {self.norm}: train or frozen")
        self.scales = self.scales or (self.size,)
        self.network = self._build()

    @property
    def protocol(self) -> str:
        trained = "frozen" if self.frozen else f"tuned_norm_{self.norm}"
        span = f"{self.scales[0]}-{self.scales[-1]}" if len(self.scales) > 1 else f"{self.scales[0]}"
        return f"fasterrcnn_{self.body}_{trained}_{self.heads}_{self.schedule}/short{self.size}_trained{span}"

    def fit(self, data: Dataset) -> Self:
        device = next(self.encoder.parameters()).device
        self.network.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        view = BoxView(self._numbers(data), flip=True)
        workers = auto_workers() if len(data) > 1000 else 0
        loader = Loader(
            data, view, batch_size=min(self.schedule.batch_size, len(data)), seed=self.seed, workers=workers
        )

        def losses(batch: Batch) -> Tensor:
            return sum(self.network(*inputs(batch, device)).values())  # type: ignore[return-value]

        fingerprint = data.fingerprint()["hash"]
        settings = {"protocol": self.protocol, "seed": self.seed, "data": fingerprint, "classes": self.names,
                    "model": self.encoder.card.arch, "weights": self.encoder.card.weights}  # fmt: skip
        fit = Fit(self.network, self.schedule, self.seed, settings, self.file)
        fit.run(loader, losses, "training the detector", self._modes)
        self._modes()
        if self.precise and not self.frozen:
            precise_norms(self.network, loader, losses, self.precise, self.seed)
        self.skipped |= fit.skipped
        return self

    def predict(
        self, data: Dataset, label: str = "detecting"
    ) -> tuple[list[int], list[Detections], list[Boxes]]:
        """Numbers of the readable images, what is found on them, and what is there, in trained classes."""
        device = next(self.encoder.parameters()).device
        view = BoxView(self._numbers(data))
        rows: list[int] = []
        predicted: list[Detections] = []
        true: list[Boxes] = []
        workers = auto_workers() if len(data) > 1000 else 0
        with evaluating(self.network), Progress(len(data), "images", label) as bar:
            for batch in ordered(data, view, batch_size=8, workers=workers):
                self.skipped |= dict(batch.skipped)
                if not len(batch):
                    continue
                for found in self.network(inputs(batch, device)[0]):
                    arrays = {k: v.cpu().numpy() for k, v in found.items()}
                    predicted.append(
                        Detections(arrays["boxes"], arrays["labels"].astype(np.int64) - 1, arrays["scores"])
                    )
                true += batch.facts["boxes"]
                rows += batch.index.tolist()
                bar.add(len(batch))
        return rows, predicted, true

    def _numbers(self, data: Dataset) -> tuple[int, ...]:
        """The trained class of each class of a set, −1 where there is none."""
        return tuple(self.names.index(n) if n in self.names else -1 for n in data.object_classes)

    def _modes(self) -> None:
        """What does not learn stays in evaluation mode."""
        self.network.train()
        self._freeze()

    def _freeze(self) -> None:
        if self.frozen:
            freeze(self.encoder_)
        elif self.norm == "frozen":
            freeze_norms(self.encoder_)

    def _build(self) -> FasterRCNN:
        card, heads = self.encoder.card, self.heads
        self.encoder_ = copy.deepcopy(self.encoder).requires_grad_(True)
        with seeded(self.seed):
            body: Any = C4(self.encoder_) if self.body == "c4" else Pyramid(self.encoder_, heads.channels)
            levels = len(body.strides)
            if self.body == "c4":
                sizes = tuple(max(4, round(s * self.size / PUBLISHED)) for s in (32, 64, 128, 256, 512))
                anchors, align, head = (sizes,), 14, Layer4Head(self.encoder_)
                predictor = FastRCNNPredictor(head.channels, len(self.names) + 1)
                names = ["0"]
            else:
                anchors, align = tuple((8 * s,) for s in body.strides), 7  # type: ignore[assignment]
                head = TwoMLPHead(heads.channels * align**2, heads.hidden)
                predictor = FastRCNNPredictor(heads.hidden, len(self.names) + 1)
                names = [str(i) for i in range(levels if body.square else levels - 1)]
            longest = body.square or round(1333 * max(self.scales[-1], self.size) / PUBLISHED)
            network = FasterRCNN(
                body,
                min_size=min(self.size, longest),
                max_size=longest,
                image_mean=card.mean,
                image_std=card.std,
                rpn_anchor_generator=AnchorGenerator(anchors, ((0.5, 1.0, 2.0),) * len(anchors)),
                rpn_pre_nms_top_n_train=heads.proposals[0],
                rpn_pre_nms_top_n_test=heads.proposals[1],
                rpn_post_nms_top_n_train=heads.proposals[0],
                rpn_post_nms_top_n_test=heads.proposals[1],
                rpn_batch_size_per_image=heads.anchors,
                box_batch_size_per_image=heads.boxes,
                box_roi_pool=MultiScaleRoIAlign(names, align, 2),
                box_head=head,
                box_predictor=predictor,
                size_divisible=body.divisor,
            )
        transform: Any = network.transform
        transform.min_size = tuple(min(s, longest) for s in (*self.scales, self.size))  # the last one at test
        self._freeze()
        return network


def inputs(batch: Batch, device: torch.device) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    """Images in 0…1 and targets, as torchvision's detectors take them; crowds are no targets."""
    images = [as_tensor(image, device) for image in batch.facts["image"]]
    targets = []
    for boxes in batch.facts["boxes"]:
        single = boxes.select(~boxes.flags["crowd"]) if "crowd" in boxes.flags else boxes
        targets.append(
            {
                "boxes": torch.from_numpy(np.ascontiguousarray(single.corners)).to(device),
                "labels": torch.from_numpy(single.classes + 1).to(device),
            }
        )
    return images, targets


def as_tensor(image: Any, device: torch.device) -> Tensor:
    pixels = image if isinstance(image, Tensor) else torch.from_numpy(image)
    return pixels.to(device).permute(2, 0, 1).float().div_(255)


def best_body(encoder: Encoder, asked: str | None, usual: str) -> str:
    """What was asked for, else the preset's where the encoder has it."""
    if asked is not None:
        return asked
    return "fpn" if usual == "c4" and not is_resnet(encoder.backbone) else usual


def span(text: str) -> tuple[int, ...]:
    """ "480:800" → 480, 512 … 800, eleven or fewer sizes; "192" → one."""
    low, _, high = text.partition(":")
    try:
        a, b = int(low), int(high or low)
    except ValueError:
        raise UserError(f"--scales {text}: LOW:HIGH in pixels, for example 480:800") from None
    if not 16 <= a <= b:
        raise UserError(f"--scales {text}: from 16 pixels on, the smaller first")
    return tuple(dict.fromkeys(int(v) for v in np.linspace(a, b, 11).round()))
