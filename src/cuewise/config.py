"""What a run is made of: options from the shell, Python and YAML, checked, completed and written down."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import yaml

from cuewise.errors import UserError
from cuewise.methods import Method, Negatives, method, methods
from cuewise.methods.hard import HARD, Hard
from cuewise.views import augmentation
from cuewise.views.suppress import FILTERS


@dataclass
class Optim:
    """The optimiser: lr is for `reference_batch` images and follows the batch size linearly."""

    name: str = "sgd"  # sgd, adam, adamw, lars
    lr: float = 0.03
    reference_batch: int = 256
    momentum: float = 0.9
    weight_decay: float = 1e-4
    decay_all: bool = (
        True  # weight decay on biases and norms too, as MoCo does; lars, adam and adamw leave them out
    )
    schedule: str = "cosine"  # cosine, step, constant
    milestones: list[float] = field(default_factory=lambda: [0.6, 0.8])  # of "step", as shares of training
    warmup_epochs: float = 0.0
    clip: float = 0.0  # largest gradient norm, 0 for none


@dataclass
class Views:
    """How views depart from the published recipe; null keeps what the recipe says."""

    scale: list[float] | None = None  # crop area
    blur_p: float | None = None
    gray_p: float | None = None
    jitter: list[float] | None = None  # strengths of brightness, contrast, saturation, hue
    rotation_p: float | None = None
    style_p: float | None = None  # a random style's texture
    style_strength: list[float] | None = None  # low and high
    styles: str | None = None  # a folder of style images; null: styles drawn by formula
    style_copies: str | None = None  # a folder of copies made beforehand, found by the images' names
    style_count: int | None = None  # styles to choose from; null: 64, or all copies
    same: list[str] = field(default_factory=list)  # augmentations that all views of an image share
    scale_blur: bool = True  # the published blur is for 224 pixels: scale it with the size
    overlap: str = "allow"  # of the patches of a negative: allow, distinct, avoid


@dataclass
class Loop:
    """The training loop itself."""

    accumulate: int = 1  # micro-batches a step
    compile: bool = False  # torch.compile the backbone
    deterministic: bool = True  # deterministic algorithms on accelerators too
    log_every: int = 10  # steps between two rows of metrics.jsonl
    checkpoint_minutes: float = 10.0  # and at the end of every epoch
    val_every: int = 1  # epochs between two k-NN accuracies, with --val
    timeout_minutes: float = 30.0  # of a collective operation


@dataclass
class Config:
    """One pretraining run. Null values are filled in by `resolve`."""

    data: list[str] = field(default_factory=list)
    val: list[str] = field(default_factory=list)
    method: str = "moco"
    model: str = "torchvision/resnet50"
    size: int = 224
    epochs: int = 200
    batch_size: int = 256
    seed: int = 0
    devices: str = "auto"
    num_nodes: int = 1
    precision: str = "auto"
    workers: str = "auto"
    steps: int | None = None
    negatives: list[str] = field(default_factory=list)
    alpha: list[float] = field(default_factory=list)
    alpha_mode: str = "in"
    num_negatives: int = 1
    patch_size: str | None = None
    patch_augment: list[str] = field(default_factory=list)
    texture_data: list[str] = field(default_factory=list)
    hard: dict[str, Any] = field(default_factory=dict)  # name and its settings; empty: none
    leave_out: list[str] = field(default_factory=list)
    suppress: str | None = None
    color_jitter: bool = True
    crops: str = "random"
    views: Views = field(default_factory=Views)
    optim: Optim = field(default_factory=Optim)
    loop: Loop = field(default_factory=Loop)
    settings: dict[str, Any] = field(
        default_factory=dict
    )  # of the method; in YAML under the method's own name

    @property
    def method_class(self) -> type[Method]:
        return method(self.method)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the augmentations in --leave-out, which may say where to import them from."""
        return tuple(augmentation(name).name for name in self.leave_out)

    def negatives_dial(self) -> Negatives:
        return Negatives(tuple(self.negatives), tuple(self.alpha), self.num_negatives, self.alpha_mode)

    def hard_dial(self) -> Hard | None:
        settings = dict(self.hard)
        return HARD[settings.pop("name")](**settings) if settings else None

    def as_dict(self) -> dict[str, Any]:
        """Nested plain values; the method's settings stand under the method's name."""
        plain = dataclasses.asdict(self)
        plain[self.method] = plain.pop("settings")
        return plain

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.as_dict(), sort_keys=False, allow_unicode=True)


