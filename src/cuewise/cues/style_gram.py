"""Style by feature statistics of any convolutional network: the image is optimised until its maps have the style's statistics.

After L. Gatys, A. Ecker, M. Bethge, "Image Style Transfer Using Convolutional Neural Networks", CVPR 2016. Here the
statistics are mean and covariance of the pixels and of one map at each scale, of any network: no VGG is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.cues.style_statistics import colour_map, cover, mixed
from cuewise.errors import UserError

Bytes = NDArray[np.uint8]
# sides in pixels at which maps are computed; other images are resized to them and back
LEAST, MOST = 128, 256
STRIDES = 16  # the coarsest map: beyond it, a position sees whole objects
BANDS = 4  # of the pyramid that is optimised: large and small structure move at the same pace


class Gram:
    """Style transfer through a network; `__call__(image, style, strength)` on uint8 H×W×3, a few seconds per image.

    network: any convolutional network in float32 (its maps at strides 2, 4, 8 and 16 are used); mean, std: of its input in
    [0, 1]; steps of L-BFGS; content: weight of the image's own maps at the two coarsest scales.
    """

    def __init__(
        self,
        network: nn.Module,
        mean: Sequence[float],
        std: Sequence[float],
        *,
        steps: int = 50,
        content: float = 0.15,
    ) -> None:
        if steps < 1 or content < 0:
            raise UserError(f"gram: steps {steps} must be at least 1 and content {content:g} at least 0")
        self.network = network.eval().requires_grad_(False)
        self.mean, self.std = (torch.tensor(v).view(1, 3, 1, 1) for v in (mean, std))
        self.steps, self.content = steps, content
        self.layers = scales(network)

    def __call__(self, image: Bytes, style: Bytes, strength: float) -> Bytes:
        height, width = image.shape[:2]
        side = min(max(min(height, width), LEAST), MOST)
        tall, wide = (max(side, round(n * side / min(height, width))) for n in (height, width))
        styled = self.optimise(_resized(image, (tall, wide)), cover(style, tall, wide))
        return mixed(image, _resized(styled, (height, width)), strength)

    def optimise(self, image: Bytes, style: Bytes) -> Bytes:
        """The image with its maps moved towards the style's statistics, starting from the style's colours."""
        begin = np.clip(colour_map(image.astype(np.float32), style.astype(np.float32)), 3, 252)
        with torch.no_grad():
            wanted = [statistics(m) for m in self.maps(_tensor(style.astype(np.float32)))]
            own = self.maps(_tensor(begin))[-2:]
            spread = [(m - m.mean((2, 3), keepdim=True)).square().sum() for m in own]
            bands = [b.contiguous() for b in pyramid(torch.logit(_tensor(begin)), BANDS)]

        def loss() -> Tensor:
            maps = self.maps(torch.sigmoid(collapse(bands)))
            styles = [difference(statistics(m), w) for m, w in zip(maps, wanted)]
            contents = [(m - o).square().sum() / s for m, o, s in zip(maps[-2:], own, spread)]
            return (
                sum(styles, torch.zeros(())) / len(styles) + self.content * sum(contents, torch.zeros(())) / 2
            )

        minimise(bands, loss, self.steps)
        with torch.no_grad():
            pixels = torch.sigmoid(collapse(bands))[0].permute(1, 2, 0).numpy()
        return np.clip(pixels * 255 + 0.5, 0, 255).astype(np.uint8)

    def maps(self, x: Tensor) -> list[Tensor]:
        """The pixels 1×3×H×W in [0, 1] and one map for each scale, fine to coarse."""
        found: dict[str, Tensor] = {}
        with ExitStack() as hooks:
            for name in self.layers:
                hooks.enter_context(
                    self.network.get_submodule(name).register_forward_hook(_keep(found, name))
                )
            self.network((x - self.mean) / self.std)
        return [x, *(found[name] for name in self.layers)]


def scales(network: nn.Module, side: int = 160) -> list[str]:
    """For each stride 2 … 16 the module that has the last word on it, by name, fine to coarse.

    Of the modules whose output has that size, the least deeply nested one that ends last: a stage, not a layer inside the next.
    """
    seen: dict[int, tuple[int, str]] = {}

    def note(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, out: Any) -> None:
            if isinstance(out, Tensor) and out.ndim == 4 and out.shape[2] == out.shape[3] > 1:
                stride, depth = round(side / out.shape[2]), name.count(".")
                if depth <= seen.get(stride, (depth, ""))[0]:
                    seen[stride] = (depth, name)

        return hook

    with ExitStack() as hooks, torch.no_grad():
        for name, module in network.named_modules():
            if name:
                hooks.enter_context(module.register_forward_hook(note(name)))
        network.eval()(torch.zeros(1, 3, side, side))
    strides = sorted(s for s in seen if 1 <= s <= STRIDES)
    if len(strides) > 1 and seen[strides[0]][0] > seen[strides[1]][0]:  # the first layer of the first stage
        strides.pop(0)
    found = [seen[stride][1] for stride in strides]
    if len(found) < 3:
        raise UserError(
            f"gram: needs a convolutional network with maps at three scales, but this one has {len(found)}; "
            "give one such as timm/tf_efficientnet_lite0:FILE or torchvision/resnet50:FILE"
        )
    return found


def statistics(m: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance over positions of a map 1×C×H×W: C, C×C."""
    flat = m[0].flatten(1)
    mean = flat.mean(1)
    centred = flat - mean[:, None]
    return mean, centred @ centred.T / flat.shape[1]


