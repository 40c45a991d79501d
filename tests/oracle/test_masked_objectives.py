"""Reconstruction and denoising against numpy loops written from the papers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from cuewise.objectives.masked import denoising, noise_level, patchify, reconstruction, unpatchify

B, N, P = 3, 6, 12


@pytest.fixture
def parts() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Predictions and targets B×N×P, hidden patches B×N (three per image)."""
    g = torch.Generator().manual_seed(0)
    predicted, target = torch.randn(2, B, N, P, generator=g, dtype=torch.float64)
    return predicted, target, torch.rand(B, N, generator=g).argsort(1) < 3


def loop(predicted, target, chosen, normalise=False):  # type: ignore[no-untyped-def]
    errors = []
    for b in range(B):
        for n in range(N):
            if not chosen[b][n]:
                continue
            t = target[b][n].numpy()
            if normalise:
                t = (t - t.mean()) / math.sqrt(t.var(ddof=1) + 1e-6)
            errors.append(np.mean([(float(predicted[b][n][p]) - t[p]) ** 2 for p in range(P)]))
    return np.mean(errors)


@pytest.mark.parametrize("normalise", [False, True])
def test_reconstruction_equals_the_loop(parts, normalise):  # type: ignore[no-untyped-def]
    predicted, clean, hidden = parts
    ours = float(reconstruction(predicted, clean, hidden, normalise=normalise))
    assert ours == pytest.approx(loop(predicted, clean, hidden, normalise), rel=1e-9)


def test_denoising_equals_the_loop(parts):  # type: ignore[no-untyped-def]
    predicted, noise, hidden = parts
    assert float(denoising(predicted, noise, hidden)) == pytest.approx(
        loop(predicted, noise, ~hidden), rel=1e-9
    )


def test_each_term_reads_its_own_patches_only(parts):  # type: ignore[no-untyped-def]
    predicted, target, hidden = parts
    at_visible = predicted + 9.0 * ~hidden.unsqueeze(2)
    at_hidden = predicted + 9.0 * hidden.unsqueeze(2)
    assert reconstruction(at_visible, target, hidden) == reconstruction(predicted, target, hidden)
    assert reconstruction(at_hidden, target, hidden) > 2 * reconstruction(predicted, target, hidden)
    assert denoising(at_hidden, target, hidden) == denoising(predicted, target, hidden)
    assert denoising(at_visible, target, hidden) > 2 * denoising(predicted, target, hidden)


def test_patches_are_cut_row_by_row_and_put_back():  # type: ignore[no-untyped-def]
    x = torch.randn(2, 3, 8, 12, generator=torch.Generator().manual_seed(0))
    patches = patchify(x, 4)
    assert patches.shape == (2, 6, 48)
    np.testing.assert_array_equal(patches[1, 4].reshape(4, 4, 3), x[1, :, 4:8, 4:8].permute(1, 2, 0))
    torch.testing.assert_close(unpatchify(patches, 4, (2, 3)), x, rtol=0, atol=0)


def test_noise_level_equals_the_loop_and_distinguishes_levels():  # type: ignore[no-untyped-def]
    sigma, width, largest = torch.tensor([0.0, 0.01, 0.05], dtype=torch.float64), 16, 0.05
    found = noise_level(sigma, width, largest)
    for i, s in enumerate(sigma.tolist()):
        angles = [1000 * s / largest * 10000 ** (-k / (width / 2)) for k in range(width // 2)]
        np.testing.assert_allclose(found[i], [*map(math.sin, angles), *map(math.cos, angles)], atol=1e-9)
    spread = found.std(0).mean()
    assert spread > 0.3
    assert noise_level(sigma, width, largest, raw=True).std(0).mean() < 0.01 * spread
