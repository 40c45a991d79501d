"""docs/results/NAME.json: what a study measured, per seed and arm, and the verdicts that follow from it today."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuewise.config import merge
from cuewise.errors import UserError
from cuewise.studies.claims import ENOUGH_SEEDS, NOT_MEASURED, Claim, Outcome, Verdict
from cuewise.studies.labs import PHOTOGRAPHS, SHAPES, TUNING, Lab
from cuewise.studies.study import Study, studies
from cuewise.studies.table import Table

LABS = {lab.name: lab for lab in (SHAPES, PHOTOGRAPHS, TUNING)}
DIGITS = 5
KEPT = (
    "cuewise",
    "lab",
    "method",
    "model",
    "size",
    "generator",
    "precision",
    "epochs",
    "seeds",
    "runs",
    "budget_minutes",
)
ABSOLUTE = re.compile(r"(?<![\w.])/(?:[^/.\s]+/)+")  # folders of a path that starts at the root
DECIMAL = re.compile(r"\d[.,]\d|\d\s*%")


def slim(document: Mapping[str, Any], *, commit: str = "", seen: str = "", note: str = "") -> dict[str, Any]:
    """What is stored of results.json. seen: what had been looked at before; note: a remark without numbers."""
    for text in (seen, note):
        if DECIMAL.search(text):
            raise UserError(f"{text[:60]!r}: measured numbers come from the stored values, not from a remark")
    environment = document.get("environment") or {}
    found = {key: document.get(key) for key in KEPT} | {
        "model": without_folders(str(document.get("model") or ""))
    }
    kept = {
        "source": "results.json of cuewise reproduce",
        "command": without_folders(str(document.get("command", ""))),
        "date": str(environment.get("time", ""))[:10],
        "commit": commit or str((environment.get("git") or {}).get("commit", ""))[:12],
        **found,
        "values": dict(document.get("values") or {}),
        "worker_minutes": round(float(document.get("worker_seconds") or 0) / 60),
        "data": [without_folders(d) for d in document["data"]],
        "sets": sorted(document.get("sets") or {}),
        "warnings": [without_folders(w) for w in document.get("warnings") or ()],
        "seen": seen,
        "note": note,
        "lab_settings": lab_settings(LABS[str(document["lab"])], list(document["studies"])),
        "studies": {name: arms_of(study) for name, study in document["studies"].items()},
    }
    return kept


def lab_settings(lab: Lab, names: Sequence[str]) -> dict[str, Any]:
    """Method → what the lab gives all its arms, data and network left out: for the methods of these studies.

    Stored, so that the page can name the arms whose lab has changed since.
    """
    base = {k: v for k, v in lab.base.items() if k not in ("data", "model", "size")}
    asked = replace(lab, base={"data": [], "model": "", **lab.base})
    methods = {
        arm.method or lab.main for name in names if name in studies() for arm in studies()[name].arms(asked)
    }
    return dict(json.loads(json.dumps({m: merge(base, lab.methods.get(m, {})) for m in sorted(methods)})))


def arms_of(study: Mapping[str, Any]) -> dict[str, Any]:
    """arm → its settings, and the values of each quantity in the order of the seeds; curves are left out."""
    out: dict[str, Any] = {}
    for arm in study["arms"]:
        seeds = list(arm["seeds"].values())
        names = dict.fromkeys(q for s in seeds for q in s if not q.startswith("curve/"))
        settings = json.loads(without_folders(json.dumps(arm["settings"], ensure_ascii=False)))
        values = {q: [rounded(s.get(q)) for s in seeds] for q in names}
        out[arm["name"]] = {"settings": settings, "values": values}
    return out


def rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)


def without_folders(text: str) -> str:
    """Paths of this machine cut to the names of files."""
    return ABSOLUTE.sub("", text)


@dataclass(frozen=True)
class Judged:
    """One claim with its verdict, and where it was asked."""

    stored: str  # name of the file
    where: str  # lab, method where it is not the lab's own
    study: Study
    claim: Claim
    verdict: Verdict

    @property
    def weakest(self) -> Outcome:
        """The decisive difference that is least beyond its margin, by its own interval."""
        return min(self.verdict.outcomes, key=distance)


def distance(outcome: Outcome) -> float:
    """How many half intervals the mean is beyond the margin, in the claimed direction."""
    d = outcome.difference
    half = (outcome.high - outcome.low) / 2
    beyond = d.sign * outcome.mean - d.margin
    return beyond / half if math.isfinite(half) and half > 0 else beyond


@dataclass(frozen=True)
class Stored:
    """A stored file."""

    name: str
    document: Mapping[str, Any]

    @property
    def lab(self) -> Lab:
        """The lab as it was, as far as claims and arms depend on it."""
        d = self.document
        base = LABS[d["lab"]]
        values = {key: tuple(v) for key, v in d["values"].items()}
        sets = dict.fromkeys(d["sets"], ())
        return replace(
            base,
            main=d["method"],
            sets=sets,
            generator=d.get("generator") or "",
            **values,
            base={"data": [], **base.base, "model": d["model"]},
        )

    @property
    def where(self) -> str:
        d = self.document
        other = "" if d["method"] == LABS[d["lab"]].main else f", {d['method']}"
        return f"{d['lab']}{other}"

    @property
    def seeds(self) -> int:
        return len(self.document["seeds"])

    def tables(self) -> Iterator[tuple[Study, Table]]:
        """Each study with its values."""
        known = studies()
        for name, arms in self.document["studies"].items():
            if name not in known:
                raise UserError(f"docs/results/{self.name}.json: there is no study {name} any more")
            asked = {a.name for a in known[name].arms(self.lab)}
            if gone := [a for a in arms if a not in asked]:
                raise UserError(f"docs/results/{self.name}.json: {name} has no arm {gone[0]!r} any more")
            yield (
                known[name],
                Table({a: by_seed(d["values"], self.document["seeds"]) for a, d in arms.items()}),
            )

    def judged(self) -> list[Judged]:
        """Every claim that the stored values decide."""
        found = [
            Judged(self.name, self.where, study, claim, claim.judge(table, self.lab))
            for study, table in self.tables()
            for claim in study.claims
        ]
        return [j for j in found if j.verdict.word != NOT_MEASURED]

    def changed_arms(self) -> list[str]:
        """Arms whose settings are no longer those that were measured."""
        out = []
        for study, table in self.tables():
            today = {a.name: a for a in study.arms(self.lab)}
            then = self.document["studies"][study.name]
            labs = self.document["lab_settings"], lab_settings(LABS[self.document["lab"]], [study.name])
            for name in table.arms:
                old, new = (found.get(today[name].method or self.lab.main) for found in labs)
                if plain(today[name].settings) != plain(then[name]["settings"]) or old != new:
                    out.append(f"{study.name}: {name}")
        return out


def plain(settings: Mapping[str, Any]) -> str:
    return json.dumps({k: v for k, v in settings.items() if k != "data"}, sort_keys=True)


def by_seed(
    values: Mapping[str, Sequence[float | None]], seeds: Sequence[int]
) -> dict[int, dict[str, float]]:
    out: dict[int, dict[str, float]] = {s: {} for s in seeds}
    for quantity, row in values.items():
        for seed, value in zip(seeds, row, strict=True):
            out[seed][quantity] = math.nan if value is None else value
    return out


def read_all(store: Path) -> list[Stored]:
    """All stored files, by name."""
    files = [(f.stem, json.loads(f.read_text(encoding="utf-8"))) for f in sorted(store.glob("*.json"))]
    return [Stored(name, document) for name, document in files if "studies" in document]


def expected_by_chance(judged: Sequence[Judged]) -> float:
    """How many would be held at most if none were true: one end of a 95 % interval each."""
    return 0.025 * len([j for j in judged if j.verdict.seeds >= 2])


def first_look(seeds: int) -> bool:
    return seeds < ENOUGH_SEEDS
