"""What a verb returns: a plain dict for programs that shows itself as a table, in a terminal and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cuewise.errors import UserError
from cuewise.text_table import aligned, image_counts, number


class Result(dict[str, Any]):
    """A dict of what JSON has (no NaN, no paths), so `json.dumps` takes it and it equals the plain dict.

    Printed, it is the table that the shell shows; in a notebook, a table with intervals and the pictures that were written.
    """

    def __init__(
        self,
        content: Mapping[str, Any] | None = None,
        *,
        shown: bool = True,
        rows: Mapping[str, str | int | float] | None = None,
    ) -> None:
        super().__init__(plain(content or {}))
        self.shown = shown  # by the shell: of several processes that ran one command, by the first alone
        self.rows = (
            rows  # what a person sees in place of the single values, where their keys do not say enough
        )

    def __repr__(self) -> str:
        return as_text(self) or dict.__repr__(self)

    def _repr_html_(self) -> str:
        from cuewise.report.notebook import result_html

        config = self.get("config")
        return result_html(self, settings_text(config) if isinstance(config, dict) else "")

    def to_pandas(self) -> Any:
        """A DataFrame: one row per score (or per run of `cuewise.runs`); without scores, one row per name and value."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas needs the package pandas: pip install 'cuewise[tables]'") from None
        if "scores" in self:
            models = compared(self)
            columns = [*(["model"] if models else []), *SCORE]
            return pandas.DataFrame([_score_row(s, models) for s in self["scores"]], columns=columns)
        if "runs" in self:
            return pandas.DataFrame(self["runs"])
        return pandas.DataFrame(list(_scalars(self).items()), columns=["name", "value"])


SCORE = ("name", "value", "low", "high", "n", "protocol")


def compared(result: Mapping[str, Any]) -> list[str]:
    """Names of the models where a result is about several."""
    names = result["comparison"]["columns"][1:] if "comparison" in result else result.get("models", [])
    return list(names) if len(names) > 1 else []


def _score_row(score: Mapping[str, Any], models: list[str]) -> dict[str, Any]:
    """A score; where several models are compared, the model in a column of its own."""
    row = {k: score.get(k) for k in SCORE}
    for model in sorted(models, key=len, reverse=True):
        if score["name"].startswith(f"{model}: "):
            return {**row, "model": model, "name": score["name"].removeprefix(f"{model}: ")}
    return row


def _scalars(result: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in result.items() if isinstance(v, str | int | float)}


def as_text(result: Mapping[str, Any]) -> str:
    """A result for a person: the models side by side or the scores, then single values."""
    if set(result) == {"script"}:
        return str(result["script"])
    lines = [settings_text(result["config"])] if isinstance(result.get("config"), dict) else []
    lines += result["plan"] if isinstance(result.get("plan"), list) else []
    if "comparison" in result:
        lines.append(side_by_side(**result["comparison"]))
    if "runs" in result:
        lines += [_runs_text(result["runs"])] if result["runs"] else []
    lines += [_score_text(score) for score in result.get("scores", []) if "comparison" not in result]
    if isinstance(result.get("baseline"), Mapping):  # of a probe
        own = [{**score, "name": f"baseline: {score['name']}"} for score in result["baseline"]["scores"]]
        apart = [{**score, "name": f"difference: {score['name']}"} for score in result["differences"]]
        lines += [_score_text(score) for score in [*own, *apart]]
    rows = getattr(result, "rows", None) or _scalars(result)
    width = min(max(map(len, rows), default=0), 32)
    lines += [f"{key:<{width}} {value}".rstrip() for key, value in rows.items()]
    return "\n".join(lines)


def _score_text(score: Mapping[str, Any]) -> str:
    line = f"{score['name']:<34} {number(score['value'])}"
    if score.get("low") is not None:
        line += f"  [{number(score['low'])}, {number(score['high'])}]"
    if score.get("guessing") is not None:
        line += f"  guessing {number(score['guessing'])}"
    return f"{line}  n={score['n']}  {score['protocol']}"


def settings_text(config: Mapping[str, Any]) -> str:
    """A configuration as config.yaml has it."""
    import yaml

    return yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)


def side_by_side(columns: list[str], rows: list[list[Any]], n: list[list[int | None]] | None = None) -> str:
    """A table: one line per score, one column per model, and how many images each score rests on where that is known."""
    cells = [[row[0], *map(number, row[1:])] for row in rows]
    if n is None:
        return aligned([columns, *cells])
    return aligned([[*columns, "n"], *([*line, image_counts(own)] for line, own in zip(cells, n))])


def _runs_text(runs: list[dict[str, Any]]) -> str:
    """One line per run, one column per key."""
    columns = list(dict.fromkeys(k for run in runs for k in run))
    cells = [["" if run.get(c) is None else str(run[c]) for c in columns] for run in runs]
    return aligned([columns, *cells])


def plain(value: Any) -> Any:
    """Only what JSON has: no NaN, no paths, no tuples."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):  # of numpy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
