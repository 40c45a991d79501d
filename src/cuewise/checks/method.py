"""What every method promises, on a small encoder and random images."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cuewise.checks.check import need
from cuewise.config import read_yaml
from cuewise.data import Batch
from cuewise.encoders.libraries import build
from cuewise.errors import UserError
from cuewise.methods import FACTS, Method, Negatives, Setup
from cuewise.methods.hard import Hard
from cuewise.train.cost import made_up_facts
from cuewise.train.pretrain import NEW, RESUMED, run_pretrain
from cuewise.views import RECIPES

CLASSES, SIZE, IMAGES = 4, 16, 24
LEFT_OUT = ("color", "rotation")  # by methods that take --leave-out


@dataclass(frozen=True)
class Case:
    """A method with the settings to check it under; what is None is fitted to few images and steps."""

    kind: type[Method]
    settings: Mapping[str, Any] = field(default_factory=dict)
    transformer: bool = False  # whether its encoder is one

    @property
    def name(self) -> str:
        return self.kind.name

    def build(
        self,
        negatives: Negatives | None = None,
        *,
        seed: int = 0,
        norm: str = "batch",
        leave_out: tuple[str, ...] | None = None,
        hard: Hard | None = None,
        suppressed: float = 0.0,
        correction: str = "none",
        **settings: Any,
    ) -> Method:
        """The method on a small encoder, with the given dials."""
        torch.manual_seed(seed)
        if self.kind.backbone:
            encoder = build(self.kind.backbone, {"width": 8}, size=SIZE)
        elif self.transformer:  # 16 patches of 4×4 pixels
            encoder = build("cuewise/vit-tiny", {"width": 64, "depth": 1}, size=SIZE)
        else:
            encoder = build("cuewise/resnet-tiny", {"width": 8, "norm": norm}, size=SIZE)
        if leave_out is None:
            leave_out = LEFT_OUT if self.kind.leaves_out else ()
        values = self.kind.Settings(**{**self.settings, **settings})
        setup = Setup(
            values,
            negatives or Negatives(),
            leave_out,
            hard,
            size=SIZE,
            classes=CLASSES,
            suppressed=suppressed,
            correction=correction,
        )
        self.kind.check(setup)
        return self.kind(encoder, setup, seed=seed)

    def dials(self) -> list[Negatives]:
        """No negatives, each kind alone, and all together, two of each."""
        every = self.kind.negative_kinds()
        alone = [Negatives((k,), (0.5,)) for k in every]
        both = [Negatives(every, (0.5, 0.25, 0.75)[: len(every)], 2)] if 0 < len(every) <= 3 else []
        return [Negatives(), *alone, *both]


def random_batch(m: Method, batch: int = 8, size: int = SIZE, seed: int = 0) -> Batch:
    """Normalised noise for every view and negative of the method."""
    g = torch.Generator().manual_seed(seed)
    sizes = {view.role: view.size or size for view in type(m).shown(m.setup)}
    views = {role: torch.randn(batch, 3, side, side, generator=g) for role, side in sizes.items()}
    for i in range(len(m.negatives.images)):
        for source in type(m).negatives_from:
            role = m.negatives.roles(source)[i]
            views[role] = torch.randn(batch, m.negatives.count, 3, size, size, generator=g)
    facts = made_up_facts(batch, sizes, CLASSES) | {"trusted": torch.arange(batch) % 3 == 0}
    return Batch(views, torch.randperm(IMAGES, generator=g)[:batch], facts)


def train(m: Method, steps: int = 4) -> list[float]:
    """Losses of a few optimiser steps."""
    optimizer = torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.05)
    losses = []
    for i in range(steps):
        m.begin_step(i / steps)
        step = m(random_batch(m, seed=i))
        step.loss.backward()
        m.after_backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(step.loss.detach()))
    return losses


def is_described(kind: type[Method] | Case) -> None:
    """It says what it is: summary, citation, views, optimiser, settings with defaults."""
    method = as_case(kind).kind
    for name in ("name", "summary", "citation", "views", "optim", "Settings"):
        need(getattr(method, name, None), f"the class has no {name}")
    need(method.__doc__, "the class has no docstring")
    need("\n" not in method.summary, "the summary is not one line")
    need({"name", "lr", "reference_batch"} <= set(method.optim), "optim needs name, lr and reference_batch")
    strange = set(method.needs) - set(FACTS)
    need(not strange, f"needs names {', '.join(strange)}; an image may have {', '.join(FACTS)}")
    need(is_dataclass(method.Settings), "Settings is not a dataclass")
    method.Settings()
    for view in method.shown(as_case(kind).build().setup):
        need(
            view.recipe in RECIPES, f"view {view.role}: no recipe {view.recipe!r}; see cuewise.views.RECIPES"
        )


def gradient_reaches_the_encoder(kind: type[Method] | Case) -> None:
    """The loss is finite, and its gradient reaches every parameter that trains, the encoder's included."""
    case = as_case(kind)
    for dial in case.dials():
        m = case.build(dial)
        m.begin_step(0.5)
        step = m(random_batch(m))
        step.loss.backward()
        where = f"with {'+'.join(dial.kinds) or 'no'} negatives"
        need(
            step.loss.ndim == 0 and math.isfinite(float(step.loss.detach())),
            f"the loss is not one finite number {where}",
        )
        need(not step.z.requires_grad, "Step.z carries a gradient: detach it")
        need(len(step.z) == 8, "Step.z does not have one row per image")
        for key, p in m.named_parameters():
            has = p.grad is not None
            need(has == p.requires_grad, f"{key} {'gets a' if has else 'gets no'} gradient {where}")
        need(all(p.requires_grad for p in m.encoder.parameters()), "part of the encoder does not train")


