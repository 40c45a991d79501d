"""Audits of scenes and objects: norms against counts, distances of objects out of context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cuewise import audit, pretrain
from cuewise.audits.context import chance_of
from cuewise.audits.rank_statistics import auroc, rank_correlation, spearman

pytestmark = pytest.mark.slow

SCENES = "shapes:scenes?n=120&size=32&objects=4&odd=0.5&part=test"


def test_rank_statistics_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=60).round(1), rng.integers(0, 4, 60)
    assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert auroc(a, b > 1) == pytest.approx(
        stats.mannwhitneyu(a[b > 1], a[b <= 1]).statistic / ((b > 1).sum() * (b <= 1).sum())
    )
    assert np.isnan(auroc(a, b > 9))
    score = spearman("rho", np.arange(50.0), np.arange(50) // 10, "p", 0)
    assert score.low <= score.value <= score.high
    assert score.value == pytest.approx(stats.spearmanr(np.arange(50), np.arange(50) // 10).statistic)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hcl") / "run"
    pretrain(
        "shapes:scenes?n=32&size=32&objects=4",
        out=str(out),
        method="hcl",
        model="cuewise/resnet-tiny?width=8",
        size=32,
        batch_size=8,
        epochs=1,
        workers="0",
        set=["hcl.queue=32", "hcl.dim=16", "hcl.smallest=5"],
    )
    return out


@pytest.mark.parametrize("model", ["run", "cuewise/resnet-tiny?width=8"])
def test_scenes_are_audited(model: str, run: Path, tmp_path: Path) -> None:
    name = str(run) if model == "run" else model
    found: dict[str, Any] = audit(
        name, test=[SCENES], only=["uncertainty", "context"], out=str(tmp_path / "a"), size=32, limit=60
    )
    scores = {s["name"]: s for s in found["scores"]}
    rho = next(s for n, s in scores.items() if n.startswith("uncertainty/rho/"))
    assert -1 <= rho["low"] <= rho["value"] <= rho["high"] <= 1
    assert rho["n"] == 120
    where = "projector, curvature 0.05" if model == "run" else "features"
    assert where in rho["protocol"]
    area = next(s for n, s in scores.items() if n.startswith("context/auroc/"))
    assert 0 <= area["low"] <= area["value"] <= area["high"] <= 1
    assert (tmp_path / "a" / "report.html").is_file()


def test_chance_of_average_precision_is_that_of_a_random_order() -> None:
    from cuewise.audits.context import Objects

    n = 400
    out = np.arange(4 * n) % 4 == 0
    found = Objects(np.arange(4 * n) // 4, np.arange(4 * n) % 4, np.zeros(4 * n), out)
    judged = [np.arange(4 * i, 4 * i + 4) for i in range(n)]
    assert chance_of(found, judged) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, abs=0.01)
