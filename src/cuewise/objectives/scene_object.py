"""The loss between scenes and their objects in the Poincaré ball (M81)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cuewise.objectives.hyperbolic import distance, distances


def scene_object_loss(scene: Tensor, obj: Tensor, others: Tensor, *, c: float, tau: float) -> Tensor:
    """−log e^{−d(s,o)/τ} / (e^{−d(s,o)/τ} + Σ_n e^{−d(s,o_n)/τ}), the mean over scenes.

    scene  B×D points of the ball, with gradient
    obj    B×D, the object of each scene
    others K×D, objects of other images
    """
    positive = -distance(scene, obj, c)[:, None]  # B×1
    negative = -distances(scene, others, c)  # B×K
    logits = torch.cat([positive, negative], dim=1) / tau
    return F.cross_entropy(logits, torch.zeros(len(scene), dtype=torch.long, device=scene.device))


def norm_only(u: Tensor) -> Tensor:
    """u with gradient through its length alone: the direction is held."""
    length = torch.linalg.vector_norm(u, dim=-1, keepdim=True)
    return length * (u / length.clamp(min=1e-12)).detach()
