"""Names of models in a report, and the folders of their audits."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.errors import UserError


def short_names(models: Sequence[str]) -> list[str]:
    """The last part of each, or all of it where two would be the same."""
    short = [m.rstrip("/").rpartition("/")[2] for m in models]
    return short if len(set(short)) == len(short) else list(models)


def unique_names(names: Sequence[str], models: Sequence[str]) -> list[str]:
    """One name per model; a name that is given twice gets a number."""
    if len(names) != len(models):
        raise UserError(f"--name gives {len(names)} names for {len(models)} models; give one for each")
    return _distinct(names, "{} ({})")


def folder_names(names: Sequence[str]) -> list[str]:
    """One folder per model, also where names differ only in characters that a folder does not keep."""
    safe = ["".join(c if c.isalnum() or c in "-_." else "-" for c in n).strip(".-") or "model" for n in names]
    return _distinct(safe, "{}-{}")


def _distinct(names: Sequence[str], form: str) -> list[str]:
    out: list[str] = []
    taken: set[str] = set()  # regardless of case: some file systems do not distinguish it
    for name in names:
        found, copy = name, 2
        while found.lower() in taken:
            found, copy = form.format(name, copy), copy + 1
        taken.add(found.lower())
        out.append(found)
    return out
