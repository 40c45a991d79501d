"""cuewise probe: fit on one labelled set, score on others."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from cuewise.data import Dataset
from cuewise.encoders import load_encoder
from cuewise.encoders.card import is_random, warn_if_random
from cuewise.encoders.embed import Embeddings
from cuewise.encoders.load import SPEC, as_torch_device
from cuewise.errors import UserError
from cuewise.files import aside, write_json, writing
from cuewise.probes.class_map import match
from cuewise.probes.dense.drawing import Shot
from cuewise.probes.dense.resample import difference
from cuewise.probes.draws import OVER_BOTH
from cuewise.probes.kinds import ProbeKind, make_kind
from cuewise.probes.task import Task
from cuewise.scores import Score
from cuewise.train.reload import is_run

Draws = dict[str, NDArray[np.float64]]  # score → its values over resampled images


@dataclass(frozen=True)
class ProbeRequest:
    """A kind of probe with its options, the sets, and what else the numbers depend on."""

    kind: ProbeKind
    train: list[str]
    test: list[str]
    size: int | None
    seed: int
    device: str
    keep: bool

    def as_dict(self) -> dict[str, Any]:
        """What is written beside the result, and compared on --resume."""
        options = {f.name: getattr(self.kind, f.name) for f in fields(self.kind)}
        given = {k: list(v) if isinstance(v, tuple) else v for k, v in options.items() if v is not None}
        return {
            "probe": self.kind.name,
            "train": self.train,
            "test": self.test,
            "size": self.size,
            "seed": self.seed,
            **given,
        }


def measure(
    asked: ProbeRequest, model: str, out: Path | None, *, paired: bool, untrained: bool
) -> tuple[dict[str, Any], Task]:
    """The result of one encoder, and the task with its resampled scores and pictures.

    untrained: random weights are what was asked for
    """
    began = time.monotonic()
    with torch.random.fork_rng(devices=[]):  # an architecture without weights is the same one for a seed
        torch.manual_seed(asked.seed)
        encoder = load_encoder(model, size=asked.size).to(as_torch_device(asked.device))
    if not untrained:
        warn_if_random(encoder.card, str(model))
    class_map = getattr(asked.kind, "class_map", None)
    run = Path(model) if isinstance(model, str) and is_run(Path(model)) else None
    task = Task(
        encoder, asked.train, asked.test, asked.seed, asked.keep, class_map, asked.size, out, paired, run=run
    )
    task.check_sets()
    scores = asked.kind.run(task)
    result: dict[str, Any] = {
        "model": model if isinstance(model, str) else encoder.card.arch,
        "probe": asked.kind.name,
        "weights": encoder.card.weights,
        "scores": [s.as_dict() for s in scores],
        "tests": task.tests,
        "overlap": task.overlap,
        "skipped": task.skipped,
        "warnings": task.warnings,
        **({"tables": task.tables} if task.tables else {}),
        **({"classes": list(task.fitted.classes)} if "fitted" in vars(task) else {}),
    }
    if out is not None:
        result["seconds"] = round(time.monotonic() - began, 1)
    return result, task


def run_probe(
    kind: str,
    model: str,
    *,
    train: list[str],
    test: list[str],
    size: int | None,
    seed: int,
    device: str,
    keep: bool,
    out: Path | None,
    baseline: str | None,
    started: Callable[[], None] = lambda: None,
    **options: Any,
) -> dict[str, Any]:
    """Scores of one kind of probe, for each test set by itself; `options` are those that the kind takes.

    out       a folder for checkpoints, pictures and probe.json; what it holds of the same request is used again
    baseline  "random" (the same architecture, untrained) or another MODEL: measured too, with paired differences
    started   called when everything that the user may have to fix has been checked
    """
    asked = ProbeRequest(make_kind(kind, options), train, test, size, seed, device, keep)
    about = {"model": str(model), "baseline": baseline, **asked.as_dict()}
    if out is not None:
        check_settings(out / "config.json", about)
        if (out / "probe.json").is_file():
            print(f"{out}: finished before; this is its result", file=sys.stderr, flush=True)
            return dict(json.loads((out / "probe.json").read_text(encoding="utf-8")))
    paired, untrained = baseline is not None, baseline == "random"
    other, twin_size = random_twin(model) if untrained else (baseline, None)
    if other == model:
        raise UserError(f"--baseline {baseline}: that is the model itself; name another MODEL, or random")
    if out is not None:
        started()
        write_json(out / "config.json", about)
    result, draws = measure_once(asked, model, out, paired=paired)
    if other is not None:
        place = None if out is None else out / "baseline"
        print(f"baseline: {other}{', untrained, as asked' if untrained else ''}", file=sys.stderr, flush=True)
        size = twin_size if asked.size is None else asked.size
        theirs, second = measure_once(
            replace(asked, size=size), other, place, paired=paired, untrained=untrained
        )
        result["baseline"] = {k: theirs[k] for k in ("model", "weights", "scores")}
        result["differences"] = [s.as_dict() for s in paired_differences((result, draws), (theirs, second))]
        also = [
            {**p, "file": f"baseline/{p['file']}", "title": f"baseline, {p['title']}"}
            for p in theirs.get("pictures", [])
        ]
        result["pictures"] = [*result.get("pictures", []), *also]
    if out is not None:
        write_json(out / "probe.json", result)
    return result


def measure_once(
    asked: ProbeRequest, model: str, folder: Path | None, *, paired: bool = True, untrained: bool = False
) -> tuple[dict[str, Any], Draws]:
    """The result and the resampled scores of one encoder, from its folder where they were measured before."""
    if folder is not None and (folder / "result.json").is_file():
        return read_measured(folder)
    result, task = measure(asked, model, folder, paired=paired, untrained=untrained)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        result["pictures"] = write_shots(task.shots, folder)
        with writing(folder / "draws.npz") as handle:
            columns: dict[str, Any] = {str(i): v for i, v in enumerate(task.draws.values())}
            np.savez(handle, names=np.array(list(task.draws), dtype=np.str_), **columns)
        write_json(folder / "result.json", result)
    return result, task.draws


def read_measured(folder: Path) -> tuple[dict[str, Any], Draws]:
    """What `measure_once` wrote."""
    with np.load(folder / "draws.npz") as saved:
        draws = {str(name): saved[str(i)] for i, name in enumerate(saved["names"])}
    return dict(json.loads((folder / "result.json").read_text(encoding="utf-8"))), draws


def check_settings(file: Path, about: dict[str, Any]) -> None:
    """A folder that was started with other settings is not continued; the difference is named."""
    if not file.is_file():
        return
    before = json.loads(file.read_text(encoding="utf-8"))
    now = json.loads(json.dumps(about))
    for key in {**before, **now}:
        if before.get(key) != now.get(key):
            raise UserError(
                f"{file.parent} was started with another {key}: {before.get(key)} → {now.get(key)}; give what it was, "
                "or --overwrite"
            )


def random_twin(model: str) -> tuple[str, int]:
    """The same architecture without weights, and the size that the model looks at."""
    card = load_encoder(model).card
    arch = card.arch
    if is_random(card.weights):
        raise UserError(f"--baseline random: {model} has random weights itself; name a trained MODEL")
    if not SPEC.match(arch):
        raise UserError(
            f"--baseline random: {model} is your own code, so no untrained copy can be built from its name"
        )
    return arch, card.size


def paired_differences(a: tuple[dict[str, Any], Draws], b: tuple[dict[str, Any], Draws]) -> list[Score]:
    """First minus second for every score that both have."""
    second = {s["name"]: s for s in b[0]["scores"]}
    both = [(s, second[s["name"]]) for s in a[0]["scores"] if s["name"] in second]
    found = [paired_difference(one, other, a[1], b[1]) for one, other in both]
    return [d for d in found if d is not None]


def paired_difference(a: dict[str, Any], b: dict[str, Any], draws: Draws, theirs: Draws) -> Score | None:
    """a − b over the same resamples of images where both have them."""
    if a["value"] is None or b["value"] is None:
        return None
    mine, other = draws.get(a["name"]), theirs.get(a["name"])
    if mine is None or other is None or len(mine) != len(other) or a["n"] != b["n"]:
        return unpaired(a, b)
    return difference(
        a["name"],
        (a["value"], mine),
        (b["value"], other),
        a["n"],
        "paired_by_image" + ("_and_draw" if all(OVER_BOTH in s["protocol"] for s in (a, b)) else ""),
    )


def unpaired(a: dict[str, Any], b: dict[str, Any]) -> Score:
    """The difference of two scores as if their images were different ones."""
    halves = [(s["high"] - s["low"]) / 2 if s["high"] is not None else math.nan for s in (a, b)]
    value, half = a["value"] - b["value"], math.hypot(*halves)
    return Score(a["name"], value, value - half, value + half, a["n"], "unpaired")


def write_shots(shots: list[Shot], out: Path) -> list[dict[str, str]]:
    """Pictures below OUT/pictures, and what to say of each."""
    listed = []
    for number, shot in enumerate(shots):
        file = out / "pictures" / f"{number:03d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        with aside(file) as part:
            Image.fromarray(shot.picture).save(part, "PNG")
        listed.append({"file": str(file.relative_to(out)), "title": shot.title, "caption": shot.caption})
    return listed


def shared_classes(
    found: Embeddings, test: Dataset, train: Dataset
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows of the test set whose class was trained, and their labels by the training set's numbering."""
    got = match(found.labels, test.classes, train.classes)
    return got.rows, got.right.argmax(1)[got.labels]
