"""Label correction from end to end: two phases, resumed exactly, gold and silver in forwards of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import yaml

from cuewise import UserError, load_encoder, open_data, pretrain
from cuewise.config import merge, resolve
from cuewise.data import Batch
from cuewise.encoders.embed import embed_dataset
from cuewise.encoders.heads import unit
from cuewise.methods import Method, MethodSettings, Step
from cuewise.methods.supervised import Supervised
from cuewise.objectives.corrected import corrected_cross_entropy
from cuewise.probes.finetune_task import learned_classifier
from cuewise.train.labels import source_of, with_labels
from cuewise.train.log import read_metrics
from cuewise.train.reload import load_method
from tests.methods.conftest import small_batch, small_method

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {
    "method": "supervised",
    "model": "cuewise/resnet-tiny?width=8",
    "size": 16,
    "batch_size": 12,
    "epochs": 2,
    "workers": "0",
}
SET: dict[str, Any] = {
    "labels": {"noise": 0.5, "gold": 0.25, "correction": "glc"},
    "loop": {"log_every": 1},
    "views": {"scale": [0.5, 1.0]},
}


def run(folder: Path, out: Path, labels: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    asked = {**SET, "labels": {**SET["labels"], **(labels or {})}}
    return pretrain(str(folder), out=str(out), set=asked, **{**OPTIONS, **options})


def losses(out: Path) -> list[float]:
    return [r["train/loss"] for r in read_metrics(out / "metrics.jsonl") if "train/loss" in r]


def weights(out: Path) -> torch.Tensor:
    return torch.cat([v.flatten().double() for v in load_encoder(str(out)).backbone.state_dict().values()])


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("glc") / "run"
    found = run(folder, out, val=[str(folder)])
    assert found["steps"] == 6 + 8  # 36 silver images, then all 48
    return out


def test_what_the_run_leaves(whole: Path, folder: Path) -> None:
    found = json.loads((whole / "confusion.json").read_text())
    estimated, true = np.array(found["estimated"]), np.array(found["true"])
    assert estimated.shape == true.shape == (3, 3)
    np.testing.assert_allclose(estimated.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(true.sum(1), 1, atol=1e-5)
    assert found["images"] == 12
    assert found["mean_error"] == pytest.approx(np.abs(estimated - true).mean(), abs=1e-6)
    assert (whole / "confusion.png").is_file()
    method = load_method(whole)
    assert isinstance(method, Supervised)
    torch.testing.assert_close(method.confusion, torch.tensor(found["estimated"]))
    row = [r for r in read_metrics(whole / "metrics.jsonl") if "val/accuracy" in r][-1]
    assert row["val/accuracy_low"] <= row["val/accuracy"] <= row["val/accuracy_high"]
    said = (whole / "train.log").read_text()
    assert "12 trusted (gold), 36 others (silver)" in said
    assert "has 4 trusted images: its row of the confusion matrix is unreliable" in said


def test_the_confusion_is_the_first_phases_answer_on_plain_trusted_images(whole: Path, folder: Path) -> None:
    config = resolve(yaml.safe_load((whole / "config.yaml").read_text()))
    data = with_labels(config, open_data(str(folder)))
    source = source_of(data)
    assert source is not None
    first = load_method(whole / "phase1")
    assert isinstance(first, Supervised)
    gold = open_data(str(folder)).select(source.trusted)
    found = embed_dataset(first.encoder, gold, label=None)
    with torch.no_grad():
        p = first.classifier(torch.from_numpy(found.features)).softmax(1).numpy()
    estimated = json.loads((whole / "confusion.json").read_text())["estimated"]
    for k in range(3):
        np.testing.assert_allclose(estimated[k], p[found.labels == k].mean(0), atol=1e-5)


@pytest.mark.parametrize("stop", [2, 6, 9])
def test_resumes_to_the_bit_in_either_phase(whole: Path, folder: Path, tmp_path: Path, stop: int) -> None:
    out = tmp_path / "run"
    run(folder, out, steps=stop)
    assert (out / "encoder.safetensors").exists() == (stop > 6)
    run(folder, out, resume=True)
    assert losses(out / "phase1") == losses(whole / "phase1")
    assert losses(out) == losses(whole)
    assert (out / "confusion.json").read_bytes() == (whole / "confusion.json").read_bytes()
    assert torch.equal(weights(out), weights(whole))


def test_its_config_repeats_the_run_and_each_phase(whole: Path, folder: Path, tmp_path: Path) -> None:
    pretrain(config=str(whole / "config.yaml"), out=str(tmp_path / "again"))
    assert losses(tmp_path / "again") == losses(whole)
    pretrain(config=str(whole / "phase1" / "config.yaml"), out=str(tmp_path / "first"))
    assert losses(tmp_path / "first") == losses(whole / "phase1")


def test_the_second_phase_starts_from_new_weights_or_from_the_same(folder: Path, tmp_path: Path) -> None:
    starts = {}
    for restart in ("new", "same"):
        out = tmp_path / restart
        run(folder, out, {"restart": restart}, steps=7)
        first = pretrain_start(folder, tmp_path / f"{restart}-first", out / "phase1" / "config.yaml")
        second = pretrain_start(
            folder, tmp_path / f"{restart}-second", out / "config.yaml", correction="none"
        )
        starts[restart] = torch.equal(first, second)
    assert starts == {"new": False, "same": True}


def pretrain_start(folder: Path, out: Path, config: Path, correction: str = "none") -> torch.Tensor:
    """Convolutions after one step at a rate of zero: as they were drawn."""
    asked = {
        "labels": {"correction": correction, "restart": None},
        "optim": {"lr": 1e-12, "weight_decay": 0.0},
    }
    settings = yaml.safe_load(config.read_text())
    settings = {
        **settings,
        "labels": {**settings["labels"], **asked["labels"]},
        "optim": {**settings["optim"], **asked["optim"]},
    }
    path = out.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(settings))
    pretrain(config=str(path), out=str(out), steps=1)
    return load_encoder(str(out)).backbone.state_dict()["layer4.0.conv2.weight"]


def test_forward_correction_needs_no_trusted_image(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "run", {"gold": None, "correction": "forward"})
    found = json.loads((tmp_path / "run" / "confusion.json").read_text())
    assert found["images"] == 48
    assert len(losses(tmp_path / "run")) == len(losses(tmp_path / "run" / "phase1")) == 8


def test_the_users_own_noisy_labels(folder: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("".join(f"{name}/{name} {i}.jpg\n" for name in ("ant", "bee", "cat") for i in range(5)))
    run(folder, tmp_path / "run", {"noise": 0.0, "gold": str(gold)})
    found = json.loads((tmp_path / "run" / "confusion.json").read_text())
    assert found["true"] is None
    assert found["images"] == 15
    assert "were made wrong" in (tmp_path / "run" / "train.log").read_text()
    gold.write_text("ant/ant 0.jpg\nbee/bee 1.jpg\n")
    with pytest.raises(UserError, match=r"no trusted image of 1 classes \(cat\)"):
        run(folder, tmp_path / "other", {"noise": 0.0, "gold": str(gold)})
    assert not (tmp_path / "other").exists()


def test_gold_and_silver_have_batch_statistics_of_their_own() -> None:
    m = small_method("supervised", correction="glc").train()
    batch = small_batch(m)
    gold = batch.facts["trusted"]
    assert 2 <= int(gold.sum()) <= 6
    m.confusion.copy_(torch.rand(4, 4).softmax(1))  # type: ignore[operator]
    x, y = batch.views["query"], batch.label
    with torch.no_grad():
        z = {s: m.classifier(m.encoder(x[s == gold])) for s in (True, False)}  # type: ignore[operator]
        total = F.cross_entropy(z[True], y[gold], reduction="sum")
        total += corrected_cross_entropy(z[False], y[~gold], m.confusion).sum()  # type: ignore[arg-type]
        assert float(m(batch).loss) == pytest.approx(float(total) / len(y), rel=1e-5)
        together = m.encoder(x)
    assert not torch.allclose(m.by_side(x, gold), together, atol=1e-3)  # type: ignore[operator]
    for one in (torch.zeros(8, dtype=torch.bool), torch.arange(8) == 3):  # no statistics of one image
        assert torch.allclose(m.by_side(x, one), m.encoder(x), atol=1e-5)  # type: ignore[operator]


def test_what_has_no_meaning_is_refused() -> None:
    for labels, words in (
        ({"correction": "glc"}, "needs trusted labels"),
        ({"noise": 1.5}, "a share, from 0 to 1"),
        ({"gold": 1.0, "noise": 0.5}, "above 0 and below 1"),
        ({"correction": "magic"}, "there are none, glc, forward"),
        ({"gold": 0.1}, "changes nothing by itself"),
        ({"restart": "same", "noise": 0.5}, "second phase"),
        ({"use": "gold"}, "there is no labels.gold"),
        ({"use": "gold", "gold": 0.1, "correction": "glc"}, "a correction uses all images"),
        ({"seed": 3}, "give one of them"),
        ({"restart": "old", "gold": 0.1, "correction": "glc"}, "there are new, same"),
    ):
        with pytest.raises(UserError, match=words):
            resolve({"method": "supervised", "labels": labels})
    with pytest.raises(UserError, match="has no meaning for moco"):
        resolve({"labels": {"noise": 0.5}})
    with pytest.raises(UserError, match="leave one of them out"):
        resolve(
            {
                "method": "supervised",
                "supervised": {"smoothing": 0.1},
                "labels": {"gold": 0.1, "correction": "glc"},
            }
        )


def test_extend_is_refused(whole: Path, folder: Path) -> None:
    with pytest.raises(UserError, match="both phases must have the same length"):
        run(folder, whole, resume=True, extend=True, epochs=3)


def test_copies_by_another_name_are_prominent(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for name in ("ant", "bee", "cat"):
        (other / name).mkdir(parents=True)
        for i in range(6):
            (other / name / f"filtered {i}.jpg").write_bytes((folder / name / f"{name} {i}.jpg").read_bytes())
    out = tmp_path / "run"
    asked = merge(SET, {"labels": {"correction": "none"}})
    pretrain(str(folder), str(other), out=str(out), set=asked, steps=1, **OPTIONS)
    assert "the right labels leak" in (out / "train.log").read_text()


def test_the_network_of_the_papers() -> None:
    encoder = load_encoder("cuewise/wrn40-2", size=32)
    assert sum(p.numel() for p in encoder.backbone.parameters()) == 2_243_546 - (
        128 * 10 + 10
    )  # with 10 classes: 2.2 M
    assert encoder.dim == 128
    assert encoder.card.mean == (0.5, 0.5, 0.5)
    assert encoder.feature_map(torch.zeros(1, 3, 32, 32)).shape == (1, 128, 8, 8)
    dropouts = [m.p for m in encoder.backbone.modules() if isinstance(m, torch.nn.Dropout)]
    assert dropouts == [0.3] * 18
    with pytest.raises(UserError, match="dropout 1"):
        load_encoder("cuewise/wrn40-2?dropout=1")


class Outside(Method):
    """Cross-entropy by a method that cuewise does not know; keeps the confusion it is given."""

    name, summary, citation = "outside", "cross-entropy, from outside", "none"
    views = {"query": "supervised"}
    optim = {"name": "sgd", "lr": 0.1, "reference_batch": 256}
    Settings = MethodSettings
    needs = ("label",)
    takes_labels = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.answer = torch.nn.Linear(self.encoder.dim, self.setup.classes)
        self.register_buffer("given", torch.eye(self.setup.classes))

    def own_classifier(self) -> torch.nn.Module:
        return self.answer

    def take_confusion(self, confusion: torch.Tensor) -> None:
        self.get_buffer("given").copy_(confusion)

    def forward(self, batch: Batch) -> Step:
        h = self.encoder(batch.views["query"])
        return Step(F.cross_entropy(self.answer(h), batch.label), unit(h.detach()))


class Uncorrected(Outside):
    name, summary = "uncorrected", "takes labels.*, but no confusion"
    take_confusion = Method.take_confusion


def test_a_method_from_outside_gets_its_confusion(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "run", method=f"{__name__}:Outside")
    estimated = json.loads((tmp_path / "run" / "confusion.json").read_text())["estimated"]
    method = load_method(tmp_path / "run")
    torch.testing.assert_close(method.get_buffer("given"), torch.tensor(estimated))
    assert not torch.equal(method.get_buffer("given"), torch.eye(3))
    head, _ = learned_classifier(tmp_path / "run", ("ant", "bee", "cat"))
    assert head is not None
    assert torch.equal(head.weight, method.answer.weight)  # type: ignore[union-attr,arg-type]
    assert learned_classifier(tmp_path / "run", ("ant", "bee")) == (
        None,
        "the run was trained on other classes",
    )


def test_a_correction_that_the_method_would_ignore_is_refused() -> None:
    labels = {"labels": {"noise": 0.5, "gold": 0.25, "correction": "glc"}}
    with pytest.raises(UserError, match="no meaning for uncorrected, which has no take_confusion"):
        resolve({"method": f"{__name__}:Uncorrected", **labels})
