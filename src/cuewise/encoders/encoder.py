"""Encoder: any backbone with one face — pooled features, feature map, normalisation, input size."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from cuewise.errors import UserError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Card:
    """What travels with the weights (encoder.json)."""

    arch: str
    size: int
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    interpolation: str = "bilinear"
    method: str | None = None
    cues: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "mean": list(self.mean), "std": list(self.std)}


class Encoder(nn.Module):
    """A backbone without its classifier.

    forward(x) gives pooled features B×dim; feature_map(x) gives B×C×h×w; logits(x) needs a classifier, which is
    kept apart from the backbone (`head`) so that the backbone's keys stay those of its own library.
    """

    def __init__(self, backbone: nn.Module, card: Card, head: nn.Module | None = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.card = card
        self.dim = _feature_dim(backbone, card.size, card.arch)

    def forward(self, x: Tensor) -> Tensor:
        return pooled(self.backbone, x)

    def feature_map(self, x: Tensor) -> Tensor:
        """B×C×h×w: the last map before pooling; the tokens of a transformer are laid out on their grid."""
        if hasattr(self.backbone, "forward_features"):
            net: Any = self.backbone
            return _as_map(net.forward_features(x), net)
        seen: list[Tensor] = []

        def note(_module: nn.Module, _inputs: object, out: object) -> None:
            if isinstance(out, Tensor) and (out.ndim == 3 or (out.ndim == 4 and out.shape[-1] > 1)):
                seen.append(out)

        hooks = [m.register_forward_hook(note) for m in self.backbone.modules()]
        try:
            self.backbone(x)
        finally:
            for hook in hooks:
                hook.remove()
        if not seen:
            raise UserError(
                f"{self.card.arch}: no module gives a feature map; this model has pooled features only"
            )
        return _as_map(seen[-1], self.backbone)

    def logits(self, x: Tensor) -> Tensor:
        """B×classes, where the model has a classifier."""
        if self.head is None:
            raise UserError(
                f"{self.card.arch} has no classifier: fit a probe on its features instead (--train DATA)"
            )
        return self.head(self(x))  # type: ignore[no-any-return]

    def normalise(self, images: Tensor) -> Tensor:
        """uint8 N×H×W×3 → float N×3×H×W, channels last in memory, with this encoder's mean and std."""
        x = images.float().flatten(2)  # N×H×3W: three channels are too few for vector units
        mean = torch.tensor(self.card.mean, device=x.device).mul(255).repeat(images.shape[2])
        scale = torch.tensor(self.card.std, device=x.device).mul(255).reciprocal().repeat(images.shape[2])
        return x.sub_(mean).mul_(scale).unflatten(2, (-1, 3)).permute(0, 3, 1, 2)  # a view: channels last


def pooled(backbone: nn.Module, x: Tensor) -> Tensor:
    """B×D features, whatever the model returns: a tensor, a tuple, a dict, a map or tokens."""
    if hasattr(backbone, "forward_features") and hasattr(backbone, "forward_head"):
        net: Any = backbone
        out = net.forward_head(net.forward_features(x), pre_logits=True)
    else:
        out = backbone(x)
    out = first_tensor(out)
    if out.ndim == 4:
        out = out.mean(dim=(2, 3))
    elif out.ndim == 3:
        out = out.mean(dim=1)
    return out.flatten(1)


def first_tensor(out: Any) -> Tensor:
    """The tensor in a tuple, list, dict or output object (the first one of rank 2 or more)."""
    if isinstance(out, Tensor):
        return out
    items = (
        list(out.values()) if hasattr(out, "values") else list(out) if isinstance(out, tuple | list) else []
    )
    for item in items:
        if isinstance(item, Tensor) and item.ndim >= 2:
            return item
    raise UserError(
        f"the model returned {type(out).__name__} without a feature tensor in it; return B×D features"
    )


def _as_map(out: Any, backbone: nn.Module) -> Tensor:
    out = first_tensor(out)
    if out.ndim == 4:
        channels_last = out.shape[1] == out.shape[2] != out.shape[3] and hasattr(backbone, "layers")
        return out.permute(0, 3, 1, 2) if channels_last else out  # Swin gives B×h×w×C
    if out.ndim == 3:
        side = int((out.shape[1]) ** 0.5)
        return out[:, -side * side :].transpose(1, 2).unflatten(2, (side, side))
    raise UserError(f"the model gives rank-{out.ndim} features, not a map")


@torch.no_grad()
def _feature_dim(backbone: nn.Module, size: int, arch: str) -> int:
    """Feature width, by pushing one grey image through in evaluation mode."""
    was_training = backbone.training
    backbone.eval()
    weight = next(backbone.parameters(), torch.zeros(()))
    try:
        out = pooled(backbone, torch.zeros(1, 3, size, size, device=weight.device, dtype=weight.dtype))
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{arch} does not take images of {size}×{size}: {str(error).splitlines()[0]}. Try another --size"
        ) from error
    backbone.train(was_training)
    return out.shape[1]
