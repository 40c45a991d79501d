"""Embedding spaces on top of a backbone: heads (an MLP, or a copy of the last stage and one), an Encoder of chosen spaces."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cuewise.encoders.encoder import Encoder
from cuewise.encoders.heads import mlp, unit
from cuewise.encoders.pooling import pooled
from cuewise.encoders.trial import empty_image, in_evaluation_mode
from cuewise.encoders.weights import read_weights, write_weights
from cuewise.errors import UserError
from cuewise.files import aside

LAST_STAGE = "layer4"  # conv5, as torchvision, timm and resnet-tiny call it


class Heads(nn.Module):
    """One head per space.

    Heads share the pooled features of the backbone; with `own_stage` they share the map before the last stage instead, and
    each has a last stage of its own (LooC++): head 0 the backbone's, the others copies of it.
    """

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        hidden: int,
        dim: int,
        own_stage: bool = False,
        curvature: float | None = None,
    ) -> None:
        super().__init__()
        self.names, self.hidden, self.dim, self.own_stage = tuple(names), hidden, dim, own_stage
        self.curvature = curvature  # of the hyperbolic space that head 0 was trained in, None without
        self.mlps = nn.ModuleList(mlp([encoder.dim, hidden, dim]) for _ in names)
        copies = names[1:] if own_stage else ()
        self.stages = nn.ModuleList(copy.deepcopy(last_stage(encoder)) for _ in copies)

    def trunk(self, encoder: Encoder) -> nn.Module:
        """What all heads share: images → pooled features B×D, or with `own_stage` the map before the last stage."""
        return trunk(encoder) if self.own_stage else encoder

    def stage(self, encoder: Encoder, i: int) -> nn.Module | None:
        """The last stage of head i, None where the backbone's is shared by all."""
        if not self.own_stage:
            return None
        return last_stage(encoder) if i == 0 else self.stages[i - 1]

    def features(self, encoder: Encoder, v: Tensor, i: int) -> Tensor:
        """B×D: what the MLP of head i is given."""
        stage = self.stage(encoder, i)
        return v if stage is None else stage(v).mean(dim=(2, 3))

    def forward(self, encoder: Encoder, v: Tensor) -> list[Tensor]:
        """Unit-norm embeddings in all spaces, B×C each, from what the trunk gives."""
        return [unit(head(self.features(encoder, v, i))) for i, head in enumerate(self.mlps)]


def last_stage(encoder: Encoder) -> nn.Module:
    """The stage that LooC++ copies."""
    stage = getattr(encoder.backbone, LAST_STAGE, None)
    if not isinstance(stage, nn.Module):
        raise UserError(
            f"{encoder.card.arch} has no last stage to copy: heads with a stage of their own need a ResNet"
        )
    return stage


def trunk(encoder: Encoder) -> nn.Sequential:
    """The backbone's children up to its last stage, in the order of the forward."""
    last_stage(encoder)
    children = list(encoder.backbone.named_children())
    names = [name for name, _ in children]
    return nn.Sequential(*(child for _, child in children[: names.index(LAST_STAGE)]))


def check_split(encoder: Encoder) -> None:
    """Trunk and last stage one after the other must be the backbone: not so where a model is put together differently."""
    side = encoder.card.size
    x = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(0))
    with in_evaluation_mode(encoder), torch.no_grad():
        x = x.to(next(encoder.parameters()))
        try:
            split = last_stage(encoder)(trunk(encoder)(x)).mean(dim=(2, 3))
            whole = pooled(encoder.backbone, x)
            fits = split.shape == whole.shape and torch.allclose(split, whole, rtol=1e-3, atol=1e-4)
        except RuntimeError:
            fits = False
    if not fits:
        raise UserError(
            f"{encoder.card.arch} cannot be split before its last stage; use a ResNet of torchvision, timm or cuewise"
        )


