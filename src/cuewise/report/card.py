"""MODEL_CARD.md for a run folder: what the encoder is, how it was trained, what was measured, how to use it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cuewise.encoders.card import describe_weights, is_random
from cuewise.files import write_text
from cuewise.report.markup import clean
from cuewise.report.numbers import digits, finite
from cuewise.report.plain import code_block, markdown, markdown_table, score_table
from cuewise.report.reading import flat, in_line, mapping, read_score, sequence
from cuewise.scores import Score
from cuewise.train.log import read_metrics

_DIALS = (
    "dials/feature_std",
    "dials/effective_rank",
    "dials/negative_similarity",
    "dials/alignment",
    "dials/uniformity",
)


def write_card(
    folder: Path,
    *,
    config: Mapping[str, Any],
    encoder: Mapping[str, Any],
    environment: Mapping[str, Any],
    metrics: Sequence[Mapping[str, Any]] = (),
    scores: Sequence[Score | Mapping[str, Any]] = (),
) -> Path:
    """Write MODEL_CARD.md into the run folder from its config.yaml, encoder.json, environment.json and metrics.jsonl."""
    name = clean(encoder.get("name") or folder.resolve().name)
    parts = [
        f"# {markdown(name)}",
        _summary(config, encoder),
        *_weights(encoder),
        "## Encoder\n\n" + _facts(encoder),
        "## Training\n\n" + _training(metrics),
        "## Data\n\n" + _data(environment),
        "## Scores\n\n" + _scores([read_score(s) for s in scores]),
        "## Use\n\n"
        + code_block(
            f"cuewise embed {folder.name} IMAGES --out features.npz\ncuewise audit {folder.name} --out audit"
        ),
        "## Limits\n\n"
        "Intervals are over test images, not over training seeds. The encoder knows what its training images show and "
        "no more; audit it on images of your own before relying on it.",
        "## Settings\n\n" + _facts(config),
        "## Environment\n\n" + _facts({k: v for k, v in environment.items() if k != "data"}),
    ]
    path = folder / "MODEL_CARD.md"
    write_text(path, "\n\n".join(parts) + "\n")
    return path


def card_of_run(run: Path, scores: Sequence[Score | Mapping[str, Any]] = ()) -> Path | None:
    """MODEL_CARD.md beside the encoder of a finished run; None for any other folder."""
    needed = [run / n for n in ("config.yaml", "encoder.json", "environment.json", "metrics.jsonl")]
    if not all(f.is_file() for f in needed):
        return None
    return write_card(
        run,
        config=yaml.safe_load(needed[0].read_text(encoding="utf-8")),
        encoder=json.loads(needed[1].read_text(encoding="utf-8")),
        environment=json.loads(needed[2].read_text(encoding="utf-8")),
        metrics=read_metrics(needed[3]),
        scores=scores,
    )


def _summary(config: Mapping[str, Any], encoder: Mapping[str, Any]) -> str:
    method = encoder.get("method") or config.get("method")
    arch = encoder.get("arch") or config.get("model")
    text = f"A {markdown(arch)} encoder" if arch else "An encoder"
    text += f", pretrained with {markdown(method)}" if method else ""
    cues = _flat(mapping(encoder.get("cues")))
    if cues:
        text += "; cue dials: " + ", ".join(f"{markdown(k)} {markdown(v)}" for k, v in cues)
    return text + "."


def _weights(encoder: Mapping[str, Any]) -> list[str]:
    """Where the weights come from, loud where they are random."""
    found = encoder.get("weights")
    if not isinstance(found, (str, dict)) or not found:
        return []
    warning = (
        "**The weights are random: every number is about an untrained network.** " if is_random(found) else ""
    )
    return [f"{warning}Weights: {markdown(describe_weights(found))}."]


def _training(metrics: Sequence[Mapping[str, Any]]) -> str:
    rows = [row for row in metrics if isinstance(row, Mapping)]
    if not rows:
        return "No metrics were recorded."
    last: dict[str, float] = {}
    for row in rows:
        last.update({k: v for k, v in row.items() if finite(v)})
    keys = ["step", "epoch", "train/loss", "lr", *_DIALS, *sorted(k for k in last if k.startswith("val/"))]
    return markdown_table(["metric", "last value"], [[k, digits(float(last[k]))] for k in keys if k in last])


def _data(environment: Mapping[str, Any]) -> str:
    data = mapping(environment.get("data"))
    if not data:
        return "No data fingerprint was recorded."
    skipped = [mapping(s) for s in sequence(data.get("skipped"))]
    shown = _facts({**{k: v for k, v in data.items() if k != "skipped"}, "skipped": len(skipped)})
    if not skipped:
        return shown
    rows = [[s.get("path", "?"), s.get("why", "")] for s in skipped[:20]]
    return shown + "\n\n" + markdown_table(["skipped file", "why"], rows)


def _scores(scores: Sequence[Score]) -> str:
    if not scores:
        return "Not audited yet: `cuewise audit` measures which cues it relies on."
    return score_table(scores)


def _facts(values: Mapping[str, Any]) -> str:
    flat = _flat(values)
    return markdown_table(["setting", "value"], flat) if flat else "Nothing recorded."


def _flat(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, in_line(value)) for key, value in flat(values)]
