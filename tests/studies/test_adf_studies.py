"""The studies of texture suppression: every arm can be trained, and what they measure is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cuewise
from cuewise.audits.gradcam import grad_cam
from cuewise.config import merge, resolve
from cuewise.data import open_data
from cuewise.encoders import Encoder
from cuewise.errors import UserError
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.tunings import Tuning
from cuewise.studies import adf_filters, adf_jigsaw, adf_ssl, adf_stylised, adf_supervised
from cuewise.studies.jobs import job_of
from cuewise.studies.labs import PHOTOGRAPHS, SHAPES, Lab
from cuewise.studies.measures import TrainedArm, find_measure
from cuewise.studies.measures.suppression import TUNING, curve
from cuewise.studies.results import curves_of
from cuewise.studies.study import Study
from cuewise.studies.table import Table
from cuewise.train.reload import load_config, load_method
from cuewise.views import RECIPES, center
from tests.studies.tiny import LAB

pytestmark = pytest.mark.slow

MODULES = (adf_supervised, adf_filters, adf_ssl, adf_jigsaw, adf_stylised)
STUDIES = [m.STUDY for m in MODULES]
PHOTOS = replace(
    PHOTOGRAPHS,
    base={**PHOTOGRAPHS.base, "data": ["p"]},
    sets={"probe": ["p"], "clean": ["q"], "ood_train": ["p"], "ood/art": ["a"], "ood/sketch": ["s"]},
)
WIDE = {
    f"wide/{name}": [f"shapes:{split}?n=32&part=test&size=64"]
    for name, split in {
        "probe": "aligned",
        "clean": "aligned",
        "silhouette": "silhouette",
        "sketch": "sketch",
        "disjoint": "disjoint",
    }.items()
}
TINY = replace(
    LAB,
    base={**LAB.base, "optim": {"warmup_epochs": 0}},
    sets={**LAB.sets, **WIDE},
    filtered={"data": ["shapes:aligned?rho=1&n=64&size=64"], "views": {"gray_p": 0.2}},
)


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.name)
@pytest.mark.parametrize("lab", [SHAPES, PHOTOS], ids=lambda x: x.name)
def test_every_arm_is_a_configuration_with_the_same_steps(study: Study, lab: Lab) -> None:
    lab = replace(lab, generator="runs/G")
    arms = {a.name: resolve(lab.config(a.settings, a.method or lab.main, 0, 3)) for a in study.arms(lab)}
    assert len({tuple(c.data) for c in arms.values()}) == 1
    assert {c.epochs for c in arms.values()} == {3}
    assert {c.loop.budget for c in arms.values()} == {None}
    by_method: dict[str, set[int]] = {}
    for c in arms.values():
        by_method.setdefault(c.method, set()).add(c.batch_size)
    assert all(len(sizes) == 1 for sizes in by_method.values())
    for claim in study.claims:
        cells = {cell for d in claim.differences(lab) for cell in d.cells}
        assert {arm for arm, _ in cells} <= set(arms)
    assert {n for f in study.figures for names in f.groups(lab).values() for n in names} <= set(arms)


def trained(study: Study, name: str, place: Path, **more: object) -> TrainedArm:
    arm = next(a for a in study.arms(TINY) if a.name == name)
    config = merge(TINY.config(arm.settings, arm.method or "moco", 0, 1), {"batch_size": 32}, more)
    cuewise.pretrain(out=place / name.replace(" ", "-"), set=config)
    return TrainedArm(place / name.replace(" ", "-"), TINY)


def test_answers_before_and_after_fine_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "cuewise.studies.measures.suppression"
    monkeypatch.setattr(f"{where}.TUNING", replace(TUNING, iterations=2))
    monkeypatch.setattr(f"{where}.PART", 4)
    monkeypatch.setattr(f"{where}.SALIENT", 4)
    lab = replace(TINY, sets={**TINY.sets, "wide/clean": WIDE["wide/clean"]})
    arm = trained(adf_supervised.STUDY, adf_supervised.BOTH, tmp_path)
    arm.lab = lab
    asked: dict[str, Any] = {}

    class Noticed(FinetuneProbe):
        def __init__(self, encoder: Encoder, tuning: Tuning, **more: Any) -> None:
            asked.update(scale=tuning.scale, **more)
            super().__init__(encoder, tuning, **more)

    monkeypatch.setattr(f"{where}.FinetuneProbe", Noticed)
    found = find_measure("answers").take(arm)
    # fine-tuning continues the classifier that was trained, on crops like those that it was trained on
    assert torch.equal(asked["head"].weight, load_method(arm.folder).classifier.weight)  # type: ignore[arg-type,union-attr]
    assert asked["scale"] == tuple(load_config(arm.folder).views.scale or RECIPES["supervised"].scale)
    names = (
        "clean",
        "silhouette",
        "sketch",
        "disjoint",
        "texture_free",
        "lowpass",
        "noise",
        "weather",
        "saliency",
    )
    for when in ("before", "after"):
        assert {f"{when}/{n}" for n in names} <= set(found)
    assert all(0 <= v <= 1 for v in found.values())
    for when in ("before", "after"):
        free = (found[f"{when}/silhouette"] + found[f"{when}/sketch"]) / 2
        assert found[f"{when}/texture_free"] == pytest.approx(free)
    assert find_measure("wide").take(arm)["wide/sketch"] >= 0
    by_hand(arm, found)


def by_hand(arm: TrainedArm, found: dict[str, float]) -> None:
    """Accuracy, confidence and saliency of the classifier as it was trained."""
    method, data = load_method(arm.folder).eval(), open_data(list(arm.lab.sets["wide/clean"]))
    images = np.stack([center(data.image(i), 32) for i in range(len(data))])
    x = method.encoder.normalise(torch.from_numpy(images))

    def logits(t: torch.Tensor) -> torch.Tensor:
        return method.classifier(method.encoder(t))  # type: ignore[operator]

    with torch.no_grad():
        p = logits(x).softmax(1).numpy()
    right = p.argmax(1) == data.labels
    assert right.any()
    assert found["before/clean"] == pytest.approx(right.mean())
    assert found["before/confidence"] == pytest.approx(p.max(1)[right].mean())
    chosen = np.random.default_rng(0).permutation(len(data))[:4]
    maps, _ = grad_cam(method.encoder.backbone, x[chosen], logits)
    assert found["before/saliency"] == pytest.approx(float((maps >= 0.5).float().mean()), abs=1e-4)


def test_arms_that_start_from_weights_keep_their_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In training, and in fine-tuning at a tenth of its rate."""
    where = "cuewise.studies.measures.suppression"
    monkeypatch.setattr(f"{where}.TUNING", replace(TUNING, iterations=1))
    monkeypatch.setattr(f"{where}.scored", lambda *args: {})
    asked: list[Tuning] = []

    class Noticed(FinetuneProbe):
        def __init__(self, encoder: Encoder, tuning: Tuning, **more: Any) -> None:
            asked.append(tuning)
            super().__init__(encoder, tuning, **more)

    monkeypatch.setattr(f"{where}.FinetuneProbe", Noticed)
    first = trained(adf_supervised.STUDY, adf_supervised.ORIGINAL, tmp_path)
    find_measure("answers").take(first)
    lab = replace(TINY, base={**TINY.base, "model": str(first.folder)})
    for arm in (*adf_supervised.arms(lab), *adf_filters.arms(lab)):
        assert arm.settings["supervised"] == {"statistics": "fixed"}
    arm = adf_supervised.arms(lab)[0]
    config = merge(lab.config(arm.settings, arm.method, 0, 1), {"batch_size": 32})
    cuewise.pretrain(out=tmp_path / "second", set=config)
    find_measure("answers").take(TrainedArm(tmp_path / "second", lab))
    assert [t.fixed_norm for t in asked] == [False, True]
    optim = load_config(tmp_path / "second").optim
    assert asked[1].lr == (pytest.approx(optim.lr * 32 / optim.reference_batch / 10),)
    assert asked[0].lr == TUNING.lr


