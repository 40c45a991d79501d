"""The --hard dial in the methods that take it: composed with negatives, off where it must be, refused where it cannot be."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from cuewise import UserError, pretrain
from cuewise.config import Config, resolve
from cuewise.methods import Negatives, methods
from cuewise.methods.hard import HARD, IFM, Debiased, MoCHi, Reweighted
from cuewise.options import options_of
from cuewise.train.log import read_metrics
from tests.contract.test_methods import train
from tests.methods.conftest import small_batch, small_method

TAKERS = sorted(name for name, m in methods().items() if m.takes_hard)
PATCH = Negatives(("patch",), (2.0,))
FOUR = [MoCHi(6, 7, 5, start=0.0), IFM(), Debiased(), Reweighted()]


def test_the_help_names_the_methods_that_take_it() -> None:
    assert options_of(Config)["hard"].help.endswith(f"({', '.join(TAKERS)})")


@cache
def losses(name: str, hard: Any, negatives: Negatives | None = None, steps: int = 3) -> list[float]:
    m = small_method(name, negatives=negatives)
    m.hard = hard
    return train(m, steps)


@pytest.mark.slow
@pytest.mark.parametrize("hard", FOUR, ids=lambda h: h.name)
@pytest.mark.parametrize("name", TAKERS)
def test_it_changes_the_loss_with_and_without_negatives(name: str, hard: Any) -> None:
    assert losses(name, hard)[0] != losses(name, None)[0]
    assert losses(name, hard, PATCH, steps=1)[0] > losses(name, hard)[0]  # one more term in the denominator
    off = Negatives(("patch",), (0.0,))
    assert losses(name, hard, off) == losses(name, hard)


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("hard", [IFM(0.0), Debiased(0.0), Reweighted(0.0, 0.0), MoCHi(6, 0, 0, 0.0)])
def test_at_zero_it_is_the_method_itself(name: str, hard: Any) -> None:
    assert losses(name, hard, PATCH) == pytest.approx(losses(name, None, PATCH), rel=1e-4)


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.slow
def test_mochi_waits_for_its_start_and_takes_no_more_than_there_are(name: str) -> None:
    late = losses(name, MoCHi(6, 7, 5, start=0.5), steps=4)
    plain = losses(name, None, steps=4)
    assert late[:2] == pytest.approx(plain[:2], rel=1e-5)
    assert late[2] > plain[2] + 0.05
    assert losses(name, MoCHi(10_000, 7, 5, 0.0))  # more candidates than negatives


def test_synthetic_negatives_are_never_enqueued_and_only_the_query_takes_gradient() -> None:
    m: Any = small_method("moco")
    m.hard = MoCHi(6, 7, 5, start=0.0)
    given = small_batch(m)
    m.begin_step(0.5)
    step = m(given)
    step.loss.backward()
    m.after_backward()
    torch.testing.assert_close(m.queue.keys[:8], step.positive)
    assert int(m.queue.position) == 8
    assert m.queue.keys.grad is None


def test_a_state_carries_the_draws_on() -> None:
    one, two = small_method("moco"), small_method("moco", seed=9)
    one.hard = two.hard = MoCHi(6, 7, 5, start=0.0)
    train(one, 2)
    two.load_state_dict(one.state_dict())
    assert train(one, 2) == train(two, 2)


@pytest.mark.slow
def test_settings_are_resolved_written_and_checked() -> None:
    config = resolve({"hard": {"name": "mochi"}}, {"hard": {"pairs": 64}})
    assert config.hard == {"name": "mochi", "candidates": 128, "pairs": 64, "with_query": 512, "start": 0.05}
    assert config.hard_dial() == MoCHi(pairs=64)
    assert resolve({"hard": "ifm"}).hard_dial() == IFM()
    assert resolve({}).hard_dial() is None
    again = resolve(yaml.safe_load(config.to_yaml()))
    assert again.hard == config.hard
    for asked, message in (
        ({"hard": {"pairs": 3}}, "which is not given: mochi, ifm, debiased, hard"),
        ({"hard": "harder"}, "there are mochi, ifm, debiased, hard"),
        ({"hard": {"name": "ifm", "epsilonn": 1}}, r"did you mean hard\.epsilon"),
        ({"hard": {"name": "ifm", "epsilon": -1}}, "0 or more"),
        ({"hard": {"name": "hard", "prior": 1}}, "below 1"),
        ({"hard": {"name": "mochi", "candidates": 0}}, "1 or more"),
        ({"hard": "ifm", "method": "byol"}, "has no meaning for byol: it is for .*moco, simclr"),
        ({"hard": "ifm", "method": "supervised"}, "has no meaning for supervised"),
    ):
        with pytest.raises(UserError, match=message):
            resolve(asked)


@pytest.mark.parametrize("hard", sorted(HARD))
@pytest.mark.slow
def test_from_the_options(folder: Path, tmp_path: Path, hard: str) -> None:
    settings = ["moco.queue=32", "moco.dim=16", "loop.log_every=1"]
    settings += ["hard.start=0", "hard.pairs=4"] if hard == "mochi" else []
    small: dict[str, Any] = {"model": "cuewise/resnet-tiny?width=8", "size": 16, "batch_size": 8, "steps": 2}
    out = tmp_path / "run"
    pretrain(str(folder), out=str(out), hard=hard, negatives=["patch"], set=settings, workers="0", **small)
    assert yaml.safe_load((out / "config.yaml").read_text())["hard"]["name"] == hard
    assert len(read_metrics(out / "metrics.jsonl")) == 2
