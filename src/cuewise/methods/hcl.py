"""HCL, hyperbolic contrastive learning: objects in Euclidean space (MoCo or DenseCL), scenes and objects in the Poincaré ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from cuewise.data import Batch, Dataset
from cuewise.encoders.heads import unit
from cuewise.encoders.momentum import KeyNetwork
from cuewise.encoders.spaces import Heads
from cuewise.errors import UserError
from cuewise.methods import moco
from cuewise.methods.densecl import DenseKeys, Projections, dense_head, project
from cuewise.methods.method import Method, Setup, Step, at_least
from cuewise.methods.queue import Queue
from cuewise.objectives.dense import dense_match, dense_nce
from cuewise.objectives.hyperbolic import clip, exp0, riemannian
from cuewise.objectives.nce import at_least_single, extended_nce
from cuewise.objectives.scene_object import norm_only, scene_object_loss
from cuewise.views.box_sources import box_source
from cuewise.views.scene_objects import SceneObjects, with_scenes


@dataclass(frozen=True)
class Settings(moco.Settings):
    """--set hcl.*"""

    base: Annotated[str, "how two views of an object are compared: moco, or densecl (also cell by cell)"] = (
        "moco"
    )
    dense: Annotated[float | None, "of base=densecl: share of the loss of cells [0.5]"] = None
    weight: Annotated[float, "of the scene–object loss (λ)"] = 0.1
    curvature: Annotated[float, "of the ball (c), whose radius is 1/√c"] = 0.05
    decoupled: Annotated[bool, "the scene–object loss trains the norm of a scene, not its direction"] = False
    riemannian: Annotated[bool, "gradients at points of the ball are scaled by the inverse metric"] = True
    clip: Annotated[float | None, "largest norm of a tangent vector [no limit]"] = None
    boxes: Annotated[
        str | None,
        "proposals, given, or a table of `cuewise make boxes` [given where DATA has objects, else proposals]",
    ] = None
    smallest: Annotated[
        float | None, "boxes below this many pixels squared are left out [56, scaled with the size]"
    ] = None


BASES = ("moco", "densecl")


class HCL(Method):
    """L = L_euclidean(two views of an object, both orders) + λ · L_hyperbolic(scene, its object)."""

    name = "hcl"
    summary = (
        "objects by MoCo or DenseCL, and scenes near their objects in hyperbolic space (HCL); needs boxes"
    )
    citation = "Ge et al. 2023"
    equation = (
        "L = L_moco(two views of an object, both orders) + λ L_hyp\n"
        "L_hyp = −log e^{−d(s,o)/τ} / (e^{−d(s,o)/τ} + Σ_n e^{−d(s,o_n)/τ}),   d: distance in the Poincaré ball of curvature c"
    )
    views = {"query": "moco-v2", "key": "moco-v2", "object": "moco-v2", "scene": "moco-v2"}
    takes_crops = False
    optim = {"name": "sgd", "lr": 0.03, "reference_batch": 256, "weight_decay": 1e-4}
    Settings = Settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        s: Settings = self.settings
        self.heads = Heads(self.encoder, ("z0",), self.encoder.dim, s.dim, curvature=s.curvature)
        self.dense = dense_head(self.encoder, None, s.dim) if s.base == "densecl" else None
        kind = KeyNetwork if self.dense is None else DenseKeys
        self.key_network = moco.key_network(s, self.generator, *self.query_parts, kind=kind)
        self.queue = Queue(s.queue or 0, s.dim, self.generator, 2)  # keys of the two views of an object
        self.objects = Queue(s.queue or 0, s.dim, self.generator)  # points of the ball
        lengths = torch.rand(len(self.objects), 1, generator=self.generator)
        self.objects.keys.copy_(exp0(self.objects.keys * lengths, s.curvature))
        self.cells = None if self.dense is None else Queue(s.queue or 0, s.dim, self.generator, 2)

    @classmethod
    def check(cls, setup: Setup) -> None:
        moco.check_momentum(cls.name, setup)
        s: Settings = setup.settings
        if s.base not in BASES:
            raise UserError(f"hcl.base {s.base}: {' or '.join(BASES)}")
        at_least("hcl.dense", s.dense, 0, 1)
        if s.dense is not None and s.base != "densecl":
            raise UserError(f"hcl.dense is for hcl.base=densecl, and the base is {s.base}")
        at_least("hcl.weight", s.weight, 0)
        at_least("hcl.curvature", s.curvature, 1e-6)
        if s.center or s.negatives_gradient:
            raise UserError("hcl.center and hcl.negatives_gradient are for negatives, and hcl takes none")
        if s.weight == 0 and (s.decoupled or not s.riemannian or s.clip is not None):
            raise UserError("hcl.decoupled, riemannian and clip have no meaning with hcl.weight=0")

    @classmethod
    def regions(cls, setup: Setup, data: Dataset) -> SceneObjects:
        """Where the crops of the four views are taken."""
        s: Settings = setup.settings
        source = box_source(s.boxes or ("given" if data.object_classes else "proposals"), data, "hcl.boxes")
        return SceneObjects(source, cls.least(setup), 256 * setup.size / 224)

    @classmethod
    def usable(cls, setup: Setup, data: Dataset) -> Dataset:
        """The images on which there are two objects."""
        return with_scenes(data, cls.regions(setup, data).source, cls.least(setup))

    @classmethod
    def least(cls, setup: Setup) -> float:
        smallest: float | None = setup.settings.smallest
        return 56 * setup.size / 224 if smallest is None else smallest

    @property
    def projector(self) -> nn.Module:
        return self.heads.mlps[0]

    def own_spaces(self) -> Heads:
        return self.heads

    @property
    def chance_loss(self) -> float:
        return (1 + self.settings.weight) * math.log(self.settings.queue + 1)

    @property
    def query_parts(self) -> tuple[nn.Module, ...]:
        """What the key network is a copy of."""
        own = (self.encoder, self.projector)
        return own if self.dense is None else (*own, self.dense)

    def begin_step(self, progress: float) -> None:
        self.progress = progress
        self.key_network.follow(*self.query_parts)

    def forward(self, batch: Batch) -> Step:
        s: Settings = self.settings
        v = batch.views
        k1, k2, o = self.key_network.embed([v["query"], v["key"], v["object"]])  # B×C each, without gradient
        q1, q2 = (self.query(v[role]) for role in ("query", "key"))
        u = self.projector(self.encoder(v["scene"]))  # B×C, not normalised
        o = at_least_single(z_of(o))
        with torch.autocast(u.device.type, enabled=False):
            euclidean = (self.contrast(q1, k2, 1) + self.contrast(q2, k1, 0)) / 2
            obj = self.in_ball(o)
            hyperbolic = scene_object_loss(
                self.scene_point(at_least_single(u)), obj, self.objects.keys, c=s.curvature, tau=s.temperature
            )
            loss = euclidean + s.weight * hyperbolic
        self.queue.hold(torch.stack([unit(z_of(k1)), unit(z_of(k2))], dim=1))
        self.objects.hold(obj)
        if self.cells is not None:
            self.cells.hold(torch.stack([unit(k.dense.mean(2)) for k in (k1, k2)], dim=1))
        extra = {
            "euclidean": euclidean.detach(),
            "hyperbolic": hyperbolic.detach(),
            "scene_norm": at_least_single(u.detach()).norm(dim=1).mean(),
            "object_norm": o.norm(dim=1).mean(),
        }
        return Step(loss, unit(z_of(q1)).detach(), unit(z_of(k2)), extra=extra)

    def query(self, images: Tensor) -> Tensor | Projections:
        """A view of an object with gradient: B×C, or with the cells of its map."""
        if self.dense is None:
            found: Tensor = self.projector(self.encoder(images))
            return found
        return project(self.encoder, self.projector, self.dense, images)

    def contrast(self, query: Tensor | Projections, key: Tensor | Projections, space: int) -> Tensor:
        """The loss of objects against the queue of that view's keys: MoCo's, or mixed with that of DenseCL's cells."""
        tau, q, k = self.settings.temperature, unit(z_of(query)), unit(z_of(key))  # B×C
        keys = self.queue.keys[space]  # K×C
        whole = extended_nce((q * k).sum(1), q @ keys.T, None, tau=tau, alpha=(), mode="in")
        if self.cells is None:
            return whole
        assert isinstance(query, Projections)
        assert isinstance(key, Projections)
        match = dense_match(query.cells, key.cells)
        cells = dense_nce(query.dense, key.dense, match, self.cells.keys[space], tau=tau)
        share = 0.5 if self.settings.dense is None else self.settings.dense
        return (1 - share) * whole + share * cells

    def in_ball(self, u: Tensor) -> Tensor:
        """Tangent vectors at the origin B×C → points of the ball."""
        s: Settings = self.settings
        return exp0(u if s.clip is None else clip(u, s.clip), s.curvature)

    def scene_point(self, u: Tensor) -> Tensor:
        """The same for scenes, with the gradient that the settings ask for."""
        point = self.in_ball(norm_only(u) if self.settings.decoupled else u)
        return riemannian(point, self.settings.curvature) if self.settings.riemannian else point


def z_of(found: Tensor | Projections) -> Tensor:
    """The projection of whole images."""
    return found.z if isinstance(found, Projections) else found
