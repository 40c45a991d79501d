"""Where metrics go: what --log names and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cuewise.errors import UserError
from cuewise.train.log import Log, read_metrics
from cuewise.train.sinks import check_sinks


class FakeWandB:
    """Records what it is given."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def init(self, **how: Any) -> Any:
        self.how = how
        return SimpleNamespace(
            log=lambda row, step: self.rows.append((step, row)), finish=lambda: self.rows.append("end")
        )


class FakeMLflow:
    """One experiment, one run."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.tracking = SimpleNamespace(MlflowClient=self.client)

    def client(self, tracking_uri: str) -> Any:
        self.place = tracking_uri
        return SimpleNamespace(
            get_experiment_by_name=lambda name: None,
            create_experiment=lambda name: "1",
            create_run=lambda number, run_name: SimpleNamespace(info=SimpleNamespace(run_id="r")),
            log_metric=lambda run, key, value, step: self.rows.append((step, key, value)),
            set_terminated=lambda run: self.rows.append("end"),
        )


def test_each_sink_gets_every_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb, mlflow = FakeWandB(), FakeMLflow()
    monkeypatch.setitem(sys.modules, "wandb", wandb)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)  # type: ignore[arg-type]
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    log = Log(tmp_path, 0, ["wandb", "mlflow"])
    log.row({"step": 3, "epoch": 0.5, "train/loss": 1.5, "watch/shape_bias": 0.4})
    log.close()
    assert wandb.rows == [(3, {"train/loss": 1.5, "watch/shape_bias": 0.4}), "end"]
    assert mlflow.rows == [(3, "train/loss", 1.5), (3, "watch/shape_bias", 0.4), "end"]
    assert mlflow.place.startswith("file:")
    assert wandb.how["dir"] == str(tmp_path)
    assert not list(tmp_path.glob("events*"))
    assert read_metrics(tmp_path / "metrics.jsonl")[0]["watch/shape_bias"] == 0.4


def test_none_writes_metrics_alone(tmp_path: Path) -> None:
    log = Log(tmp_path, 0, ["none"])
    log.row({"step": 1, "train/loss": 1.0})
    log.close()
    assert {f.name for f in tmp_path.iterdir()} == {"metrics.jsonl", "train.log"}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be combined with others"):
        check_sinks(["none", "tensorboard"])
    with pytest.raises(UserError, match="--log auto cannot be combined"):
        check_sinks(["auto", "mlflow"])
    with pytest.raises(UserError, match="did you mean tensorboard"):
        check_sinks(["tensorbord"])


def test_tensorboard_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a run keeps metrics.jsonl alone, unless --log names it; with it, events are written by default."""
    (tmp_path / "with").mkdir()
    log = Log(tmp_path / "with", 0)
    log.row({"step": 1, "train/loss": 1.0})
    log.close()
    assert len(list((tmp_path / "with").glob("events*"))) == 1
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "without").mkdir()
    check_sinks(["auto"])
    log = Log(tmp_path / "without", 0)
    log.row({"step": 1, "train/loss": 1.0})
    log.close()
    assert not list((tmp_path / "without").glob("events*"))
    assert len(read_metrics(tmp_path / "without" / "metrics.jsonl")) == 1
    with pytest.raises(UserError, match=r"pip install 'cuewise\[tensorboard\]'"):
        check_sinks(["tensorboard"])