def state_dict_is_complete(kind: type[Method] | Case) -> None:
    """A copy made from the state dict continues with exactly the same losses, random draws included."""
    case = as_case(kind)
    for dial in case.dials():
        m = case.build(dial)
        train(m, 2)
        other = case.build(dial, seed=9)
        other.load_state_dict(m.state_dict())
        first, second = train(m, 2), train(other, 2)
        need(first == second, f"a restored copy continues with losses {second} instead of {first}")


def alpha_zero_is_the_baseline(kind: type[Method] | Case) -> None:
    """A negative of weight 0 changes nothing, bit for bit."""
    case = as_case(kind)
    for name in case.kind.negative_kinds():
        off = train(case.build(Negatives((name,), (0.0,))))
        need(off == train(case.build()), f"--negatives {name} --alpha 0 is not the run without negatives")


def is_deterministic(kind: type[Method] | Case) -> None:
    """The same seed gives the same losses, whatever the global generators drew before."""
    case = as_case(kind)
    first, second = case.build(), case.build()
    losses = train(first)
    torch.rand(7)
    again = train(second)
    need(losses == again, f"the same seed gives {again} after {losses}: draw from self.generator")


def model_of(case: Case) -> str:
    """A small network that the method can train, as --model."""
    if case.kind.backbone:
        return f"{case.kind.backbone}?width=8"
    return "cuewise/vit-tiny?width=64&depth=1" if case.transformer else "cuewise/resnet-tiny?width=8"


def small_run(case: Case) -> dict[str, Any]:
    """The options of a run with it that takes a second."""
    return {
        "data": [f"shapes:scenes?n={IMAGES}&size=32"],
        "method": f"{case.kind.__module__}:{case.kind.__qualname__}",
        "model": model_of(case),
        "size": 32,
        "batch_size": 8,
        "epochs": 1,
        "workers": "0",
        "devices": "cpu",
        "loop": {"log_every": 1},
        "settings": dict(case.settings),
        **({"leave_out": list(LEFT_OUT)} if case.kind.leaves_out else {}),
    }


def runs_and_resumes(kind: type[Method] | Case) -> None:
    """`cuewise pretrain` trains with it, writes an encoder and a config that repeats the run, and resumes."""
    case = as_case(kind)
    common = small_run(case)
    with tempfile.TemporaryDirectory() as folder:
        run, again = Path(folder) / "run", Path(folder) / "again"
        run_pretrain([common, {"steps": 1}], run, NEW)
        need((run / "encoder.safetensors").exists(), "the run wrote no encoder")
        written = read_yaml(run / "config.yaml")
        need(case.name in written, f"config.yaml has no block {case.name}")
        run_pretrain([written], again, NEW)
        run_pretrain([common, {"steps": 2}], run, RESUMED)


CHECKS = (
    is_described,
    gradient_reaches_the_encoder,
    state_dict_is_complete,
    alpha_zero_is_the_baseline,
    is_deterministic,
    runs_and_resumes,
)


def as_case(kind: type[Method] | Case) -> Case:
    """A method alone is checked under settings fitted to few images, on a network that gives what it needs."""
    if isinstance(kind, Case):
        return kind
    case = Case(kind, vars(kind.Settings().fitted(IMAGES, 4)))
    try:
        m = case.build()
        m(random_batch(m))
    except UserError:  # e.g. it needs patch tokens
        return replace(case, transformer=True)
    return case
