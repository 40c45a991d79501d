"""What every audit promises, on an untrained encoder with embedded shapes."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

from cuewise.audits import plan, sets
from cuewise.audits.audit import Audit, Finding
from cuewise.audits.engine import Engine
from cuewise.audits.run import ask
from cuewise.audits.saved import Saved
from cuewise.audits.subjects import AuditRequest, load_seeded, prepare, read_settings
from cuewise.checks.check import need

TRAIN = ["shapes?n=48&size=32"]
TEST = ["shapes?n=32&size=32&seed=1", "shapes:conflict?n=32&size=32"]
MODEL = "cuewise/resnet-tiny?width=8"
FIGURES = ("bars", "lines", "histogram", "scatter")


def asked(audit: Audit) -> tuple[Finding | None, str]:
    """What it finds, or why it cannot be asked."""
    sets.forget()
    with tempfile.TemporaryDirectory() as folder:
        request = AuditRequest(TRAIN, TEST, "probe", 0, read_settings(16, None), asked=[audit])
        encoder = load_seeded(MODEL, 32, None, 0)
        subject = prepare(MODEL, "model", encoder, Path(folder), request, Engine(workers=0))
        plan.run_passes([(subject, [audit])], subject.engine)
        found, left = ask(subject, [audit], Saved(Path(folder)))
    sets.forget()
    return found.get(audit.name), left.get(audit.name, "")


def is_described(audit: Audit) -> None:
    """It says what it asks."""
    need(audit.summary and "\n" not in audit.summary, "the summary is not one line")
    need(audit.question, "it has no question: the report would show its scores without one")
    for option in audit.options:
        need(option.help, f"the option {option.name} has no help")


def scores_are_whole(audit: Audit) -> None:
    """Scores have names of their own, a protocol and an interval around them; figures and tables are complete."""
    finding, why = asked(audit)
    need(finding is not None or why, "it gives neither a finding nor a reason")
    if finding is not None:
        check_finding(finding)


def check_finding(finding: Finding) -> None:
    """Everything in a finding can be shown in the report and written as JSON."""
    for s in finding.scores:
        need(s.protocol, f"the score {s.name} has no protocol")
        need(s.n >= 0, f"the score {s.name} has n = {s.n}")
        if math.isfinite(s.value) and math.isfinite(s.low):
            need(s.low - 1e-9 <= s.value <= s.high + 1e-9, f"the score {s.name} lies outside its interval")
    names = [s.name for s in finding.scores]
    need(len(names) == len(set(names)), "two scores have the same name")
    for name, figure in finding.figures.items():
        missing = {"title", "kind", "xlabel", "ylabel", "series"} - set(figure)
        need(not missing, f"the figure {name} lacks {', '.join(sorted(missing))}")
        need(figure["kind"] in FIGURES, f"the figure {name} is of no known kind: {', '.join(FIGURES)}")
        for line in figure["series"]:
            edges = (0, 1) if figure["kind"] == "histogram" else (0,)
            need(len(line["x"]) - len(line["y"]) in edges, f"the figure {name}: x and y differ in length")
            for bound in ("low", "high"):
                same = len(line.get(bound, line["y"])) == len(line["y"])
                need(same, f"the figure {name}: {bound} and y differ in length")
    for name, table in finding.tables.items():
        same = all(len(row) == len(table["columns"]) for row in table["rows"])
        need(same, f"the table {name} has rows that are not as wide as its columns")
    json.dumps([finding.tables, finding.figures, finding.galleries])


def is_deterministic(audit: Audit) -> None:
    """Asked twice, it finds the same."""
    first, second = (as_json(asked(audit)[0]) for _ in range(2))
    need(first == second, "the same model and data give other numbers the second time")


def as_json(finding: Finding | None) -> Any:
    if finding is None:
        return None
    return json.dumps([[s.as_dict() for s in finding.scores], finding.figures, finding.tables])


CHECKS = (is_described, scores_are_whole, is_deterministic)
