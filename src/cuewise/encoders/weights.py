"""Weights on disk: read without running any pickled code, loaded with errors that say what does not fit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from timm.layers.pos_embed import resample_abs_pos_embed
from torch import Tensor, nn

from cuewise.encoders.constructor import first_line
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.low_rank import merged
from cuewise.errors import UserError
from cuewise.files import write_bytes

WRAPPERS = ("state_dict", "model", "model_state_dict", "teacher", "student")
PREFIXES = (
    "module.",
    "encoder_q.",
    "module.encoder_q.",
    "backbone.",
    "model.",
    "encoder.",
    "encoder.backbone.",
    "module.backbone.",
)


def write_weights(state: dict[str, Tensor], file: Path) -> None:
    """FILE.safetensors, atomically."""
    write_bytes(file, save(state, metadata={"format": "pt"}))


def read_file(file: Path) -> Any:
    """What a file of tensors and plain values holds; anything else is one line."""
    if not file.is_file():
        raise UserError(f"no weights at {file}: give a .safetensors or .pth file")
    if file.stat().st_size == 0:
        raise UserError(f"cannot read weights from {file}: it is empty")
    try:
        if file.suffix == ".safetensors":
            return dict(load_file(str(file)))
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # truncated zips, foreign pickles and damaged headers raise many kinds
        raise UserError(f"cannot read weights from {file}: {_why(error)}") from error


def _why(error: Exception) -> str:
    text = str(error)
    if "weights_only" in text or "WeightsUnpickler" in text or "Unsupported global" in text:
        return (
            "it holds Python objects or is damaged, and Python objects are never loaded; save a plain state dict with "
            "torch.save(model.state_dict(), …)"
        )
    return f"{first_line(error)[:120]} (truncated or not a file of weights)"


def read_weights(file: Path) -> dict[str, Tensor]:
    """A flat dict of tensors from .safetensors or from a .pth/.pt/.ckpt that holds nothing but tensors."""
    content = read_file(file)
    for key in WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    state = {k: v for k, v in content.items() if isinstance(v, Tensor)} if isinstance(content, dict) else {}
    if not state or not all(isinstance(k, str) for k in state):
        raise UserError(f"{file} holds no state dict (found {type(content).__name__})")
    return state


def backbone_in_checkpoint(file: Path) -> tuple[dict[str, Tensor], int]:
    """The encoder's backbone in a checkpoint of a run, and the step it was written at."""
    content = _checkpoint(file)
    return merged(_part(content, "encoder.backbone.", file)), int(content["step"])


def part_of_checkpoint(file: Path, prefix: str) -> dict[str, Tensor]:
    """What a checkpoint of a run holds below a name, e.g. "discriminator."."""
    if not file.is_file():
        raise UserError(f"{file} is missing: give the whole run folder")
    return _part(_checkpoint(file), prefix, file)


def _checkpoint(file: Path) -> dict[str, Any]:
    content = read_file(file)
    state = content.get("method") if isinstance(content, dict) else None
    if not isinstance(state, dict) or type(content.get("step")) is not int:
        raise UserError(
            f"{file} is not a checkpoint of `cuewise pretrain`; weights of a model are MODEL:FILE"
        )
    return content


def _part(content: dict[str, Any], prefix: str, file: Path) -> dict[str, Tensor]:
    state = content["method"]
    found = {k[len(prefix) :]: v for k, v in state.items() if isinstance(k, str) and k.startswith(prefix)}
    if not found or not all(isinstance(v, Tensor) for v in found.values()):
        what = prefix.partition(".")[0]
        raise UserError(f"{file} holds no {what}: it is damaged, or was written by another program")
    return found


def load_into(encoder: Encoder, weights: dict[str, Tensor], source: str) -> None:
    """Load the backbone (and the head, if the encoder keeps one); every missing or odd-shaped tensor is an error."""
    backbone, prefix = encoder.backbone.state_dict(), getattr(encoder.backbone, "wraps", "")
    if prefix and not any(k in backbone for k in weights):  # in the key names of the library
        weights = {prefix + k: v for k, v in weights.items()}
    weights = _at_grid(_strip(weights, set(backbone)), encoder.backbone)
    missing = [k for k in backbone if k not in weights]
    wrong = [k for k in backbone if k in weights and weights[k].shape != backbone[k].shape]
    if missing or wrong:
        raise UserError(_mismatch(encoder.card.arch, source, backbone, weights, missing, wrong))
    if deeper := further_blocks(backbone, weights):
        raise UserError(
            f"{source} is of a deeper network than {encoder.card.arch}: it also has {_few(deeper)}. "
            "Name the architecture it was made for"
        )
    encoder.backbone.load_state_dict({k: weights[k] for k in backbone})
    rest = {k: v for k, v in weights.items() if k not in backbone}
    if encoder.head is not None and all(encoder.head is not m for m in encoder.backbone.modules()):
        _load_head(encoder, rest, source)


