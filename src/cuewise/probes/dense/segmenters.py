"""What segments an image: a linear layer per pixel on frozen features, or an FCN that is trained with its backbone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.data import Batch, Dataset, Loader, auto_workers, ordered
from cuewise.data.annotations.annotated import VOID
from cuewise.encoders import Encoder
from cuewise.encoders.embed import evaluating
from cuewise.encoders.maps import Maps
from cuewise.errors import UserError
from cuewise.probes.dense.fcn import build_fcn
from cuewise.probes.dense.fit import Fit
from cuewise.probes.dense.pixel_views import CroppedView, WholeView
from cuewise.probes.dense.schedule import DenseSchedule
from cuewise.probes.linear import LinearProbe
from cuewise.progress import Progress

PER_IMAGE = 64  # pixels of an image that a linear layer is fitted on
MOST_NUMBERS = 1 << 27  # of the features that it is fitted on: 0.5 GB
BATCH = 32


class Predicted(NamedTuple):
    """An image of a set: its number, the class answered for each of its pixels, and the true ones."""

    row: int
    mask: NDArray[np.uint8]
    target: NDArray[np.uint8]


@dataclass
class Segmenter(ABC):
    """fit(data, table) learns from images with masks; predict(data) gives the class of every pixel.

    size     side of the square that an image is scaled into
    classes  how many; `table` maps the values of a mask to them, VOID where a value does not count
    """

    encoder: Encoder
    size: int
    classes: int
    seed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    @abstractmethod
    def protocol(self) -> str:
        """Name of the protocol with its settings."""

    @abstractmethod
    def fit(self, data: Dataset, table: NDArray[np.uint8]) -> Self:
        """Learn from all images of a masked set."""

    @abstractmethod
    def logits(self, x: Tensor) -> Tensor:
        """B×C×h×w of normalised squares."""

    @property
    @abstractmethod
    def network(self) -> nn.Module:
        """What is put into evaluation mode to predict."""

    def predict(
        self, data: Dataset, table: NDArray[np.uint8], label: str = "segmenting"
    ) -> Iterator[Predicted]:
        """Every readable image, at its own size."""
        for batch, x in self.batches(data, self.view(table), label):
            scores = enlarged(self.logits(x).float(), (self.size, self.size))
            for row, index in enumerate(batch.index.tolist()):
                height, width = batch.facts["extent"][row].tolist()
                target = np.asarray(batch.facts["target"][row])
                own = enlarged(scores[row : row + 1, :, :height, :width], target.shape)
                yield Predicted(index, own[0].argmax(0).to(torch.uint8).cpu().numpy(), target)

    def batches(self, data: Dataset, view: WholeView, label: str) -> Iterator[tuple[Batch, Tensor]]:
        """Readable images with their normalised squares, in evaluation mode; what cannot be read is noted."""
        device = next(self.encoder.parameters()).device
        workers = auto_workers() if len(data) > 1000 else 0
        with evaluating(self.network), Progress(len(data), "images", label) as bar:
            for batch in ordered(data, view, batch_size=BATCH, workers=workers):
                self.skipped |= dict(batch.skipped)
                if len(batch):
                    yield batch, self.encoder.normalise(batch.views["image"].to(device))
                    bar.add(len(batch))

    def view(self, table: NDArray[np.uint8], grid: int = 0) -> WholeView:
        """The whole image."""
        return WholeView(self.size, table, self.fill, self.encoder.card.interpolation, grid)

    @property
    def fill(self) -> tuple[int, int, int]:
        r, g, b = (round(255 * m) for m in self.encoder.card.mean)
        return r, g, b


@dataclass
class PixelProbe(Segmenter):
    """The exact linear probe on frozen maps of all resolutions, laid over each other at the finest; L-BFGS on 64 pixels
    per image."""

    def __post_init__(self) -> None:
        self.maps = Maps(self.encoder)
        self.probe = LinearProbe(seed=self.seed)
        if self.maps.square:
            self.size = self.maps.square
        self.grid = self.size // self.maps.strides[0]

    @property
    def protocol(self) -> str:
        strides = "-".join(map(str, self.maps.strides))
        return f"pixels_{self.probe.protocol}_{PER_IMAGE}per_image_strides{strides}"

    @property
    def network(self) -> nn.Module:
        return self.encoder

    def features(self, x: Tensor) -> Tensor:
        """B×D×g×g."""
        return torch.cat([enlarged(m, (self.grid, self.grid)) for m in self.maps(x)], 1)

    def fit(self, data: Dataset, table: NDArray[np.uint8]) -> Self:
        dim = sum(self.maps.channels)
        share = max(1, min(PER_IMAGE, MOST_NUMBERS // dim // max(1, len(data))))
        X, y, groups = [], [], []
        for batch, x in self.batches(data, self.view(table, self.grid), "features of pixels"):
            found = self.features(x).float().cpu()
            for row, index in enumerate(batch.index.tolist()):
                cells = np.asarray(batch.facts["cells"][row]).reshape(-1)
                known = np.flatnonzero(cells != VOID)
                rng = np.random.default_rng([self.seed, index])
                chosen = rng.permutation(known)[:share]
                X.append(found[row].flatten(1).T[chosen].numpy())
                y.append(cells[chosen].astype(np.int64))
                groups.append(np.full(len(chosen), index))
        labels = np.concatenate(y) if y else np.zeros(0, np.int64)
        if len(np.unique(labels)) < 2:
            raise UserError(
                "the masks of --train show fewer than two classes that count: check --masks and --void"
            )
        self.probe.fit(np.concatenate(X), labels, np.concatenate(groups))
        return self

    def logits(self, x: Tensor) -> Tensor:
        found = self.features(x)
        flat = found.permute(0, 2, 3, 1).flatten(0, 2).float().cpu().numpy()
        p = np.full((len(flat), self.classes), 1e-12, np.float32)
        got = self.probe.predict_proba(flat)
        p[:, : got.shape[1]] += got
        side = (len(found), self.grid, self.grid, self.classes)
        return torch.from_numpy(np.log(p)).reshape(side).permute(0, 3, 1, 2)


@dataclass
class FCNSegmenter(Segmenter):
    """FCN on the dilated backbone; all layers are trained."""

    schedule: DenseSchedule = field(default_factory=lambda: DenseSchedule(0.01, 16, 30))
    auxiliary: float = 0.0
    name: str = "fcn"
    file: Path | None = None

    def __post_init__(self) -> None:
        self.fcn = build_fcn(self.encoder, self.classes, self.auxiliary > 0, self.seed)
        body: Any = self.fcn.backbone
        self.stride = body.stride
        if body.square:
            self.size = body.square

    @property
    def protocol(self) -> str:
        extra = f"_aux{self.auxiliary:g}" if self.auxiliary else ""
        return f"{self.name}_stride{self.stride}_{self.schedule}{extra}"

    @property
    def network(self) -> nn.Module:
        return self.fcn

    def fit(self, data: Dataset, table: NDArray[np.uint8]) -> Self:
        encoder = self.encoder
        device = next(encoder.parameters()).device
        self.fcn.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        view = CroppedView(self.size, table, self.fill, encoder.card.interpolation)
        workers = auto_workers() if len(data) > 1000 else 0
        batch_size = min(self.schedule.batch_size, len(data))
        loader = Loader(data, view, batch_size=batch_size, seed=self.seed, workers=workers)

        def losses(batch: Batch) -> Tensor:
            out = self.fcn(encoder.normalise(batch.views["image"].to(device)))
            target = batch.views["target"].to(device).long()
            loss = known_cross_entropy(out["out"], target)
            return loss + self.auxiliary * known_cross_entropy(out["aux"], target) if "aux" in out else loss

        settings = {"protocol": self.protocol, "size": self.size, "seed": self.seed, "data": data.fingerprint()["hash"],
                    "model": encoder.card.arch, "weights": encoder.card.weights}  # fmt: skip
        fit = Fit(self.fcn, self.schedule, self.seed, settings, self.file)
        fit.run(loader, losses, "training the FCN")
        self.skipped |= fit.skipped
        return self

    def logits(self, x: Tensor) -> Tensor:
        out: Tensor = self.fcn(x)["out"]
        return out


def enlarged(maps: Tensor, size: tuple[int, ...]) -> Tensor:
    return F.interpolate(maps, size, mode="bilinear", align_corners=False)


def known_cross_entropy(z: Tensor, target: Tensor) -> Tensor:
    """Mean over the pixels that count; 0 where none does."""
    total = F.cross_entropy(z, target, ignore_index=VOID, reduction="sum")
    return total / (target != VOID).sum().clamp(min=1)