# What may differ between a run and its --resume: none of it changes the numbers.
FREE_TO_CHANGE = ("workers", "devices", "num_nodes", "steps", "val")


def read_yaml(file: Path) -> dict[str, Any]:
    """A mapping from a YAML file, or an error that names the line."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the config {file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} must hold a mapping such as `epochs: 100`, not {type(content).__name__}")
    return content


def dotted(pairs: list[str]) -> dict[str, Any]:
    """["optim.lr=0.1", "moco.queue=512"] → nested dicts, values read as YAML."""
    tree: dict[str, Any] = {}
    for pair in pairs:
        key, eq, value = pair.partition("=")
        if not eq or not key:
            raise UserError(f"--set {pair!r}: write dotted.key=value, e.g. --set optim.lr=0.1")
        *parents, leaf = key.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise UserError(f"--set {pair!r}: {parent} is already set to a value")
        try:
            place[leaf] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UserError(
                f"--set {pair!r}: cannot read the value; put text with special characters in quotes"
            ) from None
    return tree


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later layers win, key by key; None leaves what was there."""
    out: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and isinstance(out.get(key), dict):
                out[key] = merge(out[key], value)
            elif isinstance(value, Mapping):
                out[key] = merge(value)
            elif value is not None or key not in out:
                out[key] = value
    return out


def resolve(*layers: Mapping[str, Any]) -> Config:
    """A complete Config: defaults, then the method's own, then each layer in turn."""
    asked = merge(*layers)
    kind = method(asked.get("method") or Config.method)
    # the method's block may stand under its name, as in config.yaml, or under "settings"
    settings = merge(asked.pop("settings", None) or {}, asked.pop(kind.name, None) or {})
    if strange := [k for k in asked if k in methods()]:
        raise UserError(
            f"{strange[0]}.* are settings of the method {strange[0]}, and this run's method is {kind.name}"
        )
    hard = _resolve_hard(asked.pop("hard", None) or {}, kind)
    full = merge({"optim": dict(kind.optim)}, asked)
    config = _build(Config, full, "")
    config.settings = dataclasses.asdict(_build(kind.Settings, settings, f"{kind.name}."))
    config.hard = hard
    _check_dials(config, kind)
    return config


def _resolve_hard(asked: Any, kind: type[Method]) -> dict[str, Any]:
    """--hard NAME (in YAML also `hard: NAME`) and hard.*: the name with all its settings."""
    values = dict(asked) if isinstance(asked, Mapping) else {"name": asked}
    if not values:
        return {}
    name = values.pop("name", None)
    if name is None:
        raise UserError(f"hard.* are settings of --hard, which is not given: {', '.join(HARD)}")
    if name not in HARD:
        raise UserError(f"--hard {name}: there are {', '.join(HARD)}")
    if not kind.takes_hard:
        takers = ", ".join(n for n, m in methods().items() if m.takes_hard)
        raise UserError(f"--hard {name} has no meaning for {kind.name}: it is for {takers}")
    return {"name": name, **dataclasses.asdict(_build(HARD[name], values, "hard."))}


