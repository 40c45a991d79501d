"""How deep each parameter of a backbone lies: in what comes before its blocks, in a block, or in what comes after."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from cuewise.errors import UserError


def depths(backbone: nn.Module) -> tuple[dict[str, int], int]:
    """Parameter name → depth, and the depth of what comes after the last block.

    0 is what comes before the blocks (stem, positions, tokens), i + 1 block i, L + 1 what comes after block L. Blocks are
    the parts of the backbone's containers, in their order.
    """
    found: dict[str, int] = {name: 0 for name, _ in backbone.named_parameters()}
    last = 0
    for place, is_block in _units(backbone, ""):
        last += is_block
        for name in found:
            if name == place or name.startswith(place + "."):
                found[name] = last if is_block or not last else -1  # -1: after a block, perhaps the last
    closing = [name for name, depth in found.items() if depth == -1]
    return {**found, **dict.fromkeys(closing, last + 1)}, last + 1


def blocks(backbone: nn.Module) -> list[str]:
    """Names of the blocks, in their order."""
    return [name for name, is_block in _units(backbone, "") if is_block]


def _units(module: nn.Module, prefix: str) -> Iterator[tuple[str, bool]]:
    """Parts with parameters in their order: (name, whether it is a block)."""
    for name, child in module.named_children():
        if not any(True for _ in child.parameters()):
            continue
        if _is_container(child):
            inner = [(n, c) for n, c in child.named_children() if any(True for _ in c.parameters())]
            yield from ((f"{prefix}{name}.{n}", True) for n, _ in inner)
        elif any(_is_container(c) for c in child.children()):
            yield from _units(child, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", False


def _is_container(module: nn.Module) -> bool:
    if not isinstance(module, nn.Sequential | nn.ModuleList):
        return False
    return sum(any(True for _ in c.parameters()) for c in module.children()) > 0


def freeze_below(backbone: nn.Module, layers: str, arch: str) -> tuple[int, int]:
    """Only the parameters that `layers` names take gradient: all, last:N (the last N blocks and the layers after them) or
    head (what comes after the last block). Returns how many train, of how many."""
    found, last = depths(backbone)
    first = first_depth(layers, last)
    trained = [p for name, p in backbone.named_parameters() if found[name] >= first]
    if not trained:
        raise UserError(
            f"--layers {layers}: {arch} has no parameters there; give last:1 … last:{last - 1}, or all"
        )
    for name, p in backbone.named_parameters():
        p.requires_grad_(p.requires_grad and found[name] >= first)
    return sum(p.numel() for p in trained), sum(p.numel() for p in backbone.parameters())


def first_depth(layers: str, last: int) -> int:
    """The smallest depth that trains."""
    if layers == "all":
        return 0
    if layers == "head":
        return last
    word, _, number = layers.partition(":")
    if word != "last" or not number.isdigit() or not int(number):
        raise UserError(f"--layers {layers}: all, last:N or head")
    if int(number) > last - 1:
        raise UserError(f"--layers {layers}: there are {last - 1} blocks; give last:{last - 1} or all")
    return last - int(number)
