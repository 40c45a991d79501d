"""From what a network returns to pooled features B×D and to its last feature map B×C×h×w, in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor, nn

from cuewise.encoders.trial import trial_pass
from cuewise.errors import UserError

PROBE_SIZE = 224  # large enough that the last map of a convolutional network has more than one place


class Features(NamedTuple):
    """What one forward pass gives."""

    map: Tensor  # B×C×h×w
    pooled: Tensor  # B×D


def pooled(backbone: nn.Module, x: Tensor) -> Tensor:
    """B×D features, whatever the model returns: a tensor, a tuple, a dict, a map or tokens."""
    net: Any = backbone
    if _is_split(backbone):
        return flat(net.forward_head(net.forward_features(x), pre_logits=True))
    return flat(backbone(x))


def map_and_pooled(backbone: nn.Module, x: Tensor, last_map: str | None) -> Features:
    """Both in one differentiable pass; `last_map` names the module that gives the map (see `find_last_map`)."""
    net: Any = backbone
    if hasattr(net, "map_and_pooled"):
        return net.map_and_pooled(x)
    if _is_split(backbone):
        out = net.forward_features(x)
        return Features(as_map(out, backbone), flat(net.forward_head(out, pre_logits=True)))
    assert last_map is not None
    seen: list[Tensor] = []
    hook = backbone.get_submodule(last_map).register_forward_hook(lambda _m, _x, out: seen.append(out))
    try:
        z = flat(backbone.forward(x))  # not __call__: a compiled backbone would not run the hook
    finally:
        hook.remove()
    return Features(as_map(seen[-1], backbone), z)


def find_last_map(backbone: nn.Module, size: int, arch: str) -> str | None:
    """Name of the last module that gives a map or tokens; None where the network says it by `forward_features`."""
    if hasattr(backbone, "map_and_pooled") or _is_split(backbone):
        return None
    found = _last_map_at(backbone, max(size, PROBE_SIZE))
    if found is None and size < PROBE_SIZE:  # a network of one input size
        found = _last_map_at(backbone, size)
    if found is None:
        raise UserError(f"{arch}: no module gives a feature map; this model has pooled features only")
    return found


def _last_map_at(backbone: nn.Module, size: int) -> str | None:
    seen: list[str] = []

    def note(name: str, out: Any) -> None:
        if isinstance(out, Tensor) and (out.ndim == 3 or (out.ndim == 4 and out.shape[-1] > 1)):
            seen.append(name)

    layers = [(name, m) for name, m in backbone.named_modules() if name]
    out = trial_pass(backbone, size, layers, note)
    return seen[-1] if seen and out is not None else None


def _is_split(backbone: nn.Module) -> bool:
    return hasattr(backbone, "forward_features") and hasattr(backbone, "forward_head")


def flat(out: Any) -> Tensor:
    """B×D: maps and tokens are averaged over their places."""
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


def as_map(out: Any, backbone: nn.Module) -> Tensor:
    """B×C×h×w from a map (channels first or last) or from tokens, which are laid out on their grid."""
    out = first_tensor(out)
    if out.ndim == 4:
        return out.permute(0, 3, 1, 2) if getattr(backbone, "output_fmt", "NCHW") == "NHWC" else out
    if out.ndim == 3:
        grid = getattr(getattr(backbone, "patch_embed", None), "grid_size", None)
        side = int(out.shape[1] ** 0.5)
        h, w = grid if grid is not None and grid[0] * grid[1] <= out.shape[1] else (side, side)
        return out[:, -h * w :].transpose(1, 2).unflatten(2, (h, w))  # a class token comes first
    raise UserError(f"the model gives rank-{out.ndim} features, not a map")


def pool_of(backbone: nn.Module) -> str:
    """How the network pools: "token", "avg", "max", … as its library calls it; "model" where it does not say."""
    for holder in (backbone, getattr(backbone, "head", None)):
        pool = getattr(holder, "global_pool", None)
        kind = pool if isinstance(pool, str) else getattr(pool, "pool_type", None)
        if isinstance(kind, str):
            return kind or "none"
    if hasattr(backbone, "class_token"):  # torchvision's vision transformer
        return "token"
    return "avg" if hasattr(backbone, "avgpool") else "model"
