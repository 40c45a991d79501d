"""From layers of settings to a configuration that is complete and checked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, get_type_hints

from cuewise.config.checks import check_dials
from cuewise.config.fields import Config
from cuewise.config.layers import merge
from cuewise.errors import UserError, nearest
from cuewise.methods import Method, method, methods
from cuewise.methods.hard import HARD
from cuewise.options import COMMAS, convert
from cuewise.views.object_crops import CropSettings
from cuewise.views.suppress import SuppressSettings, filter_options, suppressor


def resolve(*layers: Mapping[str, Any]) -> Config:
    """A complete Config: defaults, then the method's own, then each layer in turn."""
    asked = merge(*layers)
    kind = method(asked.get("method") or Config.method)
    for name in ("optim", "settings", kind.name):
        if not isinstance(asked.get(name) or {}, Mapping):
            raise UserError(
                f"{name} is a group of settings: give {name}.NAME=VALUE (see `cuewise list settings`)"
            )
    # the method's block may stand under its name, as in config.yaml, or under "settings"
    settings = merge(asked.pop("settings", None) or {}, asked.pop(kind.name, None) or {})
    if strange := sorted(asked.keys() & methods().keys()):
        raise UserError(
            f"{strange[0]}.* are settings of the method {strange[0]}, and this run's method is {kind.name}"
        )
    hard = _resolve_hard(asked.pop("hard", None) or {}, kind)
    crops = _resolve_crops(asked.pop("crops", None) or {})
    suppress = _resolve_suppress(asked.pop("suppress", None) or {})
    own = {k: v for k, v in kind.optim.items() if k != "short_lr"}
    full = merge({"optim": own}, asked)
    if "short_lr" in kind.optim and (asked.get("optim") or {}).get("lr") is None:
        full["optim"].pop("lr")  # it depends on the length of the run: `settle_rates`
    if full["optim"].get("schedule") != "step" and not (asked.get("optim") or {}).get("milestones"):
        full["optim"].pop("milestones", None)  # the method's own, of a schedule that is not taken
    if (asked.get("optim") or {}).get("warmup_epochs") and "warmup_share" not in asked["optim"]:
        full["optim"].pop("warmup_share", None)  # the method's own, where epochs were asked for
    config = _build(Config, full, "")
    config.settings = dataclasses.asdict(_build(kind.Settings, settings, f"{kind.name}."))
    config.hard, config.crops, config.suppress = hard, crops, suppress
    if kind.backbone:
        config.model = _own_backbone(config.model, kind)
    config.model = kind.model(config.model)
    check_dials(config, kind)
    return config


def _own_backbone(model: str, kind: type[Method]) -> str:
    """--model of a method that trains one network only; the default of --model is not a choice."""
    if model == Config.model:
        return kind.backbone
    if model.partition("?")[0] != kind.backbone:
        raise UserError(f"--model {model}: {kind.name} trains {kind.backbone} only; leave --model out")
    return model


def _named(asked: Any) -> tuple[Any, dict[str, Any]]:
    """The name that a dial is given, and its settings; in YAML a name may stand alone."""
    if not isinstance(asked, (str, Mapping)):
        raise UserError(f"{asked!r} is not a name: give the name of a filter, of hard negatives or of crops")
    values = dict(asked) if isinstance(asked, Mapping) else {"name": asked}
    return values.pop("name", None), values


def _resolve_hard(asked: Any, kind: type[Method]) -> dict[str, Any]:
    """--hard NAME (in YAML also `hard: NAME`) and hard.*: the name with all its settings."""
    if not asked:
        return {}
    name, values = _named(asked)
    if name is None:
        raise UserError(f"hard.* are settings of --hard, which is not given: {', '.join(HARD)}")
    if name not in HARD:
        raise UserError(f"--hard {name}: there are {', '.join(HARD)}")
    if not kind.takes_hard:
        takers = ", ".join(n for n, m in methods().items() if m.takes_hard)
        raise UserError(f"--hard {name} has no meaning for {kind.name}: it is for {takers}")
    return {"name": name, **dataclasses.asdict(_build(HARD[name], values, "hard."))}


def _resolve_crops(asked: Any) -> dict[str, Any]:
    """--crops NAME (in YAML also `crops: NAME`) and crops.*; empty for random crops."""
    name, values = _named(asked)
    if name not in (None, "random", "object"):
        raise UserError(f"--crops {name}: random or object")
    if name != "object":
        if values:
            raise UserError(f"crops.{next(iter(values))} is a setting of --crops object, which is not given")
        return {}
    settings = _build(CropSettings, values, "crops.")
    settings.check()
    return {"name": name, **dataclasses.asdict(settings)}


def _resolve_suppress(asked: Any) -> dict[str, Any] | None:
    """--suppress NAME (in YAML also `suppress: NAME`) and suppress.*: the policy's settings and the filter's own."""
    name, values = _named(asked)
    if name is None:
        if values:
            raise UserError(
                f"suppress.{next(iter(values))} is a setting of --suppress, which is not given: add --suppress anisotropic"
            )
        return None
    cue = suppressor(name)
    policy = get_type_hints(SuppressSettings)
    for key in values:
        if key not in policy and key not in cue.settings:
            raise _no_setting(f"suppress.{key} of {name}", key, (*policy, *cue.settings), "suppress.")
    settings = _build(SuppressSettings, {k: v for k, v in values.items() if k in policy}, "suppress.")
    own = filter_options(cue, {k: v for k, v in values.items() if k not in policy})
    settings.check(own)
    return {"name": name, **dataclasses.asdict(settings), **own}


def complete(config: Config, images: int) -> Config:
    """Fill in what depends on the number of images and that nobody set (the method says how)."""
    per_epoch = max(1, images // config.batch_size)
    if config.loop.budget is not None:
        config = dataclasses.replace(config, epochs=math.ceil(config.loop.budget / per_epoch))
    settings = config.method_class.Settings(**config.settings)
    fitted = settings.fitted(images, config.loop.budget or per_epoch * config.epochs)
    return dataclasses.replace(config, settings=dataclasses.asdict(fitted))


def _build(kind: type[Any], values: Mapping[str, Any], where: str) -> Any:
    """An instance of the dataclass `kind` from a mapping; unknown keys and wrong types are errors with a hint."""
    hints = get_type_hints(kind, include_extras=True)
    for key in values:
        if key not in hints:
            raise _no_setting(f"{where}{key}", key, hints, where)
    return kind(**{k: _value(hints[k], v, f"{where}{k}") for k, v in values.items()})


def _no_setting(what: str, key: str, known: Iterable[str], where: str) -> UserError:
    near = nearest(key, known)
    hint = f"did you mean {where}{near}?" if near else f"known: {', '.join(known)}"
    return UserError(f"no setting {what}: {hint}")


def _value(hint: Any, value: Any, where: str) -> Any:
    if not dataclasses.is_dataclass(hint) or not isinstance(hint, type):
        return convert(hint, value, where, commas=COMMAS in getattr(hint, "__metadata__", ()))
    if not isinstance(value, Mapping):
        raise UserError(f"{where} is a group of settings, not {value!r}: set {where}.NAME=VALUE")
    return _build(hint, value, f"{where}.")
