"""Probes as the papers run them: VOC's labels, fine-grained sets, augmented linear layers, the family of ImageNet tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from cuewise import UserError, pretrain, probe
from cuewise.cues.corruptions import CORRUPTIONS, FAMILIES, SEVERITIES
from cuewise.data import open_data
from cuewise.data.subset import read_list
from cuewise.encoders import load_encoder
from cuewise.probes.class_map import match, read_class_map, shipped_maps
from cuewise.probes.corrupted_sets import COUNTED, Cells, ask_cells, by_class, corrupted_scores, is_corrupted
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.mce import ALEXNET
from cuewise.probes.multilabel import batch_bce
from cuewise.probes.sgd import PRESETS
from cuewise.probes.tunings import TUNINGS, Tuning

MODEL = "cuewise/resnet-tiny?width=8"


def paint(root: Path, seed: int, images: int = 6) -> Path:
    """Three classes of one colour each."""
    rng = np.random.default_rng(seed)
    for name, colour in {"blue": (16, 32, 224), "green": (32, 192, 32), "red": (224, 32, 32)}.items():
        (root / name).mkdir(parents=True)
        for i in range(images):
            pixels = np.array(colour) + rng.integers(-12, 13, (24, 24, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(root / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paint(tmp_path_factory.mktemp("train") / "set", 0)


@pytest.fixture(scope="module")
def test(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paint(tmp_path_factory.mktemp("test") / "set", 1)


# several labels, as DeepCluster tests on VOC


def test_loss_is_summed_over_labels_and_divided_by_images() -> None:
    z, y = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -2.0]]), torch.tensor([[1, 0, -1], [0, 1, 1]])
    total = 0.0
    for row in range(2):
        for label in range(3):
            p = 1 / (1 + np.exp(-float(z[row, label])))
            if y[row, label] >= 0:  # difficult ones do not count
                total -= np.log(p) if y[row, label] == 1 else np.log(1 - p)
    assert float(batch_bce(z, y)) == pytest.approx(total / 2)


def small(**changes: object) -> Tuning:
    return Tuning((0.05,), 6, 1, weight_decay=0.0, **changes)  # type: ignore[arg-type]


def test_batch_norm_keeps_the_statistics_of_pretraining(train: Path) -> None:
    data, encoder = open_data(str(train)), load_encoder(MODEL, size=16)
    means = {}
    for fixed in (False, True):
        tuned = FinetuneProbe(encoder, small(fixed_norm=fixed), workers=0).fit(data, data.labels)  # type: ignore[arg-type]
        norm = next(m for m in tuned.network_.modules() if isinstance(m, nn.BatchNorm2d))
        assert not torch.equal(norm.weight, torch.ones_like(norm.weight))  # it is trained in either case
        means[fixed] = norm.running_mean
    assert torch.equal(means[True], torch.zeros_like(means[True]))
    assert not torch.equal(means[False], means[True])


def test_gradients_are_clipped(train: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, norms = open_data(str(train)), []
    real = nn.utils.clip_grad_norm_
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", lambda p, most: norms.append(most) or real(p, most))
    FinetuneProbe(load_encoder(MODEL, size=16), small(clip=10.0), workers=0).fit(data, data.labels)  # type: ignore[arg-type]
    assert norms == [10.0] * 3


@pytest.mark.slow
def test_a_test_image_is_judged_by_the_mean_over_its_crops(train: Path) -> None:
    data, encoder = open_data(str(train)), load_encoder(MODEL, size=16)
    found = {}
    for crops in (1, 4):
        probe = FinetuneProbe(encoder, small(crops=crops, scale=(0.1, 0.5)), workers=0, loss=batch_bce)
        y = np.eye(3, dtype=np.int8)[data.labels]
        found[crops] = probe.fit(data, y).answers(data).features
        np.testing.assert_array_equal(
            probe.answers(data).features, found[crops]
        )  # the same crops in every call
    assert not np.array_equal(found[1], found[4])
    assert "crops0.1-0.5_test4crops" in probe.protocol


@pytest.mark.slow
def test_voc_leaves_difficult_labels_out(train: Path, tmp_path: Path) -> None:
    data = open_data(str(train))
    lines = ["image,labels,difficult"]
    lines += [
        f"{data.name(i)},{data.name(i).split('/')[0]},{'red' if i < 6 else ''}" for i in range(len(data))
    ]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    result = probe(
        "multilabel",
        MODEL,
        train=str(train),
        labels=[str(tmp_path / "labels.csv")],
        preset="voc",
        steps=2,
        size=16,
    )
    said = result["scores"][0]["protocol"]
    assert "halved18times_wd1e-06_clip10_crops0.1-0.5_fixednorm_test10crops_stopped_at_2_steps" in said


# fine-grained classification


@pytest.mark.slow
def test_the_rate_is_chosen_on_validation_images_and_seeds_are_averaged(
    train: Path, test: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TUNINGS, "transfer", Tuning((1e-6, 0.05), 6, 2))
    val = paint(tmp_path / "val", 2, images=2)
    chosen: list[tuple[tuple[float, ...], float, int]] = []
    fit = FinetuneProbe.fit

    def noting(self: FinetuneProbe, *args: object, **kwargs: object) -> FinetuneProbe:
        fit(self, *args, **kwargs)  # type: ignore[arg-type]
        chosen.append((self.tuning.lr, self.lr_, self.seed))
        return self

    monkeypatch.setattr(FinetuneProbe, "fit", noting)
    options = {"train": str(train), "test": str(test), "val": str(val), "seeds": 2, "size": 16}
    found = probe("finetune", MODEL, **options)["scores"][0]  # type: ignore[arg-type]
    assert [c[2] for c in chosen] == [0, 1]
    assert chosen[1][0] == (chosen[0][1],)  # the first seed chooses for all
    assert found["n"] == 2
    assert found["protocol"].endswith("/mean_of_2seeds")
    assert found["low"] <= found["value"] <= found["high"]
    with pytest.raises(UserError, match="--val chooses among several rates"):
        probe("finetune", MODEL, **options, lr=0.1)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="--seeds 0"):
        probe("finetune", MODEL, train=str(train), seeds=0)
    strange = paint(tmp_path / "strange", 3, images=1)
    (strange / "red").rename(strange / "mauve")
    with pytest.raises(UserError, match="class 'mauve' is none of the training set's"):
        probe("finetune", MODEL, **{**options, "val": str(strange)})  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"18 of 18 images of --test .* are in it"):
        probe("finetune", MODEL, **{**options, "val": str(test)})  # type: ignore[arg-type]


# linear layers on crops that are encoded again


def test_augmented_presets_train_the_layer_alone_on_new_crops(train: Path, test: Path) -> None:
    options = {"train": str(train), "test": str(test), "size": 16}
    found = probe("linear", MODEL, **options, preset="looc", augment=True, epochs=10, steps=3)  # type: ignore[arg-type]
    said = found["scores"][0]["protocol"]
    assert said.startswith(
        "linear_augmented_sgd_lr30_batch256_epochs10_x0.1at6-8_wd0_stopped_at_3_steps/crops16"
    )
    encoder, data = load_encoder(MODEL, size=16), open_data(str(train))
    before = {k: v.clone() for k, v in encoder.state_dict().items()}
    tuned = FinetuneProbe(encoder, small(frozen=True), workers=0).fit(data, data.labels)  # type: ignore[arg-type]
    for key, value in tuned.network_[0].state_dict().items():
        assert torch.equal(value, before[key]), key
    assert not torch.equal(tuned.network_[1].bias, torch.zeros(3))
    for wrong, said in (
        ({"augment": True}, "belong to a preset"),
        ({"preset": "can", "augment": True}, "not can"),
        ({"preset": "ns", "steps": 2}, "--steps belongs to --augment"),
        ({"preset": "ns", "epochs": 0}, "--epochs 0"),
    ):
        with pytest.raises(UserError, match=said):
            probe("linear", MODEL, **options, **wrong)  # type: ignore[arg-type]


def test_looc_in_a_hundred_epochs_is_the_published_probe_of_inat() -> None:
    assert PRESETS["looc"].lasting(100).milestones == (60, 80)
    assert PRESETS["looc"].lasting(None) == PRESETS["looc"]


# ImageNet-C, and the sets whose classes are ImageNet's


def tree(root: Path, source: Path, family: bool, cells: dict[str, tuple[int, ...]]) -> Path:
    """Copies of a set under the names of corruptions; images are dark where the severity is 5."""
    for name, severities in cells.items():
        for severity in severities:
            place = root / CORRUPTIONS[name].family / name if family else root / name
            for file in source.glob("*/*.png"):
                target = place / str(severity) / file.parent.name / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                pixels = np.asarray(Image.open(file)) // (20 if severity == 5 else 1)
                Image.fromarray(pixels).save(target)
    return root


@pytest.mark.parametrize("family", [True, False])
def test_a_tree_of_corrupted_images_is_labelled_by_class(tmp_path: Path, test: Path, family: bool) -> None:
    where = tree(tmp_path, test, family, {"fog": (1, 5), "jpeg_compression": (1, 5)})
    data = by_class(open_data(str(where)))
    assert is_corrupted(data)
    assert data.classes == ("blue", "green", "red")
    assert len(data) == 4 * 18
    assert sorted(set(data.columns["severity"].tolist())) == [1, 5]
    plain = open_data(str(test))
    assert by_class(plain) is plain


def test_scores_of_a_tree(tmp_path: Path, train: Path, test: Path) -> None:
    where = tree(tmp_path / "c", test, True, {"fog": (1, 5), "jpeg_compression": (1, 5), "saturate": (1,)})
    (where / "weather" / "fog" / "1" / "red" / "0.png").unlink()
    found = probe("linear", MODEL, train=str(train), test=str(where), size=16)
    scores = {s["name"].removeprefix(f"top1/{where}").strip("/"): s for s in found["scores"]}
    assert set(scores) == {"", "weather", "digital", "severity_1", "severity_5", "severity_3to5", "all19"}
    assert scores["severity_1"]["value"] == 1.0
    assert scores["severity_5"]["value"] < 1.0
    assert scores[""]["value"] == pytest.approx((1.0 + scores["severity_5"]["value"]) / 2)
    assert scores[""]["n"] == 17
    assert "1 images that a corruption lacks left out" in scores[""]["protocol"]
    assert found["tests"][0]["corruptions"] == ["fog", "jpeg_compression", "saturate"]


def test_mce_of_a_probe_on_a_thousand_classes() -> None:
    """In a loop over corruptions: errors over severities against AlexNet's."""
    rng = np.random.default_rng(0)
    cells = tuple((c, s) for c in sorted(COUNTED) for s in SEVERITIES)
    hits = (rng.random((40, len(cells))) < 0.4).astype(float)
    found = {s.name: s for s in corrupted_scores(Cells(cells, hits, 0), "c", "p", 1000, 224)}
    ratios = []
    for name in COUNTED:
        errors = [1 - hits[:, cells.index((name, s))].mean() for s in SEVERITIES]
        ratios.append(sum(errors) / (5 * ALEXNET[name]))
    assert found["mce/c"].value == pytest.approx(100 * np.mean(ratios))
    assert found["top1/c"].value == pytest.approx(hits.mean())
    noise = [i for i, (c, _) in enumerate(cells) if c in FAMILIES["noise"]]
    assert found["top1/c/noise"].value == pytest.approx(hits[:, noise].mean())
    for classes, size in ((100, 224), (1000, 64)):
        assert "mce/c" not in {
            s.name for s in corrupted_scores(Cells(cells, hits, 0), "c", "p", classes, size)
        }
    fewer = Cells(cells[:-1], hits[:, :-1], 0)
    assert "mce/c" not in {s.name for s in corrupted_scores(fewer, "c", "p", 1000, 224)}


