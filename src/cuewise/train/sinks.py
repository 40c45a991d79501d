"""Where metrics go beside metrics.jsonl: TensorBoard, Weights & Biases, MLflow. Nothing is sent that --log does not name."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from cuewise.errors import UserError, unknown


class Sink(Protocol):
    """Takes the numbers of a step."""

    def write(self, numbers: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Event files in the run folder; rows after a checkpoint's step are purged on a resume."""

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.board = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def write(self, numbers: Mapping[str, float], step: int) -> None:
        for key, value in numbers.items():
            self.board.add_scalar(key, value, step)

    def close(self) -> None:
        self.board.close()


class WandB:
    """A run of Weights & Biases, named after the folder; WANDB_MODE=offline keeps it on this machine."""

    def __init__(self, folder: Path, step: int) -> None:
        wandb = extra("wandb")
        name = folder.resolve().name
        self.run = wandb.init(
            project="cuewise", name=name, id=run_id(folder), resume="allow", dir=str(folder)
        )

    def write(self, numbers: Mapping[str, float], step: int) -> None:
        self.run.log(dict(numbers), step=step)

    def close(self) -> None:
        self.run.finish()


class MLflow:
    """A run of MLflow at MLFLOW_TRACKING_URI; without that, in RUN/mlruns."""

    def __init__(self, folder: Path, step: int) -> None:
        import os

        mlflow = extra("mlflow")
        place = os.environ.get("MLFLOW_TRACKING_URI") or (folder / "mlruns").resolve().as_uri()
        self.client = mlflow.tracking.MlflowClient(tracking_uri=place)
        found = self.client.get_experiment_by_name("cuewise")
        number = found.experiment_id if found is not None else self.client.create_experiment("cuewise")
        self.run = self.client.create_run(number, run_name=folder.resolve().name).info.run_id

    def write(self, numbers: Mapping[str, float], step: int) -> None:
        for key, value in numbers.items():
            self.client.log_metric(self.run, key, value, step=step)

    def close(self) -> None:
        self.client.set_terminated(self.run)


SINKS: dict[str, Any] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}
ALONE = ("none", "auto")


def check_sinks(names: Sequence[str]) -> None:
    """Names that exist and whose package is installed."""
    for name in names:
        if name in ALONE and len(names) > 1:
            raise UserError(f"--log {name} cannot be combined with others")
        if name not in (*ALONE, *SINKS):
            raise unknown("--log: there is no", name, [*SINKS, *ALONE])
        if name in SINKS:
            extra(name)


def open_sinks(names: Sequence[str], folder: Path, step: int) -> list[Sink]:
    """Those that --log names; auto is TensorBoard where it is installed."""
    if list(names) == ["auto"]:
        names = ["tensorboard"] if importlib.util.find_spec("tensorboard") else []
    return [SINKS[name](folder, step) for name in names if name != "none"]


def extra(name: str) -> Any:
    """A package that comes with an extra."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UserError(f"--log {name} needs the package {name}: pip install 'cuewise[{name}]'") from None


def run_id(folder: Path) -> str:
    """The same for the same folder, so that a resumed run continues in the same place."""
    import hashlib

    return hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
