"""Options behind MODEL?…: plain values that are on a list, never a file to load or code to run."""

from __future__ import annotations

from typing import Any

import yaml

from cuewise.errors import UserError, unknown

# fmt: off
ALLOWED = {
    "torchvision": (
        "stem", "width", "width_per_group", "groups", "zero_init_residual", "dropout", "image_size", "patch_size",
        "width_mult", "stochastic_depth_prob", "transform_input", "min_depth", "layer_scale",
    ),
    "timm": (
        "img_size", "patch_size", "global_pool", "class_token", "no_embed_class", "reg_tokens", "depth", "embed_dim",
        "num_heads", "mlp_ratio", "init_values", "qkv_bias", "window_size", "drop_rate", "drop_path_rate",
        "proj_drop_rate", "attn_drop_rate", "output_stride", "stem_width", "stem_type", "base_width", "cardinality", "fc_norm",
    ),
}
# fmt: on
NEVER = {
    "checkpoint_path": "weights on disk are MODEL:FILE",
    "weights": "weights on disk are MODEL:FILE",
    "pretrained_cfg": "weights on disk are MODEL:FILE",
    "num_classes": "the classifier follows the weights",
    "features_only": "an encoder gives its last map by itself",
    "in_chans": "images have three channels",
}


def parse_options(text: str | None) -> dict[str, Any]:
    """ "width=16&norm=group" → {"width": 16, "norm": "group"}."""
    found: dict[str, Any] = {}
    for part in (text or "").split("&"):
        key, equals, value = part.partition("=")
        if not part:
            continue
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            found[key] = value
        if not equals or not isinstance(found[key], str | int | float | bool):
            raise UserError(f"model option {part!r}: write ?name=value, joined by &")
    return found


def check_options(library: str, name: str, options: dict[str, Any]) -> None:
    """Refuse what is not on the library's list."""
    for key in options:
        if key in NEVER:
            raise UserError(f"{library}/{name}?{key}= is not an option: {NEVER[key]}")
        if key not in ALLOWED[library]:
            raise unknown(f"{library} models take no option", key, sorted(ALLOWED[library]))


def first_line(error: BaseException) -> str:
    """What an error of a library says, on one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
