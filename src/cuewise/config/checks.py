"""Which options of a run have a meaning together: every dial acts, or is refused with what to do."""

from __future__ import annotations

import math

from cuewise.config.fields import Config, Labels, Optim
from cuewise.errors import UserError
from cuewise.methods import Method, methods
from cuewise.registry import declared_members
from cuewise.views import NEGATIVES, RECIPES, augmentation, negative_kind, negative_settings

CORRECTIONS = ("none", "glc", "forward")
SCHEDULES = ("cosine", "step", "constant")


def check_dials(config: Config, kind: type[Method]) -> None:
    _check_negatives(config, kind)
    _check_augmentations(config, kind)
    if config.suppress and kind.no_suppress:
        raise UserError(f"--suppress has no meaning for {kind.name}: {kind.no_suppress}")
    if config.generator is not None and not kind.takes_generator:
        raise UserError(f"--generator has no meaning for {kind.name}: use {takers('takes_generator')}")
    if config.crops and not kind.takes_crops:
        raise UserError(f"--crops object has no meaning for {kind.name}: it chooses its crops itself")
    for name, least in (("size", 8), ("epochs", 1), ("batch_size", 2), ("num_nodes", 1), ("steps", 1)):
        if getattr(config, name) is not None and getattr(config, name) < least:
            raise UserError(f"--{name.replace('_', '-')} {getattr(config, name)}: must be {least} or more")
    if config.loop.budget is not None and config.loop.budget < 1:
        raise UserError(f"loop.budget {config.loop.budget}: a number of optimiser steps, 1 or more")
    for name in ("accumulate", "log_every", "val_every"):
        if getattr(config.loop, name) < 1:
            raise UserError(f"loop.{name} {getattr(config.loop, name)}: must be 1 or more")
    if config.loop.views not in ("host", "device"):
        raise UserError(f"loop.views {config.loop.views!r}: host or device")
    if config.loop.decode not in ("full", "reduced"):
        raise UserError(f"loop.decode {config.loop.decode!r}: full or reduced")
    if config.loop.layout not in ("channels_last", "contiguous"):
        raise UserError(f"loop.layout {config.loop.layout!r}: channels_last or contiguous")
    if config.loop.compile and config.loop.checkpointing:
        raise UserError("loop.compile and loop.checkpointing do not go together: leave one of them out")
    _check_optim(config.optim)
    _check_labels(config.labels, kind)
    if config.batch_size % config.loop.accumulate:
        raise UserError(
            f"batch size {config.batch_size} is not a multiple of loop.accumulate {config.loop.accumulate}"
        )
    kind.check(config.setup())


def takers(flag: str) -> str:
    """ "--method looc or addone": the methods of which that is true."""
    return "--method " + " or ".join(name for name, kind in methods().items() if getattr(kind, flag))


