"""Audit documents with what only several models together show: image-by-image tables, overlays, strips, facets, grids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from fake_audits import CLASSES, HOSTILE, count_scores, decisions, draw

from cuewise.scores import mean, proportion


def confidence_table(rng: np.random.Generator, skill: float, count: int = 200) -> dict[str, Any]:
    """image, label, response, correct, probability, entropy; `skill` is how often it is right."""
    rows = []
    for i in range(count):
        right = bool(rng.random() < skill)
        name = HOSTILE if i == 0 else f"{CLASSES[i % 8]}/{i}.png"
        label, said = CLASSES[i % 8], CLASSES[(i + (not right)) % 8]
        rows.append([name, label, said, right, float(rng.uniform(0.4, 0.9)), float(rng.uniform(0, 2))])
    return {
        "title": "Confidence, image by image",
        "columns": ["image", "label", "response", "correct", "probability", "entropy"],
        "rows": rows,
        "pairs": {"linear/photos": "correct"},
        "common": {"confidence/photos": "probability", "entropy/photos": "entropy"},
    }


def joint_document(
    name: str, alpha: float, skill: float, root: Path, arch: str = "cuewise/resnet-tiny"
) -> dict[str, Any]:
    """An audit of one model; models of one α differ by their name's seed."""
    rng = np.random.default_rng(sum(map(ord, name)))
    images = draw(root / "pictures", np.random.default_rng(0), 12)
    overlays = draw(root / "overlays", rng, 12)
    table = confidence_table(rng, skill)
    right = [r for r in table["rows"] if r[3]]
    split = {
        "title": "Saliency, image by image",
        "columns": ["image", "correct", "area"],
        "rows": [[r[0], r[3], r[4]] for r in table["rows"]],
        "pairs": {"saliency_area": "area"},
        "split": ["area"],
    }
    area = mean("saliency_area", [r[4] for r in table["rows"]], "p").as_dict()
    verdicts = {r[0]: "right" if r[3] else "wrong" for r in table["rows"]}
    shown = [r[0] for r in table["rows"][:12]]
    edges = np.linspace(-1, 1, 21)
    pairs = [("positive", 0.8), ("patch", 0.6 - 0.1 * alpha)]
    return {
        "cuewise": "0.1.0",
        "model": {
            "name": name,
            "arch": arch,
            "method": "moco",
            "cues": {"negatives": ["patch"], "alpha": [alpha]} if alpha else {},
        },
        "scores": [
            *count_scores(decisions(rng, 0.3 + 0.1 * alpha), "p"),
            proportion("linear/photos", len(right), 200, "p").as_dict(),
            proportion("texture_classes/accuracy", int(40 + 10 * skill), 200, "p").as_dict(),
            mean("confidence/photos", [r[4] for r in right], "p").as_dict(),
            mean("entropy/photos", [r[5] for r in right], "p").as_dict(),
            area,
        ],
        "tables": {"confidence/photos/decisions": table, "saliency/decisions": split},
        "figures": {
            "similarity": {
                "title": "Similarity",
                "kind": "histogram",
                "facet": True,
                "series": [
                    {
                        "name": pair,
                        "x": edges.tolist(),
                        "y": np.histogram(rng.normal(m, 0.1, 300), edges)[0].tolist(),
                    }
                    for pair, m in pairs
                ],
            },
            "confidence/reliability": {
                "title": "Reliability",
                "kind": "lines",
                "diagonal": True,
                "xlabel": "confidence",
                "ylabel": "accuracy",
                "series": [{"name": "photos", "x": [0.2, 0.6, 0.9], "y": [0.1, 0.5, 0.95]}],
            },
            "confusion": {
                "title": "Who is taken for whom",
                "kind": "grid",
                "xlabel": "said",
                "ylabel": "true",
                "series": [
                    {"name": c, "x": list(CLASSES[:4]), "y": [5 + 20 * (i == j) for j in range(4)]}
                    for i, c in enumerate(CLASSES[:4])
                ],
            },
        },
        "galleries": {
            "saliency": {
                "title": "Where it looks",
                "split": True,
                "shown": 5,
                "items": [
                    {"image": p, "of": n, "caption": n, "badge": verdicts[n], "alt": f"saliency of {n}"}
                    for p, n in zip(overlays, shown)
                ],
            },
            "retrieval": {
                "title": "Nearest images",
                "layout": "rows",
                "items": [
                    {
                        "image": images[(3 * q + k * (1 + q % 2) * (1 + int(alpha))) % 12],
                        "row": f"query {q}",
                        "caption": f"image {q}.{k}",
                        "badge": "query" if k == 0 else "same",
                        "alt": f"neighbour {k} of query {q}",
                    }
                    for q in range(3)
                    for k in range(4)
                ],
            },
        },
        "data": {
            "train": {"count": 3},
            "test": [{"count": 4, "skipped": [{"path": HOSTILE, "why": "broken"}]}],
        },
        "command": f"cuewise audit runs/{name}",
    }