def complete(config: Config, images: int) -> Config:
    """Fill in what depends on the number of images and that nobody set (the method says how)."""
    steps = max(1, images // config.batch_size) * config.epochs
    settings = config.method_class.Settings(**config.settings)
    return dataclasses.replace(config, settings=dataclasses.asdict(settings.fitted(images, steps)))


def _check_dials(config: Config, kind: type[Method]) -> None:
    for name in config.negatives:
        if name not in kind.negative_kinds:
            known = ", ".join(kind.negative_kinds) or "none"
            raise UserError(f"--negatives {name} has no meaning for {kind.name}: it takes {known}")
    if len(set(config.negatives)) < len(config.negatives):
        raise UserError("--negatives names a kind twice; use --num-negatives for several of a kind")
    if config.alpha and not config.negatives:
        raise UserError("--alpha weighs negatives, and there are none: add --negatives patch")
    alpha = config.alpha or [kind.alpha]
    if len(alpha) == 1:
        alpha = alpha * len(config.negatives)
    if len(alpha) != len(config.negatives):
        raise UserError(
            f"{len(alpha)} values of --alpha for {len(config.negatives)} kinds of negatives: give 1 or as many"
        )
    if any(a < 0 for a in alpha):
        raise UserError(f"--alpha {min(alpha)}: a negative has a weight of 0 (off) or more")
    config.alpha = alpha
    if config.texture_data and "texture" not in config.negatives:
        raise UserError("--texture-data holds texture negatives, and there are none: add --negatives texture")
    if config.alpha_mode not in ("in", "out"):
        raise UserError(f"--alpha-mode {config.alpha_mode}: in or out")
    _check_augmentations(config, kind)
    if config.suppress is not None and config.suppress not in FILTERS:
        raise UserError(f"--suppress {config.suppress}: there are {', '.join(FILTERS)}")
    if config.crops != "random":
        raise UserError(f"--crops {config.crops}: only random is available in this version")
    for name, least in (
        ("size", 8),
        ("epochs", 1),
        ("batch_size", 2),
        ("num_negatives", 1),
        ("num_nodes", 1),
    ):
        if getattr(config, name) < least:
            raise UserError(f"--{name.replace('_', '-')} {getattr(config, name)}: must be {least} or more")
    if config.batch_size % config.loop.accumulate:
        raise UserError(
            f"batch size {config.batch_size} is not a multiple of loop.accumulate {config.loop.accumulate}"
        )


def _check_augmentations(config: Config, kind: type[Method]) -> None:
    """--leave-out and views.same name augmentations that the views have."""
    if config.leave_out and not kind.leaves_out:
        raise UserError(f"--leave-out has no meaning for {kind.name}: use --method looc")
    names, same = config.left_out, [augmentation(name).name for name in config.views.same]
    if len(set(names)) < len(names):
        raise UserError(f"--leave-out {','.join(names)} names an augmentation twice")
    if both := [n for n in names if n in same]:
        raise UserError(
            f"--leave-out {both[0]} and views.same={both[0]} exclude each other: all keys would share it, and none is left"
        )
    if "color" in names and not config.color_jitter:
        raise UserError("--leave-out color needs colours that change: take --no-color-jitter away")
    for name in names:
        values = [getattr(config.views, p, None) for p in augmentation(name).probabilities]
        if values and all(v == 0 for v in values):
            raise UserError(
                f"--leave-out {name}: views.{next(iter(augmentation(name).probabilities))}=0 leaves no {name}"
            )
    v = config.views
    if (v.styles or v.style_copies or v.style_count) and not (v.style_p or "texture" in (*names, *same)):
        raise UserError(
            "views.styles, style_copies and style_count are for texture randomisation: set views.style_p too"
        )
    if config.settings.get("mask_equal") and not names:
        raise UserError(f"{kind.name}.mask_equal has no meaning without --leave-out")


def _build(kind: type[Any], values: Mapping[str, Any], where: str) -> Any:
    """An instance of the dataclass `kind` from a mapping; unknown keys and wrong types are errors with a hint."""
    hints = get_type_hints(kind)
    for key in values:
        if key not in hints:
            close = difflib.get_close_matches(key, hints, n=1)
            hint = f"did you mean {where}{close[0]}?" if close else f"known: {', '.join(hints)}"
            raise UserError(f"no setting {where}{key}: {hint}")
    return kind(**{k: _convert(hints[k], v, f"{where}{k}") for k, v in values.items()})


def _convert(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise UserError(f"{where} is a group of settings, not {value!r}: set {where}.NAME=VALUE")
        return _build(hint, value, f"{where}.")
    options = get_args(hint) if get_origin(hint) not in (list, dict) else ()
    if value is None and type(None) in options:
        return None
    kind = next((o for o in options if o is not type(None)), hint)
    if get_origin(kind) is list:
        items = value if isinstance(value, list | tuple) else [value]
        return [_convert(get_args(kind)[0], v, where) for v in items]
    if kind is float and isinstance(value, str):  # YAML reads 1e-4 as text
        value = _number(value, where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if kind in (int, float, str, bool) and (type(value) is not kind):
        raise UserError(f"{where} must be {kind.__name__}, not {value!r}")
    return value


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{where} must be a number, not {text!r}") from None


def difference(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> list[str]:
    """Keys whose values differ, as "optim.lr: 0.03 → 0.1"."""
    out = []
    for key in [*old, *(k for k in new if k not in old)]:
        a, b = old.get(key), new.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            out += difference(a, b, f"{where}{key}.")
        elif a != b and not (where == "" and key in FREE_TO_CHANGE):
            out.append(f"{where}{key}: {a} → {b}")
    return out