def _check_optim(optim: Optim) -> None:
    """Settings of one optimiser or schedule are refused with another."""
    if optim.lr is not None and optim.lr <= 0:
        raise UserError(f"optim.lr {optim.lr}: must be above 0")
    if optim.reference_batch < 1:
        raise UserError(f"optim.reference_batch {optim.reference_batch}: a number of images, 1 or more")
    if optim.clip < 0:
        raise UserError(f"optim.clip {optim.clip}: a gradient norm, or 0 for none")
    if optim.schedule not in SCHEDULES:
        raise UserError(f"optim.schedule {optim.schedule!r}: there are {', '.join(SCHEDULES)}")
    if not all(0 < m < 1 for m in optim.milestones or ()):
        raise UserError(
            f"optim.milestones {optim.milestones}: shares of training between 0 and 1; epoch 120 of 200 is 0.6"
        )
    if optim.momentum is not None and optim.name not in ("sgd", "lars"):
        raise UserError(f"optim.momentum is for sgd and lars, and optim.name is {optim.name}")
    if optim.betas is not None:
        if optim.name not in ("adam", "adamw"):
            raise UserError(f"optim.betas is for adam and adamw, and optim.name is {optim.name}")
        if len(optim.betas) != 2 or not all(0 <= b < 1 for b in optim.betas):
            raise UserError(f"optim.betas {optim.betas}: two numbers from 0 to below 1, e.g. [0.9,0.95]")
    if not 0 <= optim.warmup_share < 1:
        raise UserError(f"optim.warmup_share {optim.warmup_share}: a share of training, 0 to below 1")
    if optim.warmup_share and optim.warmup_epochs:
        raise UserError("optim.warmup_share and optim.warmup_epochs exclude each other: give one of them")
    if optim.decay_all is not None and optim.name == "lars":
        raise UserError("optim.decay_all has no meaning for lars, which never decays biases and norms")
    if optim.layer_decay is not None and not 0 < optim.layer_decay <= 1:
        raise UserError(f"optim.layer_decay {optim.layer_decay}: above 0, and 1 (no decay) at most")
    if optim.head_warmup is not None and not 0 <= optim.head_warmup < 1:
        raise UserError(f"optim.head_warmup {optim.head_warmup}: a share of training, 0 to below 1")
    if optim.milestones and optim.schedule != "step":
        raise UserError(f"optim.milestones is for optim.schedule=step, and the schedule is {optim.schedule}")


def _check_labels(labels: Labels, kind: type[Method]) -> None:
    """labels.* have a meaning for the method and together."""
    given = [name for name, value in vars(labels).items() if value != getattr(Labels(), name)]
    if given and not kind.takes_labels:
        raise UserError(f"labels.{given[0]} has no meaning for {kind.name}: use {takers('takes_labels')}")
    if not 0 <= labels.noise <= 1:
        raise UserError(f"labels.noise {labels.noise}: a share, from 0 to 1")
    if isinstance(labels.gold, float) and not 0 < labels.gold < 1:
        raise UserError(f"labels.gold {labels.gold}: a share above 0 and below 1, or a file of image names")
    for name, known in (
        ("correction", CORRECTIONS),
        ("use", ("all", "gold", "silver")),
        ("restart", (None, "new", "same")),
    ):
        if getattr(labels, name) not in known:
            choices = ", ".join(k for k in known if k)
            raise UserError(f"labels.{name} {getattr(labels, name)!r}: there are {choices}")
    corrected = labels.correction != "none"
    if corrected and (missing := _lacks(kind)):
        raise UserError(
            f"labels.correction has no meaning for {kind.name}, which has no {missing}: leave it out"
        )
    if labels.correction == "glc" and labels.gold is None:
        raise UserError(
            "labels.correction=glc needs trusted labels: give labels.gold=0.05, or a file that lists images"
        )
    if labels.restart and not corrected:
        raise UserError("labels.restart is about the second phase of a correction: set labels.correction=glc")
    if labels.use != "all" and (corrected or labels.gold is None):
        why = "a correction uses all images" if corrected else "there is no labels.gold"
        raise UserError(f"labels.use={labels.use}: {why}; leave it out")
    if labels.gold is not None and not (labels.noise or corrected or labels.use != "all"):
        raise UserError(
            "labels.gold changes nothing by itself: add labels.correction=glc, labels.noise or labels.use=gold"
        )
    if labels.seed is not None and not (labels.noise or labels.gold is not None):
        raise UserError("labels.seed is the seed of labels.noise and labels.gold: give one of them")


def _lacks(kind: type[Method]) -> str:
    """What the class of a method would have to define for labels.correction."""
    hooks = ("own_classifier", "take_confusion")
    return " and no ".join(h for h in hooks if getattr(kind, h) is getattr(Method, h))


