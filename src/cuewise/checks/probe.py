"""What every kind of probe promises, on an untrained encoder with embedded shapes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from cuewise.checks.check import need
from cuewise.errors import UserError
from cuewise.options import options_of
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.run import run_probe

TRAIN, TEST = ["shapes?n=64&size=32"], ["shapes?n=40&size=32&seed=1"]
MODEL = "cuewise/resnet-tiny?width=8"


def result(kind: type[ProbeKind], test: list[str], **options: Any) -> dict[str, Any]:
    where = f"{kind.__module__}:{kind.__qualname__}"
    given: dict[str, Any] = {"train": TRAIN, "test": test, "size": 32, "seed": 0, "device": "cpu", **options}
    return run_probe(where, MODEL, keep=False, out=None, baseline=None, **given)


def is_described(kind: type[ProbeKind]) -> None:
    """It says what it is; its options are fields with a help text and a default."""
    need(kind.summary and "\n" not in kind.summary, "the summary is not one line")
    need(dataclasses.is_dataclass(kind), "the class is not a dataclass: its options would not be fields")
    for field in dataclasses.fields(kind):
        need(field.name in options_of(kind), f"the field {field.name} has no help: Annotated[type, 'help']")
        need(not options_of(kind)[field.name].required, f"the option {field.name} has no default")


def scores_are_whole(kind: type[ProbeKind]) -> None:
    """Each test set has a score with a protocol and an interval around it; without one, a part of --train is held out."""
    for test in (TEST, []):
        found = result(kind, test)
        need(found["scores"], "it gives no score")
        for s in found["scores"]:
            need(s["protocol"], f"the score {s['name']} has no protocol")
            inside = s["low"] is None or s["low"] - 1e-9 <= s["value"] <= s["high"] + 1e-9
            need(inside, f"the score {s['name']} lies outside its interval")
        json.dumps(found)


def is_deterministic(kind: type[ProbeKind]) -> None:
    """The same seed gives the same scores."""
    need(result(kind, TEST) == result(kind, TEST), "the same seed gives other scores the second time")


def refuses_strange_options(kind: type[ProbeKind]) -> None:
    """An option that it does not have is an error."""
    try:
        result(kind, TEST, no_such_option=1)
    except UserError:
        return
    raise UserError("an option that it does not have is ignored")


CHECKS = (is_described, scores_are_whole, is_deterministic, refuses_strange_options)
