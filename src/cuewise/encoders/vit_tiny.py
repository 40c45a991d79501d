"""vit-tiny: a small vision transformer without class token, with fixed 2-D sine–cosine positions."""

from __future__ import annotations

from typing import Any

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

from cuewise.errors import UserError

HEAD_WIDTH = 64
TIMM_NAME = "vit_tiny_patch16_224"  # the timm model that becomes this one with `timm_options`


class ViTTiny(VisionTransformer):  # type: ignore[misc]
    """timm's VisionTransformer in timm's key names; `pos_embed` is a buffer, so nothing trains it.

    patch  side of a patch in pixels
    width  of a token, a multiple of 64 (a head is 64 wide)
    depth  blocks
    """

    def __init__(self, size: int = 32, patch: int = 4, width: int = 192, depth: int = 4) -> None:
        if size % patch or width % HEAD_WIDTH or width < HEAD_WIDTH or depth < 1:
            raise UserError(
                f"cuewise/vit-tiny: size {size} (a multiple of patch {patch}), width {width} (a multiple of {HEAD_WIDTH}), "
                f"depth {depth} (1 or more)"
            )
        options = timm_options(size, patch, width, depth)
        super().__init__(**options, num_classes=0)
        self.timm_options = options
        positions = sine_cosine(size // patch, width)
        del self.pos_embed
        self.register_buffer("pos_embed", positions)


def timm_options(size: int, patch: int, width: int, depth: int) -> dict[str, Any]:
    """Arguments for timm that give the same network (its positions are then a parameter)."""
    return {
        "img_size": size,
        "patch_size": patch,
        "embed_dim": width,
        "depth": depth,
        "num_heads": width // HEAD_WIDTH,
        "class_token": False,
        "global_pool": "avg",
        "fc_norm": False,  # the last norm before pooling, under its usual name: masked methods decode normed tokens
    }


def sine_cosine(grid: int, width: int) -> Tensor:
    """1×grid²×width: half of the channels encode the row, half the column (Vaswani et al. 2017, in two dimensions).

    For place p and frequency ω_k = 10000^(−k/(width/4)): sin(p ω_k), then cos(p ω_k).
    """
    omega = 10000.0 ** (-torch.arange(width // 4, dtype=torch.float64) / (width // 4))
    angles = torch.arange(grid, dtype=torch.float64)[:, None] * omega  # grid×width/4
    place = torch.cat([angles.sin(), angles.cos()], dim=1)  # grid×width/2
    rows = place[:, None].expand(grid, grid, -1)
    columns = place[None].expand(grid, grid, -1)
    return torch.cat([rows, columns], dim=2).reshape(1, grid * grid, width).float()
