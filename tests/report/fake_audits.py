"""Realistic audit documents: two runs that differ in one dial, with pictures on disk, curves and decisions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cuewise.scores import mean, proportion

HOSTILE = "<img src=x onerror=alert(1)>.jpg"
CLASSES = ("anchor", "bell", "cat", "fish", "house", "key", "leaf", "star")
CORRUPTIONS = (
    "gaussian noise",
    "shot noise",
    "defocus blur",
    "motion blur",
    "fog",
    "snow",
    "contrast",
    "jpeg",
)
PROTOCOL = "shapes:conflict, linear probe on shapes (L-BFGS, standardised features), 64 px"


def draw(folder: Path, rng: np.random.Generator, count: int) -> list[str]:
    """Small images with an outline and a texture each, saved as PNG; returns paths relative to the folder's parent."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    y, x = np.mgrid[-1:1:64j, -1:1:64j]
    for i in range(count):
        stripes = np.sin((x * math.cos(i) + y * math.sin(i)) * (8 + 5 * (i % 4)))
        inside = x**2 + y**2 < 0.55 if i % 2 else np.maximum(abs(x), abs(y)) < 0.6
        colour = rng.integers(60, 230, size=3)
        image = np.where((inside & (stripes > 0))[..., None], colour, 245).astype(np.uint8)
        Image.fromarray(image).save(folder / f"{i}.png")
        names.append(f"{folder.name}/{i}.png")
    return names


