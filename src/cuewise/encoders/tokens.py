"""Patch tokens of timm's vision transformers, of all patches or only of those that are kept."""

from __future__ import annotations

from typing import Any

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from cuewise.encoders.vit_tiny import sine_cosine
from cuewise.errors import UserError


def encode(backbone: nn.Module, x: Tensor, keep: Tensor | None, arch: str) -> Tensor:
    """B×N×D patch tokens after the last block (and the last norm, where it comes before pooling).

    keep  B×n, the patches that pass the blocks; positions are added before the others are dropped
    """
    net = transformer(backbone, arch)
    t = net._pos_embed(net.patch_embed(x))  # B×(P+N)×D, class and register tokens first
    prefix = net.num_prefix_tokens
    if keep is not None:
        t = torch.cat([t[:, :prefix], take(t[:, prefix:], keep)], dim=1)
    return net.norm(net.blocks(net.norm_pre(t)))[:, prefix:]


def take(tokens: Tensor, keep: Tensor) -> Tensor:
    """Rows of B×N×D at B×n indices: B×n×D."""
    return tokens.gather(1, keep.unsqueeze(2).expand(-1, -1, tokens.shape[2]))


def pool(backbone: nn.Module, tokens: Tensor, arch: str) -> Tensor:
    """B×dim from B×n×D patch tokens, as the network pools; one that reads its class token is refused."""
    net = transformer(backbone, arch)
    if net.num_prefix_tokens and (net.global_pool == "token" or net.pool_include_prefix):
        raise UserError(f"{arch} pools by its class token, not over patches: add ?global_pool=avg")
    prefix = tokens.new_zeros(len(tokens), net.num_prefix_tokens, tokens.shape[2])  # ignored by its pooling
    return net.forward_head(torch.cat([prefix, tokens], dim=1), pre_logits=True)


@torch.no_grad()
def fix_positions(backbone: nn.Module, arch: str) -> None:
    """2-D sine–cosine positions that nothing trains, in place of learned ones; class and register tokens have none."""
    net = transformer(backbone, arch)
    if not isinstance(net.pos_embed, nn.Parameter):  # a buffer is fixed already
        return
    grid = net.patch_embed.grid_size[0]
    prefix = net.pos_embed.shape[1] - grid**2
    net.pos_embed.zero_()
    net.pos_embed[:, prefix:] = sine_cosine(grid, net.pos_embed.shape[2])
    net.pos_embed.requires_grad_(False)


def transformer(backbone: nn.Module, arch: str) -> Any:
    """The backbone, if it is one that has patch tokens."""
    if not isinstance(backbone, VisionTransformer) or getattr(backbone, "dynamic_img_size", False):
        raise UserError(f"{arch} has no patch tokens: use cuewise/vit-tiny or a vision transformer of timm")
    return backbone
