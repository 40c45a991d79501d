"""`cuewise tune`: from a model with weights and a classifier to a run with both, guarded and watched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
import yaml
from PIL import Image
from safetensors.torch import load_file, save_file

import cuewise
from cuewise.audits import watch
from cuewise.encoders.libraries import build
from cuewise.encoders.load import load_encoder, load_whole, save_encoder
from cuewise.errors import UserError
from cuewise.train.log import read_metrics
from cuewise.train.tune import preset

pytestmark = pytest.mark.slow

SIZE = 16
QUICK = ["tune.images=0"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small timm model for small images, with a classifier of 1000 outputs."""
    torch.manual_seed(0)
    file = tmp_path_factory.mktemp("weights") / "encoder.safetensors"
    save_encoder(build("timm/cuewise_resnet_tiny", size=SIZE, head=True, outputs=1000), file, step=1)
    return str(file)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 images of each of two classes, named by the classifier's outputs."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for label in ("3", "7"):
        (folder / label).mkdir()
        for i in range(16):
            image = rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
            Image.fromarray(image).save(folder / label / f"{i}.png")
    return folder


def tune(model: str, photos: Path, out: Path, **options: Any) -> dict[str, Any]:
    how: dict[str, Any] = {"size": SIZE, "batch_size": 8, "workers": "0", "report": False, "set": QUICK}
    return cuewise.tune(model, photos, out=out, **{**how, **options})