def test_cells_without_a_common_image_are_refused(tmp_path: Path, test: Path) -> None:
    data = by_class(open_data(str(tree(tmp_path, test, False, {"fog": (1, 2)}))))

    def ask(part: object, name: str) -> tuple[np.ndarray, np.ndarray]:
        first = name.endswith("1")
        return (np.arange(4) if first else np.arange(4, 8)), np.ones(4)

    with pytest.raises(UserError, match="under every corruption"):
        ask_cells(data, ask)


def test_objectnet_comes_as_data() -> None:
    maps = shipped_maps()
    hundred = set(read_list("imagenet100"))
    whole, part = maps["objectnet"], maps["objectnet-13"]
    assert len(whole) == 113
    assert part == {name: ids for name, ids in whole.items() if hundred & set(ids)}
    assert len(part) == 13
    trained = sorted(hundred)
    mapping = read_class_map(Path("objectnet-13"), [["chair", "wok", "jeans"]], trained)
    got = match(np.array([0, 1, 2]), ["chair", "wok", "jeans"], trained, mapping)
    assert got.shared == ("chair", "jeans")
    assert got.dropped == ("wok",)
    assert trained[int(got.right[2].argmax())] == "n03594734"


def test_objectnet_through_the_verb(tmp_path: Path) -> None:
    ids, names = ("n03594734", "n03584829"), ("jeans", "iron_for_clothes")
    for root, folders, seed in (("train", ids, 0), ("objectnet", (*names, "wok"), 1)):
        made = paint(tmp_path / f"{root}-raw", seed)
        for folder, colour in zip(folders, ("blue", "red", "green")):
            (tmp_path / root).mkdir(exist_ok=True)
            (made / colour).rename(tmp_path / root / folder)
    found = probe(
        "linear",
        MODEL,
        train=str(tmp_path / "train"),
        test=str(tmp_path / "objectnet"),
        class_map="objectnet-13",
        size=16,
    )
    assert found["scores"][0]["value"] == 1.0
    assert found["scores"][0]["n"] == 12
    assert found["tests"][0]["left_out_classes"] == ["wok"]
    json.dumps(found)


