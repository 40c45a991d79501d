"""cuewise score: the same scores from a table of decisions made elsewhere."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cuewise.audits.decisions import Decision, shape_bias_scores
from cuewise.errors import UserError

COLUMNS = ("subject", "image", "shape", "texture", "response")
TABLE = f"a table of decisions: a CSV with the columns {','.join(COLUMNS)} and a row for each answer to a cue-conflict image"


def score_decisions(file: Path, *, audit: str, subject: str | None) -> dict[str, Any]:
    """Shape bias of every subject of a CSV with the columns subject,image,shape,texture,response."""
    if audit != "shape_bias":
        raise UserError(f"--audit {audit}: decisions can be scored for shape_bias")
    rows = _read(file)
    subjects = list(dict.fromkeys(r["subject"] for r in rows))
    if subject is not None and subject not in subjects:
        raise UserError(f"{file} has no subject {subject!r}; it has: {', '.join(subjects[:8])}")
    scores, tables = [], {}
    for who in [subject] if subject else subjects:
        decisions = _decisions(r for r in rows if r["subject"] == who)
        found, table = shape_bias_scores(decisions, f"decisions of {who}")
        single = len(subjects) == 1 or subject is not None
        scores += [{**s.as_dict(), "name": s.name if single else f"{s.name}/{who}"} for s in found]
        tables[f"shape_bias/{who}"] = table
    return {"file": str(file), "scores": scores, "tables": tables}


def people(file: Path) -> list[Decision]:
    """Decisions of the subjects called human-…, or of all where there are none."""
    rows = _read(file)
    return _decisions([r for r in rows if r["subject"].lower().startswith("human")] or rows)


def _decisions(rows: Iterable[dict[str, str]]) -> list[Decision]:
    return [Decision(*(row[column] for column in COLUMNS[1:])) for row in rows]


def _read(file: Path) -> list[dict[str, str]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as handle:
            reader = csv.DictReader(handle)
            missing = [c for c in COLUMNS if c not in (reader.fieldnames or [])]
            if missing:
                raise UserError(f"{file} has no column {', '.join(missing)}; needed: {','.join(COLUMNS)}")
            rows = list(reader)
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not a UTF-8 text file: {error.reason}") from error
    except csv.Error as error:
        raise UserError(f"{file} is a broken CSV ({error})") from error
    except FileNotFoundError:
        raise UserError(f"no file {file}: give {TABLE}") from None
    except IsADirectoryError:
        raise UserError(
            f"{file} is a folder; give {TABLE}. To ask a model about a folder of images: cuewise audit MODEL --test {file}"
        ) from None
    for number, row in enumerate(rows, start=2):
        if any(row[c] is None for c in COLUMNS):
            raise UserError(f"{file} line {number} is too short: it needs {len(COLUMNS)} values")
    if not rows:
        raise UserError(f"{file} has no decisions, only a header")
    return rows