def further_blocks(backbone: Iterable[str], weights: Iterable[str]) -> list[str]:
    """Keys of blocks beyond the last of a numbered row, such as layer1.2.conv1.weight where the network ends at layer1.1."""
    known = set(backbone)
    begun = {".".join(k.split(".")[:n]) for k in known for n in range(1, k.count(".") + 1)}
    out = []
    for key in weights:
        parts = key.split(".")
        numbers = [
            n for n in range(1, len(parts) - 2) if parts[n].isdigit()
        ]  # a single layer may be the classifier
        rows = ((".".join(parts[:n]), ".".join(parts[: n + 1])) for n in numbers)
        if key not in known and any(
            row in begun and f"{row}.0" in begun and block not in begun for row, block in rows
        ):
            out.append(key)
    return out


def _at_grid(weights: dict[str, Tensor], backbone: nn.Module) -> dict[str, Tensor]:
    """Positions of a vision transformer resampled to the grid of this input size, where only the grid differs."""
    name, ours = "pos_embed", getattr(backbone, "pos_embed", None)
    theirs, grid = weights.get(name), getattr(getattr(backbone, "patch_embed", None), "grid_size", None)
    if not isinstance(ours, Tensor) or theirs is None or grid is None or ours.shape == theirs.shape:
        return weights
    prefix = ours.shape[1] - grid[0] * grid[1]
    square = theirs.ndim == 3 and round((theirs.shape[1] - prefix) ** 0.5) ** 2 == theirs.shape[1] - prefix
    if prefix < 0 or not square or theirs.shape[2] != ours.shape[2]:
        return weights
    return {**weights, name: resample_abs_pos_embed(theirs, list(grid), num_prefix_tokens=prefix)}


class NoClassifier(UserError):
    """The weights are of a backbone alone."""


def _load_head(encoder: Encoder, rest: dict[str, Tensor], source: str) -> None:
    assert encoder.head is not None
    head = encoder.head.state_dict()
    found = {k.rpartition(".")[2]: v for k, v in rest.items() if k.rpartition(".")[2] in head}
    if any(k not in found for k in head):
        raise NoClassifier(
            f"{source} has no classifier for {encoder.card.arch} (left over: {_few(list(rest))})"
        )
    for k, v in head.items():
        if found[k].shape != v.shape:
            raise UserError(
                f"the classifier in {source} does not fit {encoder.card.arch}: its {k} is {tuple(found[k].shape)}, needed "
                f"{tuple(v.shape)}. Name the architecture it was made for"
            )
    encoder.head.load_state_dict(found)


def _strip(weights: dict[str, Tensor], wanted: set[str]) -> dict[str, Tensor]:
    """Take off one prefix such as "module." if that makes the keys fit."""

    def fitting(prefix: str) -> int:
        return sum(k.startswith(prefix) and k[len(prefix) :] in wanted for k in weights)

    best = max(("", *PREFIXES), key=fitting)
    if not best or fitting(best) <= fitting(""):
        return weights
    return {k[len(best) :]: v for k, v in weights.items() if k.startswith(best)}


def _mismatch(
    arch: str,
    source: str,
    have: dict[str, Tensor],
    given: dict[str, Tensor],
    missing: list[str],
    wrong: list[str],
) -> str:
    parts = []
    if missing:
        parts.append(f"{len(missing)} of {len(have)} tensors are missing ({_few(missing)})")
    if wrong:
        k = wrong[0]
        parts.append(
            f"{len(wrong)} have another shape ({k}: {tuple(given[k].shape)}, needed {tuple(have[k].shape)})"
        )
    odd = [k for k in given if k not in have]
    tail = f"; the file has {_few(odd)} instead" if missing and odd else ""
    return f"the weights in {source} do not fit {arch}: {'; '.join(parts)}{tail}. Name the architecture they were made for"


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
