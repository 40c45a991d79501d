"""Grad-CAM: which places of an image support an answer, for networks with feature maps and with tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuewise.encoders.embed import in_evaluation_mode
from cuewise.errors import UserError


def grad_cam(
    network: nn.Module, x: Tensor, logits: Callable[[Tensor], Tensor], target: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Maps B×H×W in [0, 1] and the logits B×C they explain.

    w_k = mean over places of ∂logit_c/∂A_k, map = ReLU(Σ_k w_k A_k), enlarged to the image, least 0 and greatest 1.
    A is the last map before pooling, or the last tokens that still reach the answer place by place; c is `target` or the
    answer itself. x is B×3×H×W, `logits` goes from it through the network (Selvaraju et al. 2017).
    """
    x = x.detach().clone().requires_grad_(True)  # gradients flow even where every weight is frozen
    with in_evaluation_mode(network), torch.enable_grad(), watched(network) as seen:
        out = logits(x)
        chosen = out.argmax(1) if target is None else target
        value = out.gather(1, chosen[:, None]).sum()  # images do not mix in evaluation mode
        prefix = int(getattr(network, "num_prefix_tokens", -1))
        a, da = _last_map(seen, value, network, prefix)
    weights = da.mean((2, 3), keepdim=True)  # B×K×1×1
    maps = F.relu((weights * a).sum(1, keepdim=True)).detach()
    maps = F.interpolate(maps.float(), x.shape[-2:], mode="bilinear", align_corners=False)[:, 0]
    return stretch(maps), out.detach()


def stretch(maps: Tensor) -> Tensor:
    """Each map from 0 to 1; a map that is the same everywhere is all 0."""
    low, high = maps.amin((1, 2), keepdim=True), maps.amax((1, 2), keepdim=True)
    return (maps - low) / torch.where(high > low, high - low, 1)


@contextmanager
def watched(network: nn.Module) -> Iterator[list[Tensor]]:
    """Every map (B×C×h×w) and token tensor (B×N×C) that a module of the network gives, in order."""
    seen: list[Tensor] = []

    def note(_module: nn.Module, _inputs: object, out: object) -> None:
        if isinstance(out, Tensor) and out.requires_grad:
            wide = out.ndim == 4 and out.shape[2] > 1 and out.shape[3] > 1
            if (wide or (out.ndim == 3 and out.shape[1] > 1)) and not (seen and seen[-1] is out):
                seen.append(out)

    hooks = [m.register_forward_hook(note) for m in network.modules()]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _last_map(seen: list[Tensor], value: Tensor, network: nn.Module, prefix: int) -> tuple[Tensor, Tensor]:
    """(A, ∂value/∂A) as B×K×h×w: the last tensor whose gradient is not zero at every place of the image.

    Where only a class token is read, the tokens after the last attention get no gradient; those before it do.
    """
    if not seen:
        raise UserError("the model has no feature map: saliency needs one before its pooling")
    last = seen[-1]
    maps_like_last = [
        t for t in seen if t.ndim == last.ndim and (t.ndim == 4 or t.shape[1:] == last.shape[1:])
    ]
    gradients = torch.autograd.grad(value, maps_like_last, allow_unused=True)
    for a, da in zip(reversed(maps_like_last), reversed(gradients)):
        if da is None:
            continue
        laid, gradient = (lay_out(t, network, prefix) for t in (a, da))
        if gradient.abs().sum() > 0:
            return laid, gradient
    laid = lay_out(last, network, prefix)
    return laid, torch.zeros_like(laid)  # no place matters: the answer is constant


def lay_out(t: Tensor, network: Any, prefix: int = -1) -> Tensor:
    """B×K×h×w: tokens on their square grid without class and register tokens; maps with channels last turned round."""
    if t.ndim == 4:
        last = t.shape[1] == t.shape[2] != t.shape[3] and hasattr(network, "layers")  # Swin: B×h×w×C
        return t.permute(0, 3, 1, 2) if last else t
    n = t.shape[1] - max(prefix, 0)
    side = int(n**0.5)
    if prefix >= 0 and side * side != n:
        raise UserError(f"{n} tokens do not make a square grid")
    return t[:, -side * side :].transpose(1, 2).unflatten(2, (side, side))
