"""What every measure promises, on a supervised arm that was trained for an epoch of embedded shapes."""

from __future__ import annotations

import json
import math
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from cuewise.checks.check import need
from cuewise.errors import UserError
from cuewise.studies.labs import SHAPES, STIMULI, Lab, photographs
from cuewise.studies.measures.arm import Quantities, TrainedArm
from cuewise.studies.measures.measure import Measure
from cuewise.train.pretrain import RESUMED, run_pretrain

SMALL = "n=64"
ARM = {
    "data": ["shapes:aligned?n=64&size=32"],
    "model": "cuewise/resnet-tiny?width=8",
    "size": 32,
    "batch_size": 32,
}


def small_lab() -> Lab:
    """The lab of shapes with few images in every set."""
    sets = {role: [re.sub(r"\bn=\d+", SMALL, spec) for spec in specs] for role, specs in SHAPES.sets.items()}
    return replace(SHAPES, base=ARM, methods={}, sets=sets)


def taken(measure: Measure) -> list[Quantities]:
    """Its quantities, twice; none where the lab lacks a set that it needs, or the measure is for other arms and says so."""
    lab = small_lab()
    if measure.sets(lab) is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        run_pretrain([lab.config({}, "supervised", seed=0, epochs=1)], Path(folder), RESUMED)
        try:
            return [measure.take(TrainedArm(Path(folder), lab)) for _ in range(2)]
        except UserError:
            return []


def is_described(measure: Measure) -> None:
    """It says what it is."""
    need(measure.summary and "\n" not in measure.summary, "the summary is not one line")


def needs_sets_that_there_are(measure: Measure) -> None:
    """Every set that it needs is one of a lab's."""
    roles = {*SHAPES.sets, *photographs(["a"], ["b"], ["c", "d"]).sets, *STIMULI}
    for name in (role.removesuffix("?") for role in measure.needs):
        known = any(role == name or (name.endswith("/") and role.startswith(name)) for role in roles)
        need(known, f"no lab has the set {name}; there are: {', '.join(sorted(roles))}")


def depends_on_what_can_be_compared(measure: Measure) -> None:
    """Its settings can be written as JSON and are the same when they are asked again."""
    need(measure.protocol(SHAPES) == measure.protocol(SHAPES), "its settings change from call to call")


def gives_numbers(measure: Measure) -> None:
    """Finite numbers by name, the same ones when they are taken again."""
    found = taken(measure)
    for quantities in found:
        for name, value in quantities.items():
            whole = isinstance(name, str) and isinstance(value, float | int) and math.isfinite(value)
            need(whole, f"{name} = {value!r}: not a finite number")
        json.dumps(quantities)
    need(not found or found[0] == found[1], "the same arm gives other numbers the second time")


CHECKS = (is_described, needs_sets_that_there_are, depends_on_what_can_be_compared, gives_numbers)
