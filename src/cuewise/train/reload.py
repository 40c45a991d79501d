"""A run folder back as the method that trained it, heads included."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cuewise.config import Config, read_yaml, refuse_code, resolve
from cuewise.encoders.load import HUB
from cuewise.errors import UserError
from cuewise.methods import Method
from cuewise.options import texts
from cuewise.train.checkpoint import read_checkpoint
from cuewise.train.start import load_start


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run with a checkpoint."""
    return (folder / "config.yaml").is_file() and (folder / "checkpoints" / "last.ckpt").is_file()


def load_config(folder: Path) -> Config:
    """The resolved configuration of a run."""
    saved = read_yaml(folder / "config.yaml")
    refuse_code(saved, f"{folder}/config.yaml", options=False)
    return resolve(saved)


def read_images(folder: Path) -> tuple[str, list[str], list[str]]:
    """(method, data, val) of a run, whose method need not be there to know them."""
    saved = read_yaml(folder / "config.yaml")
    data, val = (texts(saved.get(name)) for name in ("data", "val"))
    refuse_code({"data": data, "val": val}, f"{folder}/config.yaml", options=False)
    return str(saved.get("method")), data, val


def load_method(folder: Path) -> Method:
    """The method of a run in evaluation mode, from its last checkpoint."""
    if not is_run(folder):
        raise UserError(f"{folder} is not a run with a checkpoint: give the --out of a `cuewise pretrain`")
    config = load_config(folder)
    content = read_checkpoint(folder / "checkpoints" / "last.ckpt")
    if config.model.startswith(HUB):  # nothing is loaded from elsewhere just because a file names it
        config = replace(config, model=str(folder))
    encoder = load_start(config, typed=False)
    method = config.method_class(encoder, config.setup(content["classes"]))
    method.load_state_dict(content["method"])
    return method.eval()


def progress_of(folder: Path) -> tuple[int, int]:
    """(steps done, steps in all) of a run, (0, 0) where there is none yet."""
    if not is_run(folder) or not (folder / "encoder.safetensors").is_file():
        return 0, 0
    content = read_checkpoint(folder / "checkpoints" / "last.ckpt")
    return int(content["step"]), int(content["total"])