def decisions(rng: np.random.Generator, bias: float, count: int = 400) -> list[list[str]]:
    """image, shape, texture, response rows in which `bias` of the decided images follow shape."""
    rows = []
    for i in range(count):
        shape, texture = CLASSES[i % 8], CLASSES[(i // 8 + i % 8 + 1) % 8]
        u = rng.random()
        response = CLASSES[(i + 5) % 8] if u > 0.85 else shape if u < 0.85 * bias else texture
        rows.append([f"{shape}{i}-{texture}.png", shape, texture, response])
    return rows


def count_scores(rows: list[list[str]], protocol: str) -> list[dict[str, Any]]:
    """Shape bias and the two accuracies from decisions."""
    real = [r for r in rows if r[1] != r[2]]
    by_shape, by_texture = (sum(r[3] == r[k] for r in real) for k in (1, 2))
    return [
        proportion("shape_bias", by_shape, by_shape + by_texture, protocol).as_dict(),
        proportion("shape_accuracy", by_shape, len(real), protocol).as_dict(),
        proportion("texture_accuracy", by_texture, len(real), protocol).as_dict(),
    ]


def document(name: str, alpha: float, bias: float, root: Path, seed: int) -> dict[str, Any]:
    """An audit of one run; `bias` is how often it follows shape."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(0)
    rows = decisions(rng, bias)
    images = draw(root / "pictures", fixed, 12)
    knn = proportion(
        "knn/photos", int(820 - 40 * alpha + 10 * seed), 1000, "k = 20, t = 0.07, cosine, shapes test split"
    )
    linear = proportion(
        "linear/photos", int(900 + 3 * seed), 1000, "L-BFGS, L2 chosen on a held-out tenth, shapes test split"
    )
    similarity = mean(
        "negative_similarity", rng.normal(0.7 - 0.3 * alpha, 0.1, 500), "patch negatives, key encoder"
    )
    accuracy = np.clip(rng.normal(0.6 + bias / 6, 0.1, len(CORRUPTIONS)), 0, 1)
    edges = np.linspace(-1, 1, 41)
    counts = np.histogram(np.clip(rng.normal(0.5 - 0.3 * alpha, 0.15, 2000), -1, 1), edges)[0]
    per_class = np.clip(rng.normal(bias, 0.12, len(CLASSES)), 0.02, 0.98)
    badges = [
        "shape" if rng.random() < bias else "texture" if rng.random() < 0.8 else "other" for _ in images
    ]
    return {
        "cuewise": "0.1.0",
        "model": {
            "name": name,
            "arch": "cuewise/resnet-tiny",
            "size": 64,
            "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.25, 0.25],
            "method": "moco",
            "cues": {"negatives": ["patch"], "alpha": alpha},
            "parameters": 1_234_567,
            "run": f"runs/{name}",
        },
        "scores": [*count_scores(rows, PROTOCOL), knn.as_dict(), linear.as_dict(), similarity.as_dict()],
        "tables": {
            "shape_bias/decisions": {
                "title": "Decisions on cue-conflict images",
                "columns": ["image", "shape", "texture", "response"],
                "rows": rows,
            },
            "shape_bias/classes": {
                "title": "Shape bias by class",
                "columns": ["class", "shape bias", "n"],
                "rows": [[c, float(v), 50] for c, v in zip(CLASSES, per_class)],
            },
        },
        "figures": {
            "shape_bias/classes": {
                "title": "Shape bias by class",
                "kind": "bars",
                "xlabel": "class",
                "ylabel": "shape bias",
                "series": [
                    {
                        "name": "shape bias",
                        "x": list(CLASSES),
                        "y": per_class.tolist(),
                        "low": (per_class * 0.85).tolist(),
                        "high": np.minimum(1, per_class * 1.12).tolist(),
                    }
                ],
            },
            "corruption": {
                "title": "Accuracy under corruption",
                "kind": "bars",
                "xlabel": "corruption",
                "ylabel": "top-1 accuracy",
                "series": [{"name": "accuracy", "x": list(CORRUPTIONS), "y": accuracy.tolist()}],
            },
            "frequency": {
                "title": "Accuracy after a low-pass filter",
                "kind": "lines",
                "xlabel": "cut-off (cycles per image)",
                "ylabel": "top-1 accuracy",
                "series": [
                    {
                        "name": "accuracy",
                        "x": [2, 4, 8, 16, 24, 32],
                        "y": [0.2, 0.35, 0.55 + 0.1 * bias, 0.74, 0.8, 0.82],
                        "low": [0.17, 0.31, 0.51, 0.7, 0.77, 0.79],
                        "high": [0.23, 0.39, 0.66, 0.78, 0.83, 0.85],
                    }
                ],
            },
            "similarity": {
                "title": "Similarity to patch negatives",
                "kind": "histogram",
                "xlabel": "cosine similarity",
                "ylabel": "pairs",
                "series": [{"name": "patch", "x": edges.tolist(), "y": counts.tolist()}],
            },
            "confidence": {
                "title": "Confidence and accuracy",
                "kind": "scatter",
                "xlabel": "mean confidence",
                "ylabel": "accuracy",
                "series": [
                    {"name": "class", "x": rng.uniform(0.4, 0.95, 8).tolist(), "y": per_class.tolist()}
                ],
            },
        },
        "galleries": {
            "conflicts": {
                "title": "Cue conflicts and what the model decided",
                "items": [
                    {
                        "image": p,
                        "caption": f"{CLASSES[i % 8]} outline, {CLASSES[(i + 3) % 8]} texture",
                        "badge": badges[i],
                        "alt": f"A {CLASSES[i % 8]} filled with the texture of a {CLASSES[(i + 3) % 8]}",
                    }
                    for i, p in enumerate(images)
                ],
            },
        },
        "data": {
            "train": {"count": 8000, "hash": "5b2fd1c0a9", "sources": ["shapes"], "skipped": []},
            "test": [
                {
                    "count": 400,
                    "hash": "c91d7e22f0",
                    "sources": ["shapes:conflict"],
                    "skipped": [{"path": "fish/broken 1.jpg", "why": "truncated"}],
                }
            ],
        },
        "environment": {
            "python": "3.11.9",
            "torch": "2.7.0",
            "machine": {"cpu": "x86_64", "cores": 2},
            "git": None,
        },
        "command": f"cuewise audit runs/{name} --train shapes --test shapes:conflict --out audits/{name}",
    }


def metrics(alpha: float, seed: int, steps: int = 900) -> list[dict[str, Any]]:
    """Rows of metrics.jsonl, with k-NN accuracy now and then."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for step in range(0, steps, 2):
        t = step / steps
        row = {
            "step": step,
            "epoch": step // 90,
            "train/loss": 7.2 - 3 * (1 - math.exp(-4 * t)) + rng.normal(0, 0.06),
            "lr": 0.03 * math.cos(t * 1.57),
            "train/images_per_s": 800 + rng.normal(0, 20),
            "train/data_wait": abs(rng.normal(0.02, 0.01)),
            "dials/feature_std": 0.088 * (1 - math.exp(-6 * t)),
            "dials/effective_rank": 60 * (1 - math.exp(-3 * t)) + 4,
            "dials/negative_similarity": 0.9 - (0.2 + 0.25 * alpha) * t + rng.normal(0, 0.01),
        }
        if step % 90 == 0:
            row["val/knn"] = 0.3 + 0.5 * t
        rows.append(row)
    return rows


def two_runs(tmp_path: Path) -> dict[str, Any]:
    """Arguments of write_report for the demo's story: plain (α = 0) and texture-averse (α = 2)."""
    roots = [tmp_path / "plain", tmp_path / "averse"]
    documents = [document("plain", 0, 0.34, roots[0], 1), document("texture-averse", 2, 0.66, roots[1], 2)]
    view = np.random.default_rng(3).integers(0, 255, (12, 24, 3), dtype=np.uint8).repeat(32, 0).repeat(32, 1)
    return {
        "documents": documents,
        "folder": tmp_path / "report",
        "curves": {"plain": metrics(0, 1), "texture-averse": metrics(2, 2)},
        "pictures": {"plain": view, "texture-averse": view[:, ::-1]},
        "roots": roots,
    }
