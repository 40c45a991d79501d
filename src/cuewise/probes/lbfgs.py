"""L-BFGS with a strong Wolfe search, on one flat vector (Nocedal & Wright, *Numerical Optimization*, algorithms 7.4, 3.5, 3.6).

torch.optim.LBFGS takes the same steps up to rounding; the tests compare the two. On problems as small as a probe most of its
time goes into the bookkeeping of an optimiser and of autograd, and it imports torch's compiler, which takes seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Function = Callable[[Tensor], tuple[float, Tensor]]  # point → value and slope there

SUFFICIENT, CURVATURE = 1e-4, 0.9  # c₁ and c₂ of the Wolfe conditions
STILL = 1e-9  # changes below it are none
HISTORY = 10  # pairs of steps and changes of the slope that the curvature is estimated from


class Trial(NamedTuple):
    """A point on the line x + t·d."""

    t: float
    value: float
    slope: Tensor
    along: float  # slope · d


class Curvature(NamedTuple):
    """What one step says of the curvature."""

    step: Tensor
    change: Tensor  # of the slope
    weight: float  # 1 / (step · change)


def minimise(f: Function, start: Tensor, iterations: int, tolerance: float) -> Tensor:
    """The point where the largest slope is at most `tolerance`, or where the iterations or progress end."""
    x = start.clone()
    value, slope = f(x)
    left = iterations * 5 // 4 - 1  # evaluations
    pairs: deque[Curvature] = deque(maxlen=HISTORY)
    scale, t = 1.0, min(1.0, 1.0 / max(float(slope.abs().sum()), STILL))
    for _ in range(iterations):
        if float(slope.abs().max()) <= tolerance:
            break
        d = direction(slope, pairs, scale)
        along = float(slope.dot(d))
        if along > -STILL:
            break
        found, used = search(f, x, d, t, Trial(0.0, value, slope, along), left)
        step, change = d * found.t, found.slope - slope
        x.add_(step)
        ended = float(step.abs().max()) <= STILL or abs(found.value - value) < STILL
        value, slope, left, t = found.value, found.slope, left - used, 1.0
        if ended or left <= 0:
            break
        if (product := float(change.dot(step))) > 1e-10:
            pairs.append(Curvature(step, change, 1.0 / product))
            scale = product / float(change.dot(change))
    return x


def direction(slope: Tensor, pairs: deque[Curvature], scale: float) -> Tensor:
    """−H·slope by the two loops over the pairs; H starts as `scale` times the identity."""
    d, shares = slope.neg(), []
    for pair in reversed(pairs):
        shares.append(float(pair.step.dot(d)) * pair.weight)
        d.add_(pair.change, alpha=-shares[-1])
    d.mul_(scale)
    for pair, share in zip(pairs, reversed(shares)):
        d.add_(pair.step, alpha=share - float(pair.change.dot(d)) * pair.weight)
    return d


def search(f: Function, x: Tensor, d: Tensor, t: float, start: Trial, most: int) -> tuple[Trial, int]:
    """A point on the line that satisfies both Wolfe conditions, and how many evaluations that took, about `most` at most."""

    def at(t: float) -> Trial:
        value, slope = f(torch.add(x, d, alpha=t))
        return Trial(t, value, slope, float(slope.dot(d)))

    rounding = torch.finfo(x.dtype).eps * abs(start.value)  # a smaller rise is none

    def descends_too_little(p: Trial) -> bool:
        return p.value > start.value + SUFFICIENT * p.t * start.along + rounding

    def is_flat(p: Trial) -> bool:
        return abs(p.along) <= -CURVATURE * start.along

    previous, now, tries = start, at(t), 0
    while tries < most:  # outwards, until a minimum lies between two points
        if descends_too_little(now) or (tries > 1 and now.value >= previous.value):
            break
        if is_flat(now):
            return now, tries + 1
        if now.along >= 0:
            break
        further = between(previous, now, now.t + 0.01 * (now.t - previous.t), 10 * now.t)
        previous, now, tries = now, at(further), tries + 1
    else:
        return min(start, now, key=lambda p: p.value), tries + 1

    low, high = (previous, now) if previous.value <= now.value else (now, previous)
    width = float(d.abs().max())
    near_an_end = False
    while tries < most and abs(high.t - low.t) * width >= STILL:  # inwards
        first, last = sorted((low.t, high.t))
        t, margin = between(low, high, first, last), 0.1 * (last - first)
        if min(last - t, t - first) < margin:
            moved = near_an_end or t >= last or t <= first
            if moved:
                t = last - margin if abs(t - last) < abs(t - first) else first + margin
            near_an_end = not moved
        else:
            near_an_end = False
        now, tries = at(t), tries + 1
        if descends_too_little(now) or now.value >= low.value:
            low, high = (low, now) if low.value <= now.value else (now, low)
        elif is_flat(now):
            return now, tries + 1
        else:
            low, high = now, low if now.along * (high.t - low.t) >= 0 else high
    return low, tries + 1


def between(a: Trial, b: Trial, first: float, last: float) -> float:
    """The minimum of the cubic through two points and their slopes, within bounds; their middle where it has none."""
    if a.t > b.t:
        a, b = b, a
    d1 = a.along + b.along - 3 * (a.value - b.value) / (a.t - b.t)
    square = d1 * d1 - a.along * b.along
    if square < 0:
        return (first + last) / 2
    d2 = float(square**0.5)
    whole = b.along - a.along + 2 * d2
    t = b.t - (b.t - a.t) * ((b.along + d2 - d1) / whole) if whole else last
    return min(max(t, first), last)
