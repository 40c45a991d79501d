"""The demo in miniature: everything it promises, on a few images."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuewise import UserError
from cuewise import demo as verb
from cuewise.studies.labs import SHAPES
from cuewise.train.reload import progress_of


@pytest.mark.slow
@pytest.mark.usefixtures("warm_start")
def test_demo_in_miniature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib

    story = importlib.import_module("cuewise.story")
    small = {
        "data": ["shapes:aligned?rho=1&n=64&part=train&size=32"],
        "size": 16,
        "epochs": 1,
        "batch_size": 32,
    }
    arms, seed = story.arms, 0

    def tiny(place: Path, _seed: int = 0) -> dict[str, dict[str, Any]]:
        found = {name: {**c, **small} for name, c in arms(place, seed).items()}
        found["plain"]["model"] = "cuewise/resnet-tiny?width=8"
        return found

    monkeypatch.setattr(story, "arms", tiny)
    monkeypatch.setattr(story, "MOST_THREADS", 1)
    monkeypatch.setattr(story, "LIMIT", 16)
    monkeypatch.setattr(story, "SHAPES", replace(SHAPES, sets={"probe": [*small["data"]]}))
    result = verb(out=str(tmp_path / "demo"))
    page = Path(result["report"]).read_text(encoding="utf-8")
    assert "plain" in page
    assert "texture-averse" in page
    for name in ("plain", "texture-averse"):
        done, total = progress_of(tmp_path / "demo" / name)
        assert done == total == 2
        document = json.loads((tmp_path / "demo" / "audit" / name / "audit.json").read_text())
        found = {s["name"] for s in document["scores"]}
        assert {
            "shape_bias",
            "shape_accuracy",
            "texture_accuracy",
            "similarity/patch",
            "knn/shapes",
            "linear/shapes",
        } <= found
        assert (tmp_path / "demo" / name / "MODEL_CARD.md").is_file()
    capsys.readouterr()
    verb(out=str(tmp_path / "demo"))  # again: nothing is trained twice
    said = capsys.readouterr().err
    assert "pretraining" not in said
    assert "tuning" not in said
    # a run of other settings is not lost
    seed = 5
    before = (tmp_path / "demo" / "plain" / "encoder.safetensors").read_bytes()
    with pytest.raises(UserError, match="plain holds another run; name another --out, or --overwrite"):
        verb(out=str(tmp_path / "demo"))
    assert (tmp_path / "demo" / "plain" / "encoder.safetensors").read_bytes() == before
