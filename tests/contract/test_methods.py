"""The battery that every registered method goes through: a new file in methods/ is tested by being there."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from cuewise.checks.method import CHECKS, Case, train
from cuewise.data import Batch
from cuewise.methods import Negatives, methods
from tests.methods.conftest import SMALL, TRANSFORMERS, roles_of, small_method

NAMES = sorted(methods())
GOLDEN = json.loads((Path(__file__).parent / "golden_losses.json").read_text())


def dials(name: str) -> list[Negatives]:
    every = methods()[name].negative_kinds()
    kinds = [k for k in every if k != "texture"]
    return (
        [Negatives()]
        + [Negatives((k,), (0.5,)) for k in kinds]
        + ([Negatives(tuple(kinds), (0.5,) * len(kinds), 2)] if kinds else [])
        + ([Negatives(every, (0.5, 0.25, 0.75)[: len(every)], 2)] if "texture" in every else [])
    )


CASES = [(name, dial) for name in NAMES for dial in dials(name)]
IDS = [f"{name}-{'+'.join(d.kinds) or 'plain'}{d.count}" for name, d in CASES]


@pytest.mark.parametrize("name", NAMES)
def test_has_small_settings(name: str) -> None:
    assert name in SMALL, f"add small settings of {name} to tests/methods/conftest.py"
    assert methods()[name].name == name
    assert methods()[name].Settings.__doc__


TRAINS = ("runs_and_resumes", "state_dict_is_complete")  # half a second or more each
TIERED = [pytest.param(c, marks=pytest.mark.slow if c.__name__ in TRAINS else ()) for c in CHECKS]


@pytest.mark.parametrize("check", TIERED, ids=[c.__name__ for c in CHECKS])
@pytest.mark.parametrize("name", NAMES)
def test_contract(name: str, check) -> None:  # type: ignore[no-untyped-def]
    """What `cuewise check` asks of a user's method."""
    check(Case(methods()[name], SMALL[name], name in TRANSFORMERS))


TRUNCATED = -0.667116  # the sum of seven, with the torch of the recorded losses


def draws_as_recorded() -> bool:
    """Whether torch's truncated normal is the one of the recorded losses: older torch draws other numbers from a seed."""
    drawn = torch.nn.init.trunc_normal_(torch.empty(7), generator=torch.Generator().manual_seed(0))
    return bool(drawn.sum() == pytest.approx(TRUNCATED, abs=1e-4))


@pytest.mark.parametrize(("name", "dial"), CASES, ids=IDS)
def test_golden_losses(name: str, dial: Negatives) -> None:
    """Four steps from a fixed seed give the recorded losses; rewrite golden_losses.json only for a known reason."""
    if name in TRANSFORMERS and not draws_as_recorded():
        pytest.skip(
            "this torch draws the decoder's initial weights otherwise than the one of the recorded losses"
        )
    losses = train(small_method(name, negatives=dial))
    assert losses == pytest.approx(GOLDEN[IDS[CASES.index((name, dial))]], rel=2e-3)


def test_golden_losses_of_the_correction() -> None:
    m = small_method("supervised", correction="glc")
    m.confusion.copy_(0.6 / 4 + 0.4 * torch.eye(4))  # type: ignore[operator]
    assert train(m) == pytest.approx(GOLDEN["supervised-glc"], rel=2e-3)


def pairs(m, step: int):  # type: ignore[no-untyped-def]
    """Two noisy views each of 8 of 24 fixed patterns: the noise is what an encoder must learn to ignore.

    Patterns are noise too, except for reconstruction, which needs hidden places to follow from others: one colour each. A
    puzzle needs an order of its tiles: one pattern for all.
    """
    side = 1 if m.name == "mae" else 16
    patterns = torch.randn(24, 3, side, side, generator=torch.Generator().manual_seed(0)).expand(
        24, 3, 16, 16
    )
    if m.name == "jigsaw":
        patterns = patterns[:1].expand(24, 3, 16, 16)
    g = torch.Generator().manual_seed(step)
    chosen = torch.randperm(24, generator=g)[:8]
    noisy = {role: patterns[chosen] + 0.7 * torch.randn(8, 3, 16, 16, generator=g) for role in roles_of(m)}
    return Batch(noisy, chosen, {"label": chosen % 4})


def gap(m) -> float:  # type: ignore[no-untyped-def]
    """How much more alike two views of a pattern are than views of different patterns; of methods with one view the
    accuracy, or how small the error of the reconstruction is."""
    found = []
    with torch.no_grad():
        for i in range(100, 104):
            step = m(pairs(m, i))
            if "accuracy" in step.extra:
                found.append(float(step.extra["accuracy"]))
            elif step.positive is None:
                found.append(-float(step.extra["reconstruction"]))
            else:
                s = step.z @ step.positive.T
                found.append(float(s.diag().mean() - (s.sum() - s.diag().sum()) / (s.numel() - len(s))))
    return sum(found) / len(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("pix2pix", "tune")]
)  # learn a filter, and what a teacher knows
def test_learns_to_distinguish_images(name: str) -> None:
    m = small_method(name)
    before = gap(m)
    rate, steps = (
        (1e-2 if name == "byol" else 2e-3),
        (90 if name in ("densecl", "jigsaw") else 60),
    )  # half of DenseCL's loss is dense
    optimizer = torch.optim.Adam([p for p in m.parameters() if p.requires_grad], lr=rate)
    for i in range(steps):
        m.begin_step(i / steps)
        step = m(pairs(m, i))
        step.loss.backward()
        m.after_backward()
        optimizer.step()
        optimizer.zero_grad()
        assert math.isfinite(float(step.loss.detach()))
    assert gap(m) > before + 0.1