class Spaces(nn.Module):
    """Features in chosen spaces, side by side: v is what the heads share, pooled; `blocks` gives the columns of each space.

    A space's feature is its unit-norm embedding; with a last stage of its own it is that stage's pooled output.
    """

    def __init__(self, encoder: Encoder, heads: Heads, chosen: Sequence[str]) -> None:
        super().__init__()
        self.encoder, self.heads, self.chosen = encoder, heads, tuple(chosen)
        width = encoder.dim if heads.own_stage else heads.dim
        self.blocks: dict[str, slice] = {}
        start = 0
        for name in self.chosen:
            end = start + (self._width_of_v() if name == "v" else width)
            self.blocks[name] = slice(start, end)
            start = end

    def _width_of_v(self) -> int:
        if not self.heads.own_stage:
            return self.encoder.dim
        with torch.no_grad():
            x = empty_image(self.encoder, self.encoder.card.size)
            return int(trunk(self.encoder).eval()(x).shape[1])

    def forward(self, x: Tensor) -> Tensor:
        v = self.heads.trunk(self.encoder)(x)
        return torch.cat([self._space(name, v) for name in self.chosen], dim=1)

    def _space(self, name: str, v: Tensor) -> Tensor:
        if name == "v":
            return v.mean(dim=(2, 3)) if v.ndim == 4 else v
        i = self.heads.names.index(name)
        found = self.heads.features(self.encoder, v, i)
        return found if self.heads.own_stage else unit(self.heads.mlps[i](found))


def in_space(encoder: Encoder, heads: Heads | None, space: str, source: str) -> Encoder:
    """An Encoder whose features are those of `space`: v, z0, a left-out augmentation, all, or several joined by +."""
    if space == "v" and (heads is None or not heads.own_stage):
        return encoder
    if heads is None:
        raise UserError(
            f"--space {space}: {source} has no spaces, only its features (v); train one with --method looc --leave-out …"
        )
    chosen = [n for part in space.split("+") for n in (heads.names if part == "all" else (part,))]
    for name in chosen:
        if name not in ("v", *heads.names):
            raise UserError(f"--space {name}: {source} has v, {', '.join(heads.names)} and all")
    if len(set(chosen)) < len(chosen):
        raise UserError(f"--space {space} names a space twice")
    card = replace(encoder.card, cues={**encoder.card.cues, "space": space})
    return Encoder(Spaces(encoder, heads, chosen), card).eval()


def save_heads(heads: Heads, folder: Path, step: int) -> None:
    """FOLDER/heads.safetensors and heads.json, atomically; `step` ties them to the encoder beside them."""
    state = {k: v.detach().cpu().contiguous().clone() for k, v in heads.state_dict().items()}
    about: dict[str, Any] = {
        "spaces": list(heads.names),
        "hidden": heads.hidden,
        "dim": heads.dim,
        "own_stage": heads.own_stage,
        **({} if heads.curvature is None else {"curvature": heads.curvature}),
        "step": step,
    }
    with aside(folder / "heads.json") as text:
        write_weights(state, folder / "heads.safetensors")
        text.write_text(json.dumps(about, indent=2) + "\n")


def read_heads(encoder: Encoder, folder: Path) -> Heads | None:
    """The heads of a run folder, None where it has none."""
    file = folder / "heads.json"
    if not file.is_file():
        return None
    about = json.loads(file.read_text())
    card = folder / "encoder.json"
    step = json.loads(card.read_text()).get("step") if card.is_file() else None
    if step is not None and step != about["step"]:
        raise UserError(
            f"{folder}: the encoder is of step {step} and its heads are of step {about['step']} (a run that was "
            f"stopped while writing); continue it with --resume"
        )
    heads = Heads(
        encoder, about["spaces"], about["hidden"], about["dim"], about["own_stage"], about.get("curvature")
    )
    heads.load_state_dict(read_weights(folder / "heads.safetensors"))
    return heads.eval()