def test_a_learned_filter_is_an_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "cuewise.studies.measures.suppression"
    monkeypatch.setattr(f"{where}.TUNING", replace(TUNING, iterations=2))
    monkeypatch.setattr(f"{where}.PART", 4)
    monkeypatch.setattr(f"{where}.SALIENT", 4)
    own = {"critic_width": 8}
    network = {"method": "pix2pix", "model": "cuewise/unet?width=8", "size": 32, "batch_size": 16}
    cuewise.pretrain(
        out=tmp_path / "G",
        set={"data": TINY.base["data"], **network, "epochs": 1, "pix2pix": own, "workers": "0"},
    )
    lab = replace(TINY, generator=str(tmp_path / "G"))
    learned = next(a for a in adf_supervised.arms(lab) if a.name == adf_supervised.LEARNED)
    config = merge(lab.config(learned.settings, learned.method, 0, 1), {"batch_size": 32})
    folder = job_of(config, tmp_path, ()).folder
    cuewise.pretrain(out=Path(folder), set=config)
    assert find_measure("answers").take(TrainedArm(Path(folder), lab))["before/clean"] >= 0
    weights = tmp_path / "G" / "encoder.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + bytes(4))
    assert job_of(config, tmp_path, ()).folder != folder  # another generator, another arm
    weights.unlink()
    with pytest.raises(UserError, match="no finished run of `cuewise pretrain --method pix2pix`"):
        job_of(config, tmp_path, ())


