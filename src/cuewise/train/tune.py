"""From MODEL and --away to the layers of a tuning run: user input is checked before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuewise.config import merge
from cuewise.encoders import Encoder
from cuewise.encoders.card import is_random
from cuewise.encoders.load import HUB, load_whole
from cuewise.errors import UserError

# what each cue is turned away by: views in which it was removed or exchanged, and negatives that keep nothing else
AWAY: dict[str, dict[str, Any]] = {
    "texture": {
        "suppress": {"name": "anisotropic", "share": 1 / 3},
        "views": {"blur_p": 0.0, "style_p": 1.0},
        "negatives": ["patch"],
        "alpha": [2.0],
    },
    "color": {"views": {"jitter": [0.4, 0.4, 0.8, 0.5], "gray_p": 0.5}},
    "none": {},
}
EPOCHS, BATCH = 1, 32
DIALS = ("negatives", "suppress", "generator", "crops", "leave_out", "hard", "views")
SMALLEST = 32  # pixels


def starting_layer(model: str, away: str | None) -> dict[str, Any]:
    """The defaults of a tuning run of this model; later layers override them."""
    encoder = load_whole(model)
    if is_random(encoder.card.weights):
        raise UserError(
            f"{model} has no weights, so there is nothing to keep: give MODEL:FILE, --pretrained, or the folder of a run"
        )
    own = {"size": usual_size(encoder), "epochs": EPOCHS, "batch_size": BATCH}
    return merge(preset(away or "texture"), own)


def preset(away: str) -> dict[str, Any]:
    """`texture`, `color`, both, or none."""
    names = [name.strip() for name in away.split(",")]
    for name in names:
        if name not in AWAY:
            raise UserError(f"--away {name}: there are {', '.join(AWAY)}, or several with commas")
    if "none" in names and len(names) > 1:
        raise UserError("--away none cannot be combined with others: the dials are then your own")
    return merge(*(AWAY[name] for name in names))


def usual_size(encoder: Encoder) -> int:
    """Half the model's own side, a quarter of the cost; its own where the model is built for one size."""
    fixed = getattr(getattr(encoder.backbone, "patch_embed", None), "grid_size", None) is not None
    fixed = fixed or encoder.card.arch.startswith(HUB)
    return encoder.card.size if fixed else max(SMALLEST, encoder.card.size // 2)


def layers_of(
    model: str, away: str | None, typed: Sequence[Mapping[str, Any]], out: Path, *, resume: bool, begun: bool
) -> list[Mapping[str, Any]]:
    """The layers of `cuewise tune`: on a new run the defaults of this model come first."""
    for layer in typed:
        for name in ("method", "model"):
            if layer.get(name) is not None and (name, layer[name]) != ("method", "tune"):
                raise UserError(
                    f"{name} {layer[name]}: remove it: `cuewise tune` has a fixed method, and the model is the positional MODEL"
                )
    own: dict[str, Any] = {"method": "tune", "model": model}
    resumed = resume and (out / "config.yaml").is_file()
    if away == "none" and not resumed and not any(layer.get(dial) for layer in typed for dial in DIALS):
        raise UserError(
            "--away none turns no cue: add a dial of your own, as --suppress, --negatives or --set views.style_p=1, or "
            "leave --away out"
        )
    first = preset(away) if away and (resumed or begun) else {}
    if not resumed and not begun:
        first = starting_layer(model, away)
    return [first, *typed, own]