# fine-tuning on clean images after training on a mixture


@pytest.mark.slow
def test_clean_continues_the_classifier_of_a_supervised_run(
    train: Path, test: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    options = {
        "model": MODEL,
        "size": 16,
        "epochs": 12,
        "batch_size": 6,
        "workers": "0",
        "set": ["optim.lr=2"],
    }
    pretrain(str(train), out=run, method="supervised", **options)  # type: ignore[arg-type]
    asked = {"train": str(train), "test": str(test), "preset": "clean", "steps": 1, "lr": 1e-9}
    found = probe("finetune", run, **asked)  # type: ignore[arg-type]
    assert "starts from the classifier of the run" in capsys.readouterr().err
    assert "_from_own_classifier" in found["scores"][0]["protocol"]
    assert found["scores"][0]["value"] == 1.0  # a step of no size: what the run had learned
    assert probe("finetune", MODEL, size=16, **asked)["scores"][0]["value"] < 1.0  # type: ignore[arg-type]
    assert "starts from a new linear layer" in capsys.readouterr().err
    other = paint(tmp_path / "other", 2)
    (other / "red").rename(other / "crimson")
    again = probe("finetune", run, **{**asked, "train": str(other), "test": None})  # type: ignore[arg-type]
    assert "from_own_classifier" not in again["scores"][0]["protocol"]  # other classes: another layer
    assert "trained on other classes" in capsys.readouterr().err
    Path(train).rename(tmp_path / "moved")  # which output is which class cannot be known any more
    try:
        moved = {**asked, "train": str(tmp_path / "moved")}
        assert "from_own_classifier" not in probe("finetune", run, **moved)["scores"][0]["protocol"]  # type: ignore[arg-type]
    finally:
        (tmp_path / "moved").rename(train)
    assert "no longer there" in capsys.readouterr().err
    checkpoint = Path(run) / "checkpoints" / "last.ckpt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:2000])
    with pytest.raises(UserError, match="damaged"):  # not a new layer in its place
        probe("finetune", run, **asked)  # type: ignore[arg-type]
