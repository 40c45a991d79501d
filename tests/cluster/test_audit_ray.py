"""The Ray engine on a real local instance: the scores of the local engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cuewise import UserError, audit
from tests.audits.small_models import ENCODER, photos

pytestmark = pytest.mark.slow

ONLY = "accuracy,color,shape_bias,corruption"


@pytest.mark.cluster
def test_the_cluster_gives_the_same_scores(cluster: Any, tmp_path: Path) -> None:
    train, test = photos(tmp_path / "train", 4), photos(tmp_path / "set", 5, seed=1)
    (test / "bee" / "bee1.jpg").write_bytes((test / "bee" / "bee1.jpg").read_bytes()[:300])
    options: dict[str, Any] = {
        "train": [str(train)],
        "test": [str(test)],
        "only": ONLY,
        "size": 32,
        "limit": 6,
    }
    here = audit(ENCODER, out=str(tmp_path / "here"), workers="0", **options)
    there = audit(ENCODER, out=str(tmp_path / "there"), engine="ray", **options)
    assert there["scores"] == here["scores"]
    assert cluster.is_initialized()  # not ours to end


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'cuewise\[ray\]'"):
        audit(ENCODER, out=str(tmp_path / "a"), engine="ray", only="similarity", size=32)