def _check_negatives(config: Config, kind: type[Method]) -> None:
    """--negatives and the dials that act on them: each has a meaning here, or is refused."""
    kinds = [negative_kind(spec) for spec in config.negatives]
    for spec, negative in zip(config.negatives, kinds):
        if not kind.takes_negative(negative):
            known = ", ".join(kind.negative_kinds()) or "none"
            raise UserError(f"--negatives {spec} has no meaning for {kind.name}: it takes {known}")
        negative_settings(spec)
    if len({negative.name for negative in kinds}) < len(kinds):
        raise UserError("--negatives names a kind twice; use --num-negatives for several of a kind")
    taken = {option for negative in kinds for option in negative.reads}
    own = [NEGATIVES.get(name) for name in declared_members("cuewise.views.negatives")]
    for option in [o for negative in own for o in negative.reads if o not in taken]:
        flag, value = config.negative_option(option)
        if value:
            takers = [name for name, n in NEGATIVES.all().items() if option in n.reads]
            raise UserError(f"{flag} is for {' and '.join(takers)} negatives: add --negatives {takers[0]}")
    for flag, given in (
        ("alpha", config.alpha),
        ("alpha-mode", config.alpha_mode),
        ("num-negatives", config.num_negatives),
    ):
        if given and not kinds:
            raise UserError(f"--{flag} is for negatives, and there are none: add --negatives patch")
    if config.num_negatives is not None:
        if config.num_negatives < 1:
            raise UserError(f"--num-negatives {config.num_negatives}: must be 1 or more")
        others = [n.name for n in kinds if not n.is_image]
        if config.num_negatives > 1 and others:
            raise UserError(f"--num-negatives: there is one {others[0]} negative per image; leave it at 1")
    if config.alpha_mode is not None and config.alpha_mode not in kind.alpha_modes:
        modes = kind.alpha_modes
        why = (
            " or ".join(modes)
            if len(modes) > 1
            else f"has no meaning for {kind.name}, whose weight is always {modes[0]}side"
        )
        raise UserError(f"--alpha-mode {config.alpha_mode}: {why}")
    alpha = config.alpha or [kind.alpha]
    if len(alpha) == 1:
        alpha = alpha * len(config.negatives)
    if len(alpha) != len(config.negatives):
        raise UserError(
            f"{len(alpha)} values of --alpha for {len(config.negatives)} kinds of negatives: give 1 or as many"
        )
    if not all(0 <= a < math.inf for a in alpha):
        raise UserError(f"--alpha {alpha}: the weight of a negative is a number, 0 (off) or more")
    config.alpha = alpha


def _check_augmentations(config: Config, kind: type[Method]) -> None:
    """--leave-out and views.same name augmentations that the views have."""
    shown = [RECIPES[view.recipe] for view in kind.shown(config.setup())]
    strengths = config.views.jitter
    if not config.color_jitter and not any(r.jitter_p and any(strengths or r.jitter) for r in shown):
        raise UserError(f"--no-color-jitter has no meaning for {kind.name}: its views have no colour jitter")
    if strengths is not None and not any(r.jitter_p for r in shown):
        raise UserError(f"views.jitter has no meaning for {kind.name}: its views have no colour jitter")
    if config.leave_out and not kind.leaves_out:
        raise UserError(f"--leave-out has no meaning for {kind.name}: use {takers('leaves_out')}")
    names, same = config.left_out, [augmentation(name).name for name in config.views.same]
    if len(set(names)) < len(names):
        raise UserError(f"--leave-out {','.join(names)} names an augmentation twice")
    if both := [n for n in names if n in same]:
        raise UserError(
            f"--leave-out {both[0]} and views.same={both[0]} exclude each other: "
            "all keys would share it, and no space would be left for it"
        )
    for name in names:
        values = [getattr(config.views, p, None) for p in augmentation(name).probabilities]
        if values and all(v == 0 for v in values):
            raise UserError(
                f"--leave-out {name}: views.{next(iter(augmentation(name).probabilities))}=0 leaves no {name}"
            )
    v = config.views
    styled = v.style_p or "texture" in (*names, *same)
    if (v.styles or v.style_copies or v.style_count or v.style_strength) and not styled:
        raise UserError(
            "views.styles, style_copies, style_count and style_strength are for texture randomisation: set views.style_p"
        )