def test_a_generator_that_no_study_uses_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of these studies has an arm with a learned filter"):
        cuewise.reproduce("adf-ssl", out=tmp_path / "out", generator=str(tmp_path))


def test_the_curve_of_a_pretext_task(tmp_path: Path) -> None:
    arm = trained(adf_jigsaw.STUDY, adf_jigsaw.PATCHWISE, tmp_path, jigsaw={"permutations": 5, "hidden": 8})
    found = find_measure("pretext").take(arm)
    assert found["pretext/early"] == pytest.approx(found["curve/loss/1"] / np.log(5))
    assert 0 <= found["pretext/accuracy"] <= 1
    assert sum(q.startswith("curve/loss/") for q in found) == 10


def test_tenths_of_training() -> None:
    values = np.stack([np.arange(1.0, 101), np.arange(100.0, 0, -1)], 1)
    found = curve("loss", values)
    assert found["curve/loss/1"] == pytest.approx(np.mean(range(91, 101)))
    assert found["curve/loss/10"] == pytest.approx(np.mean(range(1, 11)))
    few = curve("loss", np.array([[50.0, 3.0], [100.0, 1.0]]))
    assert [few[f"curve/loss/{n}"] for n in (1, 5, 10)] == [3.0, 3.0, 1.0]


def test_a_figure_over_training_has_a_line_per_arm() -> None:
    table = Table(
        {a: {s: {"curve/loss/1": 2.0 + s, "curve/loss/2": 1.0 + s} for s in (0, 1)} for a in ("x", "y")}
    )
    (figure,) = (f for f in adf_stylised.STUDY.figures if f.quantities == ("curve/loss",))
    found = curves_of(figure, table, ["x", "y", "absent"])
    assert [s["name"] for s in found] == ["x", "y"]
    assert (found[0]["x"], found[0]["y"]) == ([1.0, 2.0], [2.5, 1.5])


def test_a_share_of_one_half_is_the_doubled_set_in_the_same_steps() -> None:
    both, only = (
        resolve(SHAPES.config(a.settings, "supervised", 0, 1)) for a in adf_supervised.arms(SHAPES)[1:]
    )
    assert both.suppress is not None
    assert only.suppress is not None
    assert (both.suppress["share"], only.suppress["share"]) == (0.5, 1.0)
    assert both.views.blur_p == 0


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.name)
def test_noise_is_held_as_seldom_as_the_interval_says(study: Study) -> None:
    """Arms that differ by nothing but the seed: at most 2.5 % of the claims of one difference are held, and as many opposite."""
    rng, tables = np.random.default_rng(0), 200
    for claim in study.claims:
        cells = {cell for d in claim.differences(SHAPES) for cell in d.cells}
        words = []
        for _ in range(tables):
            values: dict[str, dict[int, dict[str, float]]] = {}
            for arm, quantity in cells:
                for seed, x in enumerate(rng.normal(size=5)):
                    values.setdefault(arm, {}).setdefault(seed, {})[quantity] = float(x)
            words.append(claim.judge(Table(values), SHAPES).word)
        assert words.count("held") / tables < 0.06, claim.number
        assert "not measured" not in words
