"""Texture negatives from the shell's options to the losses, alone and with patches, in every method that takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuewise import UserError, make, pretrain
from cuewise.methods import methods
from cuewise.train.log import read_metrics
from cuewise.views.textures import folder as cache_folder

SMALL: dict[str, Any] = {
    "model": "cuewise/resnet-tiny?width=8",
    "size": 16,
    "batch_size": 8,
    "steps": 2,
    "workers": "0",
}
HEADS = {
    "moco": ["moco.queue=32", "moco.dim=16"],
    "simclr": ["simclr.hidden=16"],
    "byol": ["byol.hidden=16"],
}
TAKERS = sorted(name for name, m in methods().items() if "texture" in m.negative_kinds())


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    """16 of the photographs."""
    root = tmp_path_factory.mktemp("few")
    (root / "ant").symlink_to(folder / "ant")
    return root


def run(data: Path, out: Path, method: str = "moco", **options: Any) -> list[dict[str, Any]]:
    settings = [*HEADS.get(method, []), "loop.log_every=1"]
    if method == "can":
        options = {"model": "cuewise/vit-tiny?width=64&depth=1", **options}
    pretrain(str(data), out=str(out), method=method, set=settings, **{**SMALL, **options})
    return [r for r in read_metrics(out / "metrics.jsonl") if "train/loss" in r]


def losses(rows: list[dict[str, Any]]) -> list[float]:
    return [r["train/loss"] for r in rows]


@pytest.mark.slow
@pytest.mark.parametrize("method", TAKERS)
def test_alpha_zero_is_the_baseline_to_the_bit(few: Path, tmp_path: Path, method: str) -> None:
    """Off in both kinds; off in one of them is as if that one did not exist."""
    plain = run(few, tmp_path / "plain", method)
    off = run(few, tmp_path / "off", method, negatives=["texture"], alpha=[0.0])
    assert losses(off) == losses(plain)
    assert "dials/negative_similarity" not in off[0]
    patch = run(few, tmp_path / "patch", method, negatives=["patch"], alpha=[0.5])
    half = run(few, tmp_path / "half", method, negatives=["texture", "patch"], alpha=[0.0, 0.5])
    assert losses(half) == losses(patch)


@pytest.mark.slow
@pytest.mark.parametrize("method", TAKERS)
def test_both_kinds_several_each_with_their_own_weight(few: Path, tmp_path: Path, method: str) -> None:
    both = {"negatives": ["patch", "texture"], "num_negatives": 2}
    one = run(few, tmp_path / "one", method, alpha=[0.5, 0.25], **both)
    two = run(few, tmp_path / "two", method, alpha=[0.25, 0.5], **both)
    assert losses(one)[0] != losses(two)[0]
    assert "dials/negative_similarity" in one[0]
    assert (tmp_path / "one" / "views.png").stat().st_size > 0
    again = run(few, tmp_path / "again", method, alpha=[0.5, 0.25], **both, workers="1")
    assert losses(again) == losses(one)  # from the cache, in another process


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["in", "out"])
def test_a_made_set_in_both_modes(few: Path, tmp_path: Path, mode: str) -> None:
    make("texture", str(few), str(tmp_path / "made"), workers="0")
    used = {"negatives": ["texture"], "texture_data": [str(tmp_path / "made")], "alpha": [2.0]}
    before = set(cache_folder().rglob("*.png"))
    one = run(few, tmp_path / "one", alpha_mode=mode, **used)
    assert set(cache_folder().rglob("*.png")) == before  # nothing is synthesised
    plain = run(few, tmp_path / "plain")
    assert losses(one)[0] > losses(plain)[0]
    repeated = run(few, tmp_path / "repeated", config=str(tmp_path / "one" / "config.yaml"), method="moco")
    assert losses(repeated) == losses(one)


def test_mistakes_are_reported(few: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="add --negatives texture"):
        run(few, tmp_path / "run", negatives=["patch"], texture_data=["x"])
    with pytest.raises(UserError, match="has no meaning for supervised"):
        run(few, tmp_path / "run", "supervised", negatives=["texture"])