@pytest.fixture(scope="module")
def run(model: str, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "tuned"
    tune(model, photos, out, val=photos, watch="accuracy,shape_bias", watch_every=0.5, report=True)
    return out


def test_the_file_loads_in_timm_with_its_outputs(run: Path, model: str) -> None:
    net = timm.create_model("cuewise_resnet_tiny", num_classes=1000).eval()
    net.load_state_dict(load_file(run / "encoder.safetensors"))  # strict
    x = torch.randn(2, 3, SIZE, SIZE)
    whole, start = load_whole(str(run)), load_whole(model)
    assert torch.allclose(net(x), whole.logits(x), atol=1e-5)
    assert torch.equal(whole.head.weight, start.head.weight)  # type: ignore[union-attr]
    assert not torch.allclose(whole(x), start(x))
    card = json.loads((run / "encoder.json").read_text())
    assert card["outputs"] == 1000
    assert card["size"] == start.card.size
    assert card["method"] == "tune"
    assert load_encoder(str(run)).head is None


def test_the_report_has_both_models_paired(run: Path) -> None:
    found = json.loads((run / "before_after.json").read_text())
    assert found["comparison"]["columns"] == ["score", "before", "after"]
    names = [row[0] for row in found["comparison"]["rows"]]
    assert "shape_bias" in names
    page = (run / "report.html").read_text()
    assert "before and after tuning" in page
    for name in ("before", "after"):
        document = json.loads((run / "audits" / name / "audit.json").read_text())
        assert document["model"]["answers"] == "its own classifier"


def test_guard_and_watch_are_in_the_metrics(run: Path) -> None:
    rows = read_metrics(run / "metrics.jsonl")
    watched = [r for r in rows if "watch/shape_bias" in r]
    assert [r["step"] for r in watched] == [0, 2, 4]
    guarded = [r for r in rows if "guard/accuracy" in r]
    assert guarded[0]["guard/drop"] == 0
    assert guarded[0]["guard/agreement"] == 1
    assert guarded[0]["guard/alignment"] == pytest.approx(1, abs=1e-5)
    assert (run / "best.safetensors").is_file()
    assert load_whole(str(run / "best.safetensors")).head is not None
    said = (run / "train.log").read_text()
    assert "--val: 32 of 32 test images are training images" in said
    assert said.count("--watch shape_bias: only") == 1  # of a few images made for the purpose


def test_watching_asks_the_stimuli_that_are_given(
    model: str, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stimuli, rng = tmp_path / "stimuli", np.random.default_rng(1)
    for a, b in (("3", "7"), ("7", "3")):
        (stimuli / a).mkdir(parents=True)
        for i in range(20):
            image = Image.fromarray(rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8))
            image.save(stimuli / a / f"{a}_{i}-{b}_{i}.png")
    names, scores = [f"conflict={stimuli}"], []
    asked = watch.look
    monkeypatch.setattr(watch, "look", lambda *a: scores.append(asked(*a)) or scores[-1])
    out = tmp_path / "run"
    tune(model, photos, out, val=photos, watch="shape_bias", test=names, steps=1)
    assert scores[0]
    assert "stimuli" in scores[0][0].protocol


def test_presets() -> None:
    assert preset("texture")["negatives"] == ["patch"]
    both = preset("texture,color")
    assert both["views"]["gray_p"] > 0
    assert both["views"]["style_p"] == 1
    assert "negatives" not in preset("color")
    assert preset("none") == {}
    with pytest.raises(UserError, match="there are texture, color, none"):
        preset("shape")


def test_options_reach_the_run(run: Path, model: str, photos: Path, tmp_path: Path) -> None:
    written = yaml.safe_load((run / "config.yaml").read_text())
    assert written["method"] == "tune"
    assert written["negatives"] == ["patch"]
    assert written["epochs"] == 1
    assert written["optim"]["layer_decay"] == 1.0
    assert written["optim"]["head_warmup"] == 0.0
    out = tmp_path / "own"
    tune(model, photos, out, away="color", keep=0.5, layers="last:1", steps=1, set=["tune.images=8"])
    own = yaml.safe_load((out / "config.yaml").read_text())
    assert own["negatives"] == []
    assert own["tune"]["keep"] == 0.5
    before, after = load_whole(model).backbone.state_dict(), load_file(out / "encoder.safetensors")
    moved = {k.split(".")[0] for k, v in before.items() if not torch.equal(v, after[k])}
    assert moved == {"layer4"}


def test_a_run_that_was_stopped_continues_exactly_and_watching_changes_nothing(
    run: Path, model: str, photos: Path, tmp_path: Path
) -> None:
    for name, steps in (("whole", [None]), ("parts", [2, None])):
        for number in steps:
            tune(model, photos, tmp_path / name, steps=number, resume=number is None and len(steps) > 1)
    whole, *others = (
        load_file(f / "encoder.safetensors") for f in (tmp_path / "whole", tmp_path / "parts", run)
    )
    assert all(torch.equal(v, other[k]) for other in others for k, v in whole.items())


def test_a_destroyed_model_is_noticed_and_the_run_can_stop(
    model: str, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rate that ruins the features: the guard warns, and --stop-on-drop leaves the start as the encoder."""
    out = tmp_path / "ruined"
    ruin = [*QUICK, "optim.lr=1.0"]
    tune(model, photos, out, watch_every=0.25, stop_on_drop=True, set=ruin, steps=4)
    assert "warning: the features drift" in capsys.readouterr().err
    assert read_metrics(out / "metrics.jsonl")[-1]["step"] < 4
    kept, start = load_file(out / "encoder.safetensors"), load_whole(model).whole_state()
    assert all(torch.equal(v, kept[k]) for k, v in start.items())


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"model": "cuewise/resnet-tiny?width=8"}, "has no weights"),
        ({"away": "shape"}, "there are texture"),
        ({"watch": "accuracy"}, "give --val"),
        ({"log": "wandb"}, "cuewise\\[wandb\\]"),
        ({"log": "paper"}, "there is no"),
        ({"set": ["method=moco"]}, "has a fixed method"),
        ({"test": "conflict=nowhere.zip"}, "--test is for the report and for --watch"),
        ({"stop_on_drop": True, "max_drop": 0}, "needs a --max-drop above 0"),
        ({"away": "none"}, "--away none turns no cue: add a dial"),
        ({"layers": "head"}, "no parameters there"),
        ({"photos": Path("nowhere")}, "nowhere"),
    ],
)
def test_bad_input_is_one_line(
    model: str, photos: Path, tmp_path: Path, how: dict[str, Any], words: str
) -> None:
    how = dict(how)
    with pytest.raises(UserError, match=words) as error:
        tune(how.pop("model", model), how.pop("photos", photos), tmp_path / "out", **how)
    assert "\n" not in str(error.value)


def test_a_classifier_that_does_not_fit_is_refused(photos: Path, tmp_path: Path) -> None:
    net = timm.create_model("cuewise_resnet_tiny", num_classes=5)
    state = net.state_dict() | {"fc.weight": torch.zeros(5, 99)}
    save_file(state, str(tmp_path / "odd.safetensors"))
    with pytest.raises(UserError, match=r"classifier in .* does not fit"):
        tune(f"timm/cuewise_resnet_tiny:{tmp_path / 'odd.safetensors'}", photos, tmp_path / "out")


def test_continued_pretraining_warms_up_its_heads_and_is_guarded(
    model: str, photos: Path, tmp_path: Path
) -> None:
    how = {"model": model, "size": SIZE, "batch_size": 8, "epochs": 1, "workers": "0", "val": photos}
    warm = ["optim.head_warmup=0.9", "moco.queue=16"]
    cuewise.pretrain(photos, out=tmp_path / "run", set=warm, steps=2, **how)
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert written["optim"]["layer_decay"] == 0.8
    start, now = load_encoder(model).backbone, load_encoder(str(tmp_path / "run")).backbone
    assert all(torch.equal(a, b) for a, b in zip(start.parameters(), now.parameters()))
    assert any("guard/accuracy" in r for r in read_metrics(tmp_path / "run" / "metrics.jsonl"))
    with pytest.raises(UserError, match="for a model that brings weights"):
        cuewise.pretrain(
            photos, out=tmp_path / "none", max_drop=2, **{**how, "model": "cuewise/resnet-tiny?width=8"}
        )
