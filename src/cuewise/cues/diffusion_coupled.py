"""Compiled diffusion whose channels are coupled: one conductance for all, or colour as a third axis of space."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cuewise.cues.diffusion_kernel import (
    INVERSE,
    LANES,
    ONE,
    Fixed,
    Floats,
    U,
    conductance,
    difference,
    load,
    moved,
    store,
)
from cuewise.cues.exp2_kernel import FAST


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def shared_fluxes(
    old: Fixed, at: Any, to: Any, stride: Any, gamma: Any, k: Any, option: int, flux: Floats, first: Any
) -> None:
    """flux[c, first + j] = γ·g·δ_c with one g(Σ_c δ_c²) for all channels, δ_c = old[c, to + j] − old[c, at + j]."""
    channels = old.shape[0]
    for j in range(stride):
        square = np.float32(0)
        for c in range(channels):
            delta = difference(old[c, to + j], old[c, at + j])
            square += delta * delta
        g = conductance(k, square, option, gamma)
        for c in range(channels):
            flux[c, first + j] = g * difference(old[c, to + j], old[c, at + j])


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def own_fluxes(
    old: Fixed, at: Any, to: Any, stride: Any, gamma: Any, k: Any, option: int, flux: Floats, first: Any
) -> None:
    """As `shared_fluxes`, but each channel has its own g(δ_c²)."""
    for c in range(old.shape[0]):
        for j in range(stride):
            delta = difference(old[c, to + j], old[c, at + j])
            flux[c, first + j] = conductance(k * delta, delta, option, gamma) * delta


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def between_fluxes(old: Fixed, at: Any, stride: Any, gamma: Any, k: Any, option: int, flux: Floats) -> None:
    """flux[c + 1, j] = γ·g(δ)·δ with δ the difference of channels c + 1 and c; flux[0] and flux[C] stay zero."""
    for c in range(old.shape[0] - 1):
        for j in range(stride):
            delta = difference(old[c + 1, at + j], old[c, at + j])
            flux[c + 1, j] = conductance(k * delta, delta, option, gamma) * delta


@njit(cache=True, nogil=True, fastmath=FAST)
def add_fluxes(
    old: Fixed,
    new: Fixed,
    at: Any,
    stride: Any,
    across: Floats,
    up: Floats,
    down: Floats,
    between: Floats,
) -> None:
    """new ← old + the divergence of the fluxes on one row of all channels."""
    one = U(1)
    for c in range(old.shape[0]):
        for j in range(stride):
            div = (
                (down[c, j] - up[c, j])
                + (across[c, j + one] - across[c, j])
                + (between[c + 1, j] - between[c, j])
            )
            new[c, at + j] = moved(old[c, at + j], div)


@njit(cache=True, nogil=True)
def diffuse_coupled(
    image: Floats, out: Floats, steps: int, gamma: Any, k: Any, option: int, shared: bool
) -> None:
    """image [H, W, C] into `out`; shared: one conductance for all channels, otherwise colour is a third axis of space."""
    height, width, channels = image.shape
    stride = (width + LANES - 1) // LANES * LANES
    both = np.zeros((2, channels, height * stride + LANES), np.int32)
    one, two = both[0], both[1]
    across = np.zeros((channels, stride + 1), np.float32)
    vertical = np.zeros((2, channels, stride), np.float32)
    between = np.zeros((channels + 1, stride), np.float32)
    s = U(stride)
    load(image, one, stride, np.float32(0), ONE)
    for _ in range(steps):
        vertical[1] = 0
        for i in range(height):
            up, down = vertical[1 - (i & 1)], vertical[i & 1]
            at, below = U(i * stride), U(min(i + 1, height - 1) * stride)
            if shared:
                shared_fluxes(one, at, at + U(1), s, gamma, k, option, across, U(1))
                shared_fluxes(one, at, below, s, gamma, k, option, down, U(0))
            else:
                own_fluxes(one, at, at + U(1), s, gamma, k, option, across, U(1))
                own_fluxes(one, at, below, s, gamma, k, option, down, U(0))
                between_fluxes(one, at, s, gamma, k, option, between)
            across[:, width] = 0
            add_fluxes(one, two, at, s, across, up, down, between)
        one, two = two, one
    store(one, out, stride, np.float32(0), INVERSE)
