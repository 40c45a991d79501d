"""What a suite is: tasks by name, each a kind of probe with its sets and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cuewise.data import open_data
from cuewise.errors import UserError
from cuewise.options import texts
from cuewise.probes.class_map import shipped_maps
from cuewise.probes.kinds import make_kind
from cuewise.probes.label_table import read_table
from cuewise.probes.run import ProbeRequest

SCENES = "shapes:scenes?size=64"
# Embedded sets only: runs anywhere in minutes on a CPU.
SMALL: list[dict[str, Any]] = [
    {"name": "boxes", "probe": "detect", "train": f"{SCENES}&n=320", "test": f"{SCENES}&n=160&part=test", "size": 64,
     "epochs": 6},
    {"name": "pixels", "probe": "segment", "train": f"{SCENES}&n=320", "test": f"{SCENES}&n=160&part=test", "size": 64},
    {"name": "fine grain", "probe": "linear", "train": "shapes:fine?n=1600", "test": "shapes:fine?n=800&part=test"},
    {"name": "unseen textures", "probe": "linear", "train": "shapes:disjoint?n=1600",
     "test": "shapes:disjoint?n=800&part=test"},
]  # fmt: skip
SUITES = {"small": SMALL}
# scores that the table shows
HEADLINES = ("voc07_ap50/", "coco_ap/", "miou/", "map_area/", "top1/", "5-shot/top1/")
OWN = ("name", "probe", "train", "test", "size")


@dataclass(frozen=True)
class SuiteTask:
    """One row of the table, or a few: a probe with its sets."""

    name: str
    request: ProbeRequest


def read_suite(spec: str, seed: int, device: str) -> list[SuiteTask]:
    """A suite by name, or a YAML list of tasks; everything is checked before anything runs."""
    content: Any = SUITES[spec] if spec in SUITES else _read(Path(spec))
    if not isinstance(content, list) or not content:
        raise UserError(f"--suite {spec} must be a list of tasks, each with name, probe, train and test")
    tasks = [_task(entry, number, spec, seed, device) for number, entry in enumerate(content, 1)]
    names = [t.name for t in tasks]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice:
        raise UserError(f"--suite {spec}: two tasks are called {twice!r}; give each a name of its own")
    return tasks


def _read(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise UserError(
            f"--suite {file} cannot be read ({why}); give a YAML list of tasks, or one of: {', '.join(SUITES)}"
        ) from None


def _task(entry: Any, number: int, spec: str, seed: int, device: str) -> SuiteTask:
    where = f"--suite {spec}, task {number}"
    if not isinstance(entry, Mapping) or not all(isinstance(k, str) for k in entry):
        raise UserError(f"{where} must be a mapping with name, probe, train and test")
    for needed in ("name", "probe", "train"):
        if not entry.get(needed):
            raise UserError(f"{where} has no {needed!r}")
    size = entry.get("size")
    if size is not None and (type(size) is not int or size < 1):
        raise UserError(f"{where}: size {size!r} must be a number of pixels")
    try:
        kind = make_kind(str(entry["probe"]), {k: v for k, v in entry.items() if k not in OWN})
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    request = ProbeRequest(
        kind, texts(entry["train"]), texts(entry.get("test")), size, seed, device, keep=True
    )
    try:
        _check_places(request)
    except UserError as error:
        raise UserError(f"{where} ({entry['name']}): {error}") from None
    return SuiteTask(str(entry["name"]), request)


def _check_places(request: ProbeRequest) -> None:
    """Sets and files that a task names can be opened."""
    named = {key: texts(getattr(request.kind, key, None)) for key in ("masks", "val", "labels", "class_map")}
    for spec in [*request.train, *request.test, *named["masks"], *named["val"]]:
        open_data(spec)
    for file in named["labels"]:
        read_table(Path(file))
    for file in named["class_map"]:
        if file not in shipped_maps() and not Path(file).is_file():
            raise UserError(
                f"there is no class map {file}; give a file, or one of: {', '.join(shipped_maps())}"
            )
