"""Encoder: one interface to any backbone: pooled features, feature map, patch tokens, normalisation, input size."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor, nn

from cuewise.encoders import tokens as token
from cuewise.encoders.card import RANDOM, Card
from cuewise.encoders.constructor import first_line
from cuewise.encoders.low_rank import merged
from cuewise.encoders.pooling import Features, find_last_map, map_and_pooled, pooled
from cuewise.encoders.strided import avoid_overrun
from cuewise.encoders.texts import Texts
from cuewise.encoders.trial import empty_image, in_evaluation_mode
from cuewise.errors import UserError


class Encoder(nn.Module):
    """A backbone without its classifier.

    The classifier, where there is one, is kept apart (`head`), so that the backbone's keys stay those of its library;
    `head_name` is its place in the whole model.
    """

    def __init__(
        self, backbone: nn.Module, card: Card, head: nn.Module | None = None, head_name: str = ""
    ) -> None:
        super().__init__()
        avoid_overrun(backbone)
        self.backbone = backbone
        self.head = head
        self.head_name = head_name
        self.card = card
        self.text: Texts | None = None  # where the model also knows texts
        self.dim = _feature_dim(backbone, card.size, card.arch)

    def forward(self, x: Tensor) -> Tensor:
        """Pooled features B×dim of normalised images B×3×H×W."""
        return pooled(self.backbone, x)

    def features(self, x: Tensor) -> Features:
        """The last feature map B×C×h×w and the pooled features B×dim, from one pass."""
        return map_and_pooled(self.backbone, x, self._last_map)

    def feature_map(self, x: Tensor) -> Tensor:
        """B×C×h×w: the last map before pooling; the tokens of a transformer are laid out on their grid."""
        return self.features(x).map

    def tokens(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """B×N×D patch tokens of a vision transformer; with `keep` (B×n indices) only those patches are encoded."""
        return token.encode(self.backbone, x, keep, self.card.arch)

    def pool(self, tokens: Tensor) -> Tensor:
        """Pooled features B×dim from patch tokens B×n×D; pool(tokens(x)) equals forward(x)."""
        return token.pool(self.backbone, tokens, self.card.arch)

    def fix_positions(self) -> None:
        """Fixed 2-D sine–cosine positions for a vision transformer that is trained from random weights."""
        if self.card.weights == RANDOM:
            token.fix_positions(self.backbone, self.card.arch)

    @property
    def patch(self) -> int:
        """Side of a patch of a vision transformer, in pixels."""
        return int(token.transformer(self.backbone, self.card.arch).patch_embed.patch_size[0])

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches of a vision transformer."""
        h, w = token.transformer(self.backbone, self.card.arch).patch_embed.grid_size
        return int(h), int(w)

    @property
    def map_dim(self) -> int:
        """Channels of the feature map."""
        with in_evaluation_mode(self.backbone), torch.no_grad():
            return self.feature_map(empty_image(self.backbone, self.card.size)).shape[1]

    def logits(self, x: Tensor) -> Tensor:
        """B×classes, where the model has a classifier."""
        if self.head is None:
            raise UserError(
                f"{self.card.arch} has no classifier: fit a probe on its features instead (--train DATA)"
            )
        return self.head(self(x))  # type: ignore[no-any-return]

    def whole_state(self) -> dict[str, Tensor]:
        """The weights in the library's key names, the classifier's included where it is kept; copies on the CPU."""
        state = outside(merged(self.backbone.state_dict()), self.backbone)
        if self.head is not None and self.head_name:
            state |= {f"{self.head_name}.{k}": v for k, v in self.head.state_dict().items()}
        return {k: v.detach().cpu().contiguous().clone() for k, v in state.items()}

    def normalise(self, images: Tensor) -> Tensor:
        """uint8 N×H×W×3 → float N×3×H×W, channels last in memory, with this encoder's mean and std."""
        x = images.float().flatten(2)  # N×H×3W: three channels are too few for vector units
        mean = torch.tensor(self.card.mean, device=x.device).mul(255).repeat(images.shape[2])
        scale = torch.tensor(self.card.std, device=x.device).mul(255).reciprocal().repeat(images.shape[2])
        return x.sub_(mean).mul_(scale).unflatten(2, (-1, 3)).permute(0, 3, 1, 2)  # a view: channels last

    @cached_property
    def _last_map(self) -> str | None:
        """Found once; a name, so that copies of the encoder find their own module."""
        return find_last_map(self.backbone, self.card.size, self.card.arch)


def outside(state: dict[str, Tensor], backbone: nn.Module) -> dict[str, Tensor]:
    """The weights without the prefix of a module that only calls a library's model, `wraps`."""
    prefix = getattr(backbone, "wraps", "")
    return {k.removeprefix(prefix): v for k, v in state.items()}


@torch.no_grad()
def _feature_dim(backbone: nn.Module, size: int, arch: str) -> int:
    """Feature width, by pushing one grey image through in evaluation mode."""
    try:
        with in_evaluation_mode(backbone):
            return pooled(backbone, empty_image(backbone, size)).shape[1]
    except UserError:
        raise
    except Exception as error:
        why = first_line(error)
        raise UserError(f"{arch} does not take images of {size}×{size}: {why}. Try another --size") from error
