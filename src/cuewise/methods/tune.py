"""Tuning: an encoder that already exists answers changed images as it answered unchanged ones."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import torch
from torch import Tensor

from cuewise.data import Batch, Dataset
from cuewise.encoders.heads import unit
from cuewise.encoders.momentum import split_rows
from cuewise.encoders.pooling import pooled
from cuewise.errors import UserError
from cuewise.methods.method import Method, MethodSettings, Setup, Step, ViewSpec, at_least, by_query
from cuewise.objectives.tune import distance, teacher_nce


@dataclass(frozen=True)
class Settings(MethodSettings):
    """weights of the three parts of the loss, temperature (τ) of the contrast, batch statistics, images to draw."""

    keep: Annotated[float, "weight of keeping the features of unchanged images, relative to pull"] = 1.0
    pull: Annotated[
        float, "weight of the distance of changed images to the teacher's features of the unchanged ones"
    ] = 1.5
    contrast: Annotated[
        float, "weight of distinguishing an image from the others of the batch and from its negatives"
    ] = 1.0
    temperature: Annotated[float, "τ of the contrast"] = 0.1
    statistics: Annotated[
        str, "own: the model's running statistics, and no dropout; batch: those of each batch"
    ] = "own"
    images: Annotated[int, "images drawn from DATA, always the same ones; 0 takes all"] = 4800


class Tune(Method):
    """The frozen original is the teacher: views whose cue was removed or exchanged must give its features of the unchanged
    view, among those of other images; negatives are pushed away from it."""

    name = "tune"
    summary = (
        "turn a cue dial of a trained encoder and keep what it knows: its frozen original is the teacher"
    )
    citation = "this package; negatives: Ge et al. 2021"
    equation = (
        "L = pull · (1 − cos(s(changed), t(plain)) + keep · (1 − cos(s(plain), t(plain)))) + contrast · L_nce\n"
        "L_nce: s(changed) finds t(plain) among the batch; a negative adds e^{α s(negative)·t(plain)/τ} to the denominator"
    )
    views = {"plain": "tune", "changed": "tune"}
    negatives_from = ("plain",)
    keeps_classifier = True
    unused = "draws a fixed part (--set tune.images=N; 0 takes all)"
    optim = {
        "name": "adamw",
        "lr": 1e-4,
        "reference_batch": 32,
        "weight_decay": 1e-4,
        "layer_decay": 1.0,
    }
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.encoder.head is not None:
            self.encoder.head.requires_grad_(False)
        self.teacher = copy.deepcopy(self.encoder.backbone).requires_grad_(False)
        self.train()

    @classmethod
    def shown(cls, setup: Setup) -> tuple[ViewSpec, ...]:
        """The same crop twice: unchanged, and as the cue dials change it."""
        return (
            ViewSpec("plain", "tune", drops=("color", "texture", "blur", "rotation")),
            ViewSpec("changed", "tune", shares=("crop", "flip")),
        )

    @classmethod
    def usable(cls, setup: Setup, data: Dataset) -> Dataset:
        most = setup.settings.images
        if not most or len(data) <= most:
            return data
        return data.select(np.sort(np.random.default_rng(0).permutation(len(data))[:most]))

    @classmethod
    def check(cls, setup: Setup) -> None:
        s: Settings = setup.settings
        for name in ("keep", "pull", "contrast", "images"):
            at_least(f"tune.{name}", getattr(s, name), 0)
        if s.temperature <= 0:
            raise UserError(f"tune.temperature {s.temperature}: must be above 0")
        if s.statistics not in ("own", "batch"):
            raise UserError(f"tune.statistics {s.statistics!r}: own or batch")
        if not s.pull and not s.contrast:
            raise UserError("tune.pull 0 and tune.contrast 0 leave nothing to learn: give one of them")
        if setup.negatives.active and not s.contrast:
            raise UserError(
                "--negatives only affect the contrastive term: set tune.contrast above 0, or --alpha 0"
            )

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.teacher.eval()
        if self.settings.statistics == "own":
            self.encoder.eval()
        return self

    def forward(self, batch: Batch) -> Step:
        s: Settings = self.settings
        plain, changed = batch.views["plain"], batch.views["changed"]
        t = self.taught(plain)  # B×C, without gradient
        # B×C, B×C, B·m×C per kind
        z, z_plain, *ns = self.embed([changed, plain, *self.made_of(batch, "plain")])
        negatives = by_query(ns, len(z))  # B×M×C
        with torch.autocast(z.device.type, enabled=False):
            moved, stayed = distance(z, t), distance(z_plain, t)
            loss = s.pull * (moved + s.keep * stayed)
            if s.contrast:
                loss = loss + s.contrast * self.contrast(z, t, negatives)
        extra = {"moved": moved.detach(), "drift": stayed.detach()}
        return Step(loss, z.detach(), t, None if negatives is None else negatives.detach(), extra)

    def contrast(self, z: Tensor, t: Tensor, negatives: Tensor | None) -> Tensor:
        dial, offset = self.negatives, self.comm.rank * len(z)
        return teacher_nce(
            z,
            t,
            self.comm.gather(t),
            negatives,
            tau=self.settings.temperature,
            alpha=dial.weights,
            mode=dial.mode,
            offset=offset,
        )

    @torch.no_grad()
    def taught(self, x: Tensor) -> Tensor:
        """The teacher's features."""
        return unit(pooled(self.teacher, x))

    def embed(self, images: list[Tensor]) -> list[Tensor]:
        """The student's features, of all images in one pass."""
        sizes = [len(x) for x in images]
        return split_rows(unit(self.encoder(torch.cat(images))), sizes)
