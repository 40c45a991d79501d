"""The Poincaré ball of curvature −c: points of norm below 1/√c, where distances grow without bound towards the border.

O. Ganea, G. Bécigneul, T. Hofmann, "Hyperbolic Neural Networks", NeurIPS 2018; V. Khrulkov et al., "Hyperbolic Image
Embeddings", CVPR 2020. Everything is computed in double precision where the device has it and returned in the type of the
input (at least float32): at norm 0.999/√c a float32 sum of squares has lost half of the distances' digits.
The operations of the papers are all here, also those that training does not need, for work on embeddings (docs/objects.md).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

BORDER = 1e-3  # points stay at norm ≤ (1 − BORDER)/√c
SMALLEST = 1e-5  # norms are divided by no less
LARGEST = 15.0  # tanh is 1 beyond, in float32
OUTSIDE = 1e-12  # least conformal factor: points that were not projected get a large distance, not NaN
TINY = 1e-14  # of the squared distance ratio; the root has infinite slope at 0


def exp0(u: Tensor, c: float) -> Tensor:
    """Exponential map at the origin, tanh(√c‖u‖)·u/(√c‖u‖), projected into the ball.  u  …×D tangent vectors"""
    v = _precise(u)
    a = math.sqrt(c) * _norm(v)
    return _returned(project(v * (a.clamp(max=LARGEST).tanh() / a), c), u)


def log0(x: Tensor, c: float) -> Tensor:
    """Logarithmic map at the origin, artanh(√c‖x‖)·x/(√c‖x‖): the inverse of `exp0` up to its projection.  x  …×D"""
    y = _precise(x)
    a = math.sqrt(c) * _norm(y)
    return _returned(y * (_artanh(a) / a), x)


def project(x: Tensor, c: float) -> Tensor:
    """x with its norm cut to (1 − 10⁻³)/√c.  x  …×D"""
    y = _precise(x)
    return _returned(y * ((1 - BORDER) / math.sqrt(c) / _norm(y)).clamp(max=1.0), x)


def clip(u: Tensor, radius: float) -> Tensor:
    """Tangent vectors with their norm cut to `radius`: u·min(1, radius/‖u‖).  u  …×D"""
    return u * (radius / _norm(u)).clamp(max=1.0)


def mobius_add(x: Tensor, y: Tensor, c: float) -> Tensor:
    """x ⊕ y = [(1 + 2c⟨x,y⟩ + c‖y‖²)x + (1 − c‖x‖²)y] / (1 + 2c⟨x,y⟩ + c²‖x‖²‖y‖²).  x, y  …×D"""
    p, q = _precise(x), _precise(y)
    xy, xx, yy = ((a * b).sum(-1, keepdim=True) for a, b in ((p, q), (p, p), (q, q)))
    above = (1 + 2 * c * xy + c * yy) * p + (1 - c * xx) * q
    below = (1 + 2 * c * xy + c * c * xx * yy).clamp(min=torch.finfo(p.dtype).tiny)
    return _returned(above / below, x)


def distance(x: Tensor, y: Tensor, c: float) -> Tensor:
    """d(x, y) = (2/√c)·asinh √(c‖x − y‖² / ((1 − c‖x‖²)(1 − c‖y‖²))) of rows.  x, y  …×D → …"""
    p, q = _precise(x), _precise(y)
    square = (p - q).square().sum(-1)
    return _returned(_from_square(square, p.square().sum(-1), q.square().sum(-1), c), x)


def mobius_distance(x: Tensor, y: Tensor, c: float) -> Tensor:
    """The same distance as (2/√c)·artanh(√c‖(−x) ⊕ y‖).  x, y  …×D → …"""
    moved = mobius_add(-_precise(x), _precise(y), c)
    return _returned((2 / math.sqrt(c)) * _artanh(math.sqrt(c) * _norm(moved)).squeeze(-1), x)


def distances(x: Tensor, y: Tensor, c: float) -> Tensor:
    """All distances between two sets of points, with memory for N×K numbers only.  x  N×D, y  K×D → N×K"""
    p, q = _precise(x), _precise(y)
    xx, yy = p.square().sum(-1)[:, None], q.square().sum(-1)[None]
    return _returned(_from_square((xx + yy - 2 * p @ q.T).clamp(min=0), xx, yy, c), x)


def norm0(x: Tensor, c: float) -> Tensor:
    """Distance to the origin, 2‖log₀ x‖.  x  …×D → …"""
    return distance(x, torch.zeros_like(x), c)


def riemannian(x: Tensor, c: float) -> Tensor:
    """x itself; its gradient is multiplied by the inverse metric (1 − c‖x‖²)²/4 on the way back.  x  …×D"""
    return _Riemannian.apply(x, c)


class _Riemannian(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, c: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.c = c
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        inverse = (1 - ctx.c * _precise(x).square().sum(-1, keepdim=True)).square() / 4
        return grads[0] * inverse.to(grads[0].dtype), None


def _from_square(square: Tensor, xx: Tensor, yy: Tensor, c: float) -> Tensor:
    """The distance from ‖x − y‖², ‖x‖² and ‖y‖²."""
    ratio = c * square / ((1 - c * xx).clamp(min=OUTSIDE) * (1 - c * yy).clamp(min=OUTSIDE))
    return (2 / math.sqrt(c)) * ratio.clamp(min=TINY).sqrt().asinh()


def _artanh(a: Tensor) -> Tensor:
    edge = 1 - 1e-5 if a.dtype == torch.float32 else 1 - 1e-14
    return a.clamp(-edge, edge).atanh()


def _norm(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=SMALLEST)


def _precise(x: Tensor) -> Tensor:
    return x.float() if x.device.type == "mps" else x.double()


def _returned(result: Tensor, like: Tensor) -> Tensor:
    return result.to(torch.promote_types(like.dtype, torch.float32))
