"""Style by feature statistics of any convolutional network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from cuewise.cues.conflict import conflict
from cuewise.cues.style_gram import Gram, collapse, difference, pyramid, scales, statistics
from cuewise.cues.style_statistics import colour_map
from cuewise.cues.stylize import stylize
from cuewise.errors import UserError

HALF = (0.5, 0.5, 0.5)


def network(stages: int = 4) -> nn.Module:
    """Random stages of stride 2; nested, so that the layers inside a stage are not the ones to take."""
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    width = 3
    for _ in range(stages):
        wide = nn.Conv2d(width, 12, 1)  # at the resolution of the stage before
        parts.append(nn.Sequential(wide, nn.Conv2d(12, 8, 3, stride=2, padding=1), nn.ReLU()))
        width = 8
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def pictures(height: int = 72, width: int = 90) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[:height, :width]
    disc = ((y - height / 2) ** 2 + (x - width / 2) ** 2 < (height / 3) ** 2)[..., None]
    content = np.where(disc, (220, 200, 180), (40, 60, 50)).astype(np.uint8)
    stripes = (127 + 120 * np.sin(np.mgrid[:64, :64][1] / 2))[..., None] * (1.0, 0.4, 0.2)
    return content, stripes.astype(np.uint8)


def test_the_stages_of_a_network_are_found():
    assert scales(network()) == ["0", "1", "2", "3"]
    torchvision = pytest.importorskip("torchvision")
    assert scales(torchvision.models.resnet18(weights=None)) == ["relu", "layer1", "layer2", "layer3"]


def test_a_network_without_maps_is_refused():
    with pytest.raises(UserError, match="three scales"):
        Gram(nn.Sequential(nn.Flatten(), nn.Linear(3 * 160 * 160, 4)), HALF, HALF)
    with pytest.raises(UserError, match="three scales, but this one has 2"):
        Gram(network(2), HALF, HALF)
    with pytest.raises(UserError, match="steps"):
        Gram(network(), HALF, HALF, steps=0)


def test_the_pyramid_is_undone_at_any_size():
    x = torch.rand(1, 3, 37, 50)
    torch.testing.assert_close(collapse(pyramid(x, 4)), x)


def test_statistics_are_mean_and_covariance():
    m = torch.rand(1, 5, 6, 7)
    mean, cov = statistics(m)
    flat = m[0].flatten(1).numpy()
    np.testing.assert_allclose(mean, flat.mean(1), rtol=1e-5)
    np.testing.assert_allclose(cov, np.cov(flat, bias=True), rtol=1e-4, atol=1e-6)
    assert difference((mean, cov), (mean, cov)) == 0


def test_the_maps_take_the_styles_statistics_and_the_layout_stays():
    content, style = pictures()
    gram = Gram(network(), HALF, HALF, steps=15, content=0.02)
    out = gram(content, style, 1.0)
    assert (out.shape, out.dtype) == (content.shape, np.uint8)

    def away(image: np.ndarray) -> float:
        def maps(x: np.ndarray) -> list[torch.Tensor]:
            return gram.maps(torch.from_numpy(x / 255).float().permute(2, 0, 1)[None])

        wanted = [statistics(m) for m in maps(np.resize(style, (64, 64, 3)))]
        return float(sum(difference(statistics(m), w) for m, w in zip(maps(image), wanted)))

    assert away(out) < 0.3 * away(content)
    begin = colour_map(content.astype(np.float32), style.astype(np.float32))
    assert away(out) < 0.85 * away(begin)  # more than the style's colours
    grey = out.mean(-1)
    disc = content[..., 0] > 128
    assert abs(grey[disc].mean() - grey[~disc].mean()) > 15  # the disc can be seen


def test_strength_and_small_images():
    content, style = pictures(24, 30)
    gram = Gram(network(), HALF, HALF, steps=2)
    np.testing.assert_array_equal(stylize(content, style, 0.0, method=gram), content)
    half, full = (gram(content, style, s).astype(float) for s in (0.5, 1.0))
    np.testing.assert_allclose(half, (content + full) / 2, atol=1)


def test_the_same_images_give_the_same_stimulus_and_the_network_stays():
    content, style = pictures()
    model = network()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    gram = Gram(model, HALF, HALF, steps=3)
    one, two = (conflict(content, style, np.random.default_rng(s), method=gram) for s in (0, 1))
    np.testing.assert_array_equal(one, two)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert not any(m._forward_hooks for m in model.modules())
