"""Published rates are for long runs: what a short one takes, and when it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cuewise import UserError, pretrain
from cuewise.config import complete, resolve
from cuewise.data import open_data
from cuewise.methods.method import SHORT, SMALL
from cuewise.methods.moco import MoCo
from cuewise.train.fabric import Fabric
from cuewise.train.pretrain import build

DATA = "shapes?n=32&size=16"
TINY: dict[str, Any] = {"model": "cuewise/resnet-tiny?width=8", "size": 16, "batch_size": 8, "workers": "0"}


def rate(images: str = DATA, **asked: Any) -> float | None:
    data = open_data(images)
    config = complete(resolve({**TINY, "epochs": 1, **asked}), len(data))
    return build(config, Path(), data, Fabric(accelerator="cpu", devices=1)).config.optim.lr


@pytest.mark.parametrize("method", ["moco", "looc", "addone", "densecl", "infomin", "moco++"])
def test_a_short_run_takes_a_larger_rate(method: str) -> None:
    more = {"leave_out": ["color"]} if method in ("looc", "addone") else {}
    assert rate(method=method, **more) == 0.24
    assert rate(method=method, epochs=SHORT // 4, **more) == 0.03  # four steps per epoch
    assert rate(method=method, epochs=SHORT // 4 - 1, **more) == 0.24
    assert rate(method=method, loop={"budget": SHORT}, **more) == 0.03


class Own(MoCo):
    name, summary = "own", "MoCo at a rate of its own"
    optim = {"name": "sgd", "lr": 0.05, "reference_batch": 256}


def test_a_method_with_an_optimiser_of_its_own_keeps_its_rate() -> None:
    assert rate(method=f"{__name__}:Own") == 0.05


def test_what_is_asked_is_taken() -> None:
    assert rate(optim={"lr": 0.03}) == 0.03
    assert rate(optim={"weight_decay": 0.0}) == 0.24
    assert rate(optim={"name": "adam"}) == 0.03  # a rate of sgd says nothing of adam
    assert rate(method="simclr") == 1e-3


def test_large_batches_keep_the_published_rate() -> None:
    """The rate follows the batch: eight times the published one would be too much."""
    data = f"shapes?n={2 * SMALL}&size=16"
    assert rate(data, batch_size=SMALL) == 0.24
    assert rate(data, batch_size=2 * SMALL) == 0.03


def test_a_model_that_brings_weights_keeps_the_published_rate(tmp_path: Path) -> None:
    pretrain(DATA, out=str(tmp_path / "run"), steps=1, **TINY)
    assert rate(model=str(tmp_path / "run")) == 0.03


def test_the_run_says_so_and_keeps_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(**options: Any) -> float:
        pretrain(DATA, out=str(tmp_path / "run"), steps=2, **TINY, **options)
        return float(yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["optim"]["lr"])

    assert run() == 0.24
    assert "that is 8 × the published rate" in (said := capsys.readouterr().err)
    assert "the published one: --set optim.lr=0.03" in said
    assert run(overwrite=True, set=["optim.reference_batch=64"]) == 0.24
    assert "that is 32 × the published rate" in (said := capsys.readouterr().err)
    assert "the published one: --set optim.lr=0.0075" in said
    assert run(overwrite=True, set=["optim.lr=0.03"]) == 0.03
    assert "published rate" not in capsys.readouterr().err


def test_the_reason_is_given_only_where_it_holds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The rate of a short run, taken over into a long one, is a warning."""
    pretrain(DATA, out=tmp_path / "short", epochs=1, steps=1, method="moco", **TINY)
    assert "as for runs under 20,000 steps" in capfd.readouterr().err
    pretrain(DATA, out=tmp_path / "long", config=tmp_path / "short" / "config.yaml", epochs=SHORT, steps=1)
    shown = capfd.readouterr().err
    assert "as for runs" not in shown
    assert "warning: that is 8 × the published rate" in shown


def test_epochs_are_refused_where_the_length_is_a_number_of_steps(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"out": tmp_path / "run", **TINY}
    pretrain(DATA, set=["loop.budget=2"], **asked)
    with pytest.raises(UserError, match="planned as 2 steps; leave it out, or train longer with --extend"):
        pretrain(DATA, resume=True, epochs=50, **asked)
    pretrain(DATA, resume=True, set=["loop.budget=2"], **asked)
    assert pretrain(DATA, resume=True, extend=True, set=["loop.budget=3"], **asked)["steps"] == 3


def test_the_same_command_resumes_where_a_file_has_epochs(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("epochs: 10\n")
    asked: dict[str, Any] = {
        "out": tmp_path / "run",
        "config": tmp_path / "own.yaml",
        "set": ["loop.budget=4"],
        **TINY,
    }
    assert pretrain(DATA, steps=2, **asked)["steps"] == 2
    assert pretrain(DATA, resume=True, **asked)["steps"] == 4
