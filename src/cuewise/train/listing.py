"""Run folders below a folder: their state, dials and last scores, read from their files without loading any model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cuewise.config import read_yaml
from cuewise.errors import UserError
from cuewise.files import read_object
from cuewise.folders import read_mark, refuse_if_locked
from cuewise.train.log import read_metrics

DIALS = ("negatives", "alpha", "alpha_mode", "patch_size", "suppress", "hard", "leave_out", "crops", "away")
SCORES = ("val/", "watch/")
BOUNDS = ("_low", "_high")


def list_runs(folder: Path) -> dict[str, Any]:
    """Every run below `folder`, one row each; links are not followed."""
    if not folder.is_dir():
        raise UserError(f"no folder {folder}: name one with runs in it")
    runs = [describe(run, folder) for run in found_runs(folder)]
    if not runs:
        raise UserError(
            f"no run below {folder}: name a folder with runs of `cuewise pretrain` or `tune` in it"
        )
    states = [run["state"] for run in runs]
    return {"runs": runs, **{state: states.count(state) for state in dict.fromkeys(states)}}


def found_runs(folder: Path) -> Iterator[Path]:
    """Folders that hold a run, in alphabetical order; what lies inside a run is part of it."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        if "config.yaml" in files and ("checkpoints" in folders or read_mark(here).get("kind") == "run"):
            folders.clear()
            yield here
        else:
            folders[:] = sorted(f for f in folders if not f.startswith("."))


def describe(run: Path, below: Path) -> dict[str, Any]:
    """One run; what cannot be read is its state."""
    row: dict[str, Any] = {"run": str(run.relative_to(below)), "state": "broken"}
    try:
        config = read_yaml(run / "config.yaml")
        rows = read_metrics(run / "metrics.jsonl") if (run / "metrics.jsonl").is_file() else []
    except (UserError, OSError, ValueError) as error:
        return {**row, "dials": " ".join(str(error).split())[:120]}
    rows = [r for r in rows if isinstance(r, dict)]
    step, total = steps_done(run, rows), steps_planned(run, config)
    return {
        **row,
        "state": state_of(run, step, total),
        "step": step,
        "steps": total,
        "method": config.get("method"),
        "model": config.get("model"),
        "dials": dials_of(config),
        "loss": last_of(rows, "train/loss"),
        **scores_of(rows),
        "changed": changed(run),
    }


def state_of(run: Path, step: int, total: int | None) -> str:
    """running: a process holds the folder; finished: all steps are done and the encoder is there; else stopped."""
    try:
        refuse_if_locked(run)
    except UserError:
        return "running"
    done = total is not None and step >= total and (run / "encoder.safetensors").is_file()
    return "finished" if done else "stopped"


def steps_done(run: Path, rows: list[dict[str, Any]]) -> int:
    """The last step that metrics.jsonl or the encoder knows of."""
    card = read_object(run / "encoder.json")
    known = [card.get("step"), *(r.get("step") for r in rows[-1:])]
    return max((s for s in known if isinstance(s, int)), default=0)


def steps_planned(run: Path, config: Mapping[str, Any]) -> int | None:
    """Steps of the whole run; None where the images were not yet counted."""
    loop = config.get("loop")
    if isinstance(loop, Mapping) and isinstance(loop.get("budget"), int):
        return int(loop["budget"])
    data = read_object(run / "environment.json").get("data")
    count = data.get("count") if isinstance(data, dict) else None
    numbers = [count, config.get("batch_size"), config.get("epochs")]
    if not all(isinstance(n, int) and n > 0 for n in numbers):
        return None
    images, batch, epochs = numbers
    return images // batch * epochs  # type: ignore[operator]


def dials_of(config: Mapping[str, Any]) -> str:
    """The cue dials that are on, as the shell writes them."""
    on = {k: config.get(k) for k in DIALS if config.get(k)}
    if not on.get("negatives"):
        on = {k: v for k, v in on.items() if k not in ("alpha", "alpha_mode", "patch_size")}
    tuned = config.get("tune")
    words = [f"{k}={_short(v)}" for k, v in on.items()]
    words += ["color_jitter=off"] if config.get("color_jitter") is False else []
    words += [f"keep={tuned['keep']}"] if isinstance(tuned, Mapping) and "keep" in tuned else []
    return " ".join(words) or "none"


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("name") or value.get("mode") or ",".join(f"{k}:{v}" for k, v in value.items()))
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def scores_of(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The last value of every score that was measured while training."""
    found = {k: v for r in rows for k, v in r.items() if k.startswith(SCORES) and isinstance(v, int | float)}
    return {k: round(v, 4) for k, v in found.items() if not k.endswith(BOUNDS)}


def last_of(rows: list[dict[str, Any]], key: str) -> float | None:
    """The last number under that key."""
    found = [r[key] for r in rows if isinstance(r.get(key), int | float)]
    return round(found[-1], 4) if found else None


def changed(run: Path) -> str:
    """When the run last wrote something."""
    files = [run / "metrics.jsonl", run / "config.yaml"]
    newest = max(f.stat().st_mtime for f in files if f.is_file())
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(newest))
