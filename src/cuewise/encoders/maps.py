"""Feature maps of several resolutions from one encoder: what detection and segmentation are built on."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from cuewise.encoders.embed import evaluating
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.trial import empty_image
from cuewise.errors import UserError

Place = int | str | None  # an index of the library, the name of a module, or the last map
PROBE_SIZE = 128  # pixels at which strides are measured, where the network takes any size


class Maps(nn.Module):
    """B×3×H×W → maps B×C×h×w from fine to coarse, the last one of every stride, as the library or the modules give them.

    strides, channels  of each map; a network whose maps all have one stride (a transformer) gives one map
    square             the side that the input must have, where the network takes one size only
    """

    def __init__(self, encoder: Encoder, finest: int | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.square: int | None = None
        self._indices: list[int] = []
        self._names: list[str] = []
        found = self._by_library() or self._by_modules()
        if len(found) < 2:
            found = self._one_map()
        coarsest = max(stride for stride, _, _ in found)
        least = max(2, coarsest // 8) if finest is None else finest
        kept = [f for f in found if f[0] >= least] or found[-1:]
        self.strides, self.channels = [f[0] for f in kept], [f[1] for f in kept]
        self._indices = [f[2] for f in kept if isinstance(f[2], int)]
        self._names = [f[2] for f in kept if isinstance(f[2], str)]

    def forward(self, x: Tensor) -> list[Tensor]:
        net: Any = self.encoder.backbone
        if self._indices:
            return list(
                net.forward_intermediates(x, indices=self._indices, stop_early=True, intermediates_only=True)
            )
        if self._names:
            return _passing(net, self._names, x)
        return [self.encoder.feature_map(x)]

    def _by_library(self) -> list[tuple[int, int, Place]]:
        """timm's `forward_intermediates`: the last index of every stride."""
        net: Any = self.encoder.backbone
        if not hasattr(net, "forward_intermediates") or not hasattr(net, "feature_info"):
            return []
        side = self._side(PROBE_SIZE)
        with evaluating(self.encoder):
            try:
                maps = net.forward_intermediates(empty_image(self.encoder, side), intermediates_only=True)
            except (RuntimeError, AssertionError, ValueError):  # one size only
                return []
        shapes = [(i, m.shape) for i, m in enumerate(maps)]
        return _last_of_each([(side, s[1], s[2], s[3], i) for i, s in shapes])

    def _by_modules(self) -> list[tuple[int, int, Place]]:
        """The last module whose output has a stride, for every stride."""
        seen: list[tuple[int, int, int, int, Place]] = []
        net, side = self.encoder.backbone, self._side(PROBE_SIZE)

        def noting(name: str) -> Any:
            def note(_module: nn.Module, _inputs: object, out: object) -> None:
                if isinstance(out, Tensor) and out.ndim == 4 and out.shape[-1] > 1:
                    seen.append((side, out.shape[1], out.shape[2], out.shape[3], name))

            return note

        hooks = [m.register_forward_hook(noting(n)) for n, m in net.named_modules() if n]
        try:
            with evaluating(self.encoder):
                net.forward(empty_image(self.encoder, side))
        except (RuntimeError, AssertionError, ValueError):
            return []
        finally:
            for hook in hooks:
                hook.remove()
        return _last_of_each(seen)

    def _one_map(self) -> list[tuple[int, int, Place]]:
        """A network of one resolution; its input has one size."""
        side = self.encoder.card.size
        with evaluating(self.encoder):
            shape = self.encoder.feature_map(empty_image(self.encoder, side)).shape
        if shape[2] < 2 or side % shape[2]:
            raise UserError(
                f"{self.encoder.card.arch} gives a {shape[2]}×{shape[3]} map of {side} pixels: too coarse to say where "
                f"something is; give a larger --size"
            )
        self.square = side
        return [(side // shape[2], shape[1], None)]

    def _side(self, wanted: int) -> int:
        return max(wanted, self.encoder.card.size // 32 * 32)


def _last_of_each(seen: list[tuple[int, int, int, int, Any]]) -> list[tuple[int, int, Place]]:
    """(stride, channels, place) of the last square map of every whole stride, fine to coarse."""
    last: dict[int, tuple[int, int, Place]] = {}
    for side, channels, height, width, place in seen:
        if height == width > 1 and side % height == 0:
            last[side // height] = (side // height, channels, place)
    return [last[stride] for stride in sorted(last)]


def _passing(net: nn.Module, names: list[str], x: Tensor) -> list[Tensor]:
    """The outputs of named modules in one pass."""
    found: dict[str, Tensor] = {}

    def keeping(name: str) -> Any:
        def keep(_module: nn.Module, _inputs: object, out: Tensor) -> None:
            found[name] = out

        return keep

    hooks = [net.get_submodule(name).register_forward_hook(keeping(name)) for name in names]
    try:
        net.forward(x)
    finally:
        for hook in hooks:
            hook.remove()
    return [found[name] for name in names]


def is_resnet(backbone: nn.Module) -> bool:
    """Whether it is built as torchvision's ResNets: a stem and four stages called layer1 … layer4."""
    return all(hasattr(backbone, name) for name in ("conv1", "bn1", "layer1", "layer2", "layer3", "layer4"))