def difference(one: tuple[Tensor, Tensor], wanted: tuple[Tensor, Tensor]) -> Tensor:
    """Relative squared difference of two means and of two covariances."""
    (m, v), (mean, cov) = one, wanted
    return (v - cov).square().sum() / cov.square().sum().clamp(min=1e-12) + (m - mean).square().sum() / (
        mean.square().sum() + cov.trace()
    ).clamp(min=1e-12)


def pyramid(x: Tensor, levels: int) -> list[Tensor]:
    """`levels` bands, fine to coarse, and what is left; `collapse` undoes it.  x  1×3×H×W"""
    bands = []
    for _ in range(levels):
        small = F.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False)
        bands.append(x - _grown(small, x))
        x = small
    return [*bands, x]


def collapse(bands: Sequence[Tensor]) -> Tensor:
    """The image of a pyramid."""
    x = bands[-1]
    for band in bands[-2::-1]:
        x = band + _grown(x, band)
    return x


def minimise(values: Sequence[Tensor], loss: Callable[[], Tensor], steps: int) -> None:
    """`steps` iterations of L-BFGS on the values, in place."""
    for value in values:
        value.requires_grad_()
    optimiser = torch.optim.LBFGS(values, lr=0.5, max_iter=steps, history_size=20)

    def closure() -> Tensor:
        optimiser.zero_grad()
        found = loss()
        found.backward()  # type: ignore[no-untyped-call]
        return found

    optimiser.step(closure)  # type: ignore[no-untyped-call, arg-type]


def _keep(found: dict[str, Tensor], name: str) -> Callable[..., None]:
    def hook(module: nn.Module, args: Any, out: Tensor) -> None:
        found[name] = out

    return hook


def _grown(small: Tensor, like: Tensor) -> Tensor:
    return F.interpolate(small, size=like.shape[-2:], mode="bilinear", align_corners=False)


def _tensor(image: NDArray[np.float32]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(image / np.float32(255))).permute(2, 0, 1)[None].contiguous()


def _resized(image: Bytes, size: tuple[int, int]) -> Bytes:
    if image.shape[:2] == size:
        return image
    mode = cv2.INTER_AREA if size[0] < image.shape[0] else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(image, size[::-1], interpolation=mode), np.uint8)
