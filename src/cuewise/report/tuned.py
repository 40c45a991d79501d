"""The report of a tuning run: the model before and after, asked the same questions on the same images."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuewise.audits import LIMIT
from cuewise.audits.run import audit_pair, comparison
from cuewise.audits.watch import sampled
from cuewise.encoders.load import load_whole
from cuewise.errors import UserError
from cuewise.files import write_json
from cuewise.report.folders import own_data, report_audits
from cuewise.train.reload import load_config

AUDITS = ["shape_bias", "accuracy", "sketch", "silhouette", "color"]
MOST = 1000  # images of --val


def report_tuned(run: Path, test: Sequence[str]) -> dict[str, Any]:
    """RUN/before and RUN/after hold the two audits, RUN/report.html opens with their paired differences.

    The own classifier answers where the model has one and it knows the classes of the test images; else a probe on --val
    or on labelled DATA, half of it held out.
    """
    config = load_config(run)
    whole = load_whole(config.model)
    tests = [*test, *(sampled(spec, MOST) for spec in config.val)]
    own, found = whole.head is not None and bool(tests), None
    if own:
        found = _asked(run, config.model, train=[], test=tests, answers="head")
    if found is None:
        found = _asked(run, config.model, answers="probe", **_probed(run, list(test)))
    if found is None:
        return {}
    result = report_audits(found, run, title=f"{run.resolve().name}: before and after tuning", cards=True)
    table = comparison([document for _, document in found])
    write_json(run / "before_after.json", {**table, "report": result["report"]}, indent=1)
    return {**result, **table}


def _probed(run: Path, test: list[str]) -> dict[str, list[str]]:
    """What a probe is fitted and tested on: --val, labelled DATA, or the embedded shapes."""
    config = load_config(run)
    if config.val:
        return {"train": list(config.val), "test": [*test, *config.val]}
    train, plain = own_data([run])
    return {"train": train, "test": [*test, *plain]}


def _asked(
    run: Path, model: str, *, train: list[str], test: list[str], answers: str
) -> list[tuple[Path, dict[str, Any]]] | None:
    """Both audits; None, with the reason reported, where nothing can be asked."""
    names = ["before", "after"]
    try:
        return audit_pair(
            [model, str(run)],
            run / "audits",
            train=train,
            test=test,
            only=AUDITS,
            names=names,
            limit=LIMIT,
            answers=answers,
        )
    except UserError as error:
        print(f"before and after, by {answers}: {error}", file=sys.stderr)
        return None
