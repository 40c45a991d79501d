"""cuewise probe detect: average precision against loops, detectors on every kind of encoder, resume, bad input."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cuewise import UserError, probe
from cuewise.data import Boxes, Sample, open_data
from cuewise.data.sample import Facts
from cuewise.encoders import load_encoder
from cuewise.encoders.maps import Maps
from cuewise.errors import Interrupted
from cuewise.probes.dense import fit as fitting
from cuewise.probes.dense.boxes_ap import THRESHOLDS, Detections, image_scores, mean_ap, rank
from cuewise.probes.dense.coco_ap import CocoEvaluation
from cuewise.probes.dense.detector import BoxView, Detector, DetectorHeads, span
from cuewise.probes.dense.schedule import DenseSchedule
from tests.probes.object_sets import write_coco, write_voc

pytestmark = pytest.mark.slow

MODEL = "cuewise/resnet-tiny?width=8"
TINY = DetectorHeads(16, 16, 16, 16, (30, 30))


def random_boxes(rng: np.random.Generator, n: int) -> np.ndarray:
    corner = rng.uniform(0, 20, (n, 2))
    return np.concatenate([corner, corner + rng.uniform(5, 20, (n, 2))], 1).astype(np.float32)


def made_up(seed: int, images: int = 8, classes: int = 3) -> tuple[list[Detections], list[Boxes]]:
    """Objects, some of them difficult, and detections near them and elsewhere."""
    rng = np.random.default_rng(seed)
    said, true = [], []
    for _ in range(images):
        n = int(rng.integers(0, 4))
        corners, kinds = random_boxes(rng, n), rng.integers(0, classes, n)
        true.append(Boxes(corners, kinds, {"difficult": rng.random(n) < 0.25}))
        near = np.repeat(corners, 2, axis=0) + rng.normal(0, 1.5, (2 * n, 4)).astype(np.float32)
        found = np.concatenate([near, random_boxes(rng, 3)])
        found[:, 2:] = np.maximum(found[:, 2:], found[:, :2] + 1)
        scores = rng.permutation(np.linspace(0.06, 0.99, len(found))).astype(np.float32)
        order = np.argsort(-scores)
        labels = np.concatenate([np.repeat(kinds, 2), rng.integers(0, classes, 3)])
        said.append(Detections(found[order], labels[order].astype(np.int64), scores[order]))
    return said, true


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    return w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h)


def slow_ap(said: list[Detections], true: list[Boxes], k: int, threshold: float) -> float:
    """VOC's kit in plain loops: precision and recall after every detection, eleven points."""
    ranked = sorted(
        (
            (float(s), i, d)
            for i, found in enumerate(said)
            for d, s in enumerate(found.scores)
            if found.classes[d] == k
        ),
        key=lambda row: -row[0],
    )
    total = sum(int(c == k and not hard) for b in true for c, hard in zip(b.classes, b.flags["difficult"]))
    if not total:
        return float("nan")
    taken: set[tuple[int, int]] = set()
    tp = fp = 0
    curve = []
    for _, i, d in ranked:
        best, at = 0.0, -1
        for o in range(len(true[i])):
            if true[i].classes[o] == k:
                value = overlap(said[i].corners[d].astype(float), true[i].corners[o].astype(float))
                if value > best:
                    best, at = value, o
        if best >= threshold and true[i].flags["difficult"][at]:
            continue
        if best >= threshold and (i, at) not in taken:
            taken.add((i, at))
            tp += 1
        else:
            fp += 1
        curve.append((tp / total, tp / (tp + fp)))
    return sum(max((p for r, p in curve if r >= t / 10 - 1e-9), default=0.0) for t in range(11)) / 11


@pytest.mark.parametrize("seed", range(4))
def test_eleven_points_are_those_of_a_loop(seed: int) -> None:
    said, true = made_up(seed)
    for k in range(3):
        expected = [slow_ap(said, true, k, float(t)) for t in THRESHOLDS]
        np.testing.assert_allclose(rank(said, true, k).average_precision(), expected, atol=1e-9)


def test_a_resample_is_its_images_written_out() -> None:
    said, true = made_up(7)
    chosen = [0, 0, 3, 5, 5, 5, 6, 7]
    weights = np.bincount(chosen, minlength=8)
    rankings = [rank(said, true, k) for k in range(3)]
    twice = [rank([said[i] for i in chosen], [true[i] for i in chosen], k) for k in range(3)]
    np.testing.assert_allclose(
        mean_ap(rankings, weights)[0], mean_ap(twice)[0], atol=0.08
    )  # order of equal scores
    perfect = [Detections(b.corners, b.classes, np.ones(len(b), np.float32)) for b in true]
    np.testing.assert_allclose(mean_ap([rank(perfect, true, k) for k in range(3)]), 1.0)
    nothing = [Detections(np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros(0, np.float32))] * 8
    np.testing.assert_allclose(mean_ap([rank(nothing, true, k) for k in range(3)]), 0.0)
    f1 = image_scores(perfect, true)
    counted = [bool((~b.flags["difficult"]).any()) for b in true]
    assert [bool(v == 1) for v in f1] == counted
    assert np.isnan(f1[[not c for c in counted]]).all()


@pytest.mark.parametrize("seed", range(3))
def test_coco_is_pycocotools_and_its_resamples_agree_with_it(seed: int) -> None:
    pytest.importorskip("pycocotools")
    said, true = made_up(seed, images=10)
    found = CocoEvaluation(said, true, 3)
    ours = found.mean_ap()
    np.testing.assert_allclose([ours.mean(), ours[0], ours[5]], found.values, atol=1e-9)
    empty = [Detections(np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros(0, np.float32))] * 10
    assert CocoEvaluation(empty, true, 3).values == [0.0, 0.0, 0.0]
    chosen = [0, 0, 3, 5, 5, 5, 6, 7, 9, 9]
    again = CocoEvaluation([said[i] for i in chosen], [true[i] for i in chosen], 3)
    weighted = found.mean_ap(np.bincount(chosen, minlength=10))
    np.testing.assert_allclose(weighted[0], again.values[1], atol=0.08)


def test_boxes_are_flipped_with_their_image() -> None:
    image = np.zeros((20, 30, 3), np.uint8)
    image[4:9, 3:11] = 255
    boxes = Boxes(np.array([[3, 4, 11, 9], [0, 0, 5, 5]], np.float32), np.array([1, 2]))
    sample = Sample(image, facts=Facts(boxes=boxes))
    seen = set()
    for seed in range(8):
        shown = BoxView((-1, 0, -1), flip=True)(sample, np.random.default_rng(seed)).facts
        (box,) = shown["boxes"].corners.astype(int)
        assert (shown["image"][box[1] : box[3], box[0] : box[2]] == 255).all()
        assert shown["image"].sum() == 255 * 3 * 40
        assert shown["boxes"].classes.tolist() == [0]
        seen.add(int(box[0]))
    assert seen == {3, 19}


@pytest.fixture(scope="module")
def voc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_voc(tmp_path_factory.mktemp("sets") / "voc")


def detector(
    model: str = MODEL, file: Path | None = None, steps: int = 4, size: int = 32, **more: Any
) -> Detector:
    torch.manual_seed(0)
    encoder = load_encoder(model, size=size)
    schedule = DenseSchedule(0.02, 4, None, steps, warmup=0.1, drops=(0.75,))
    return Detector(encoder, ("disc", "square"), size, schedule, TINY, file=file, **more)


@pytest.mark.parametrize(
    ("model", "size", "more", "strides"),
    [
        (MODEL, 32, {}, [2, 4, 8, 16]),
        ("torchvision/resnet18", 32, {"body": "c4", "norm": "frozen"}, [16]),
        ("torchvision/mobilenet_v3_small", 64, {"frozen": True}, [4, 8, 16, 32, 64]),
        ("timm/resnet10t", 32, {}, [4, 8, 16, 32, 64]),
        ("cuewise/vit-tiny?patch=4", 32, {}, [2, 4, 8]),
    ],
)
def test_detectors_on_every_kind_of_encoder(
    voc: Path, model: str, size: int, more: dict[str, Any], strides: list[int]
) -> None:
    found = detector(model, steps=1, size=size, **more)
    assert found.network.backbone.strides == strides
    before = {k: v.clone() for k, v in found.encoder_.backbone.state_dict().items()}
    data = open_data(f"{voc}?set=train")
    found.fit(data)
    after = found.encoder_.backbone.state_dict()
    moved = [k for k in before if not torch.equal(before[k], after[k])]
    assert bool(moved) is not bool(more.get("frozen"))
    if more.get("norm") == "frozen":
        assert not [k for k in moved if "bn" in k or "running" in k]
    rows, said, true = found.predict(data.select([0, 1]))
    assert rows == [0, 1]
    assert [len(t) for t in true] == [1, 1]
    assert all((d.corners >= 0).all() and (d.corners <= 32).all() for d in said)


def test_maps_are_those_of_the_library() -> None:
    torch.manual_seed(0)
    encoder = load_encoder("timm/tf_efficientnet_lite0", size=64).eval()
    import timm

    theirs = timm.create_model("tf_efficientnet_lite0", features_only=True).eval()
    theirs.load_state_dict(
        {k: v for k, v in encoder.backbone.state_dict().items() if k in theirs.state_dict()}, strict=False
    )
    x = torch.randn(1, 3, 64, 96)
    maps = Maps(encoder, finest=1)
    assert maps.strides == [2, 4, 8, 16, 32]
    with torch.no_grad():
        for a, b in zip(maps(x), theirs(x)):
            torch.testing.assert_close(a, b)
    plain = load_encoder("torchvision/resnet18", size=64).eval()
    with torch.no_grad():
        found = Maps(plain)(x)
        net: Any = plain.backbone
        expected = net.layer1(net.maxpool(net.relu(net.bn1(net.conv1(x)))))
    assert Maps(plain).channels == [64, 128, 256, 512]
    torch.testing.assert_close(found[0], expected)


def test_training_resumes_to_the_bit(voc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, file = open_data(f"{voc}?set=train"), tmp_path / "last.ckpt"
    whole = detector(scales=(24, 32)).fit(data)
    plain = fitting.Fit._advance

    def stopping(self: Any, *args: Any) -> float:
        if self.step == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(self, *args)

    monkeypatch.setattr(fitting.Fit, "_advance", stopping)
    with pytest.raises(Interrupted, match="stopped at step 2 of 4"):
        detector(file=file, scales=(24, 32)).fit(data)
    monkeypatch.setattr(fitting.Fit, "_advance", plain)
    torch.rand(7)  # whatever else drew random numbers
    again = detector(file=file, scales=(24, 32)).fit(data)
    for name, value in whole.network.state_dict().items():
        torch.testing.assert_close(again.network.state_dict()[name], value, rtol=0, atol=0, msg=name)
    with pytest.raises(UserError, match="was trained with another data"):
        detector(file=file, scales=(24, 32)).fit(open_data(f"{voc}?set=val"))


@pytest.mark.slow
def test_it_learns_to_find_bright_shapes(voc: Path, tmp_path: Path) -> None:
    result = probe("detect", "cuewise/resnet-tiny?width=16", train=f"{voc}?set=train", test=f"{voc}?set=val", size=32,
                   steps=24, batch_size=8, lr=0.03, out=tmp_path / "out")  # fmt: skip
    scores = {s["name"].partition("/")[0]: s for s in result["scores"]}
    assert set(scores) == {f"{form}_{what}" for form in ("voc07", "coco") for what in ("ap", "ap50", "ap75")}
    assert scores["voc07_ap50"]["value"] > 0.5
    assert "11_point" in scores["voc07_ap"]["protocol"]
    assert "pycocotools" in scores["coco_ap"]["protocol"]
    assert (tmp_path / "out/report.html").read_text().count("data:image/") == 4
    assert [r[0] for r in next(iter(result["tables"].values()))["rows"]] == ["disc", "square"]


def test_what_is_no_detection_is_refused(voc: Path, folder: Path, tmp_path: Path, capsys: Any) -> None:
    how: dict[str, Any] = {"size": 32, "steps": 1}
    with pytest.raises(UserError, match="has no boxes: detect needs DATA with annotated objects"):
        probe("detect", MODEL, train=str(folder), **how)
    with pytest.raises(UserError, match="--body c4 needs a ResNet"):
        probe("detect", "cuewise/vit-tiny", train=str(voc), body="c4", **how)
    with pytest.raises(UserError, match="which --frozen forbids"):
        probe("detect", MODEL, train=str(voc), frozen=True, norm="train", **how)
    for wrong in ({"norm": "off"}, {"body": "c5"}, {"scales": "8:4"}, {"scales": "big"}, {"lr": 0.0}):
        with pytest.raises(UserError, match=f"--{next(iter(wrong))}"):
            probe("detect", MODEL, train=str(voc), **how, **wrong)
    one = write_voc(tmp_path / "one", 1)
    with pytest.raises(UserError, match="leaves nothing to test on"):
        probe("detect", MODEL, train=str(one), **how)
    empty = tmp_path / "empty.csv"
    empty.write_text("image,label,xmin,ymin,xmax,ymax\n000.jpg,,,,,\n001.jpg,,,,,\n")
    with pytest.raises(UserError, match=r"has no boxes|no image of --train has a box"):
        probe("detect", MODEL, train=f"{empty}?images={voc / 'JPEGImages'}", **how)
    with pytest.raises(UserError, match="diverges at step"):
        probe("detect", MODEL, train=str(voc), size=32, steps=30, lr=1e9)


def test_images_without_boxes_and_classes_of_one_set(voc: Path, tmp_path: Path, capsys: Any) -> None:
    table = tmp_path / "test.csv"
    rows = ["000.jpg,disc,1,1,12,12", "001.jpg,kite,2,2,9,9", "002.jpg,,,,,", "003.jpg,disc,50,50,90,90"]
    table.write_text("image,label,xmin,ymin,xmax,ymax\n" + "\n".join(rows) + "\n")
    train = tmp_path / "train.csv"
    train.write_text(
        "image,label,xmin,ymin,xmax,ymax\n004.jpg,disc,1,1,12,12\n005.jpg,square,2,2,9,9\n006.jpg,,,,,\n"
    )
    images = voc / "JPEGImages"
    result = probe(
        "detect", MODEL, train=f"{train}?images={images}", test=f"{table}?images={images}", size=32, steps=1
    )
    said = capsys.readouterr().err
    assert "1 of 3 training images have no box" in said
    assert result["tests"][0]["left_out_classes"] == ["square", "kite"]
    assert result["tests"][0]["boxes"] == 1
    assert any("lies outside the image" in s["why"] for s in result["skipped"])
    table.write_text("image,label,xmin,ymin,xmax,ymax\n000.jpg,kite,1,1,12,12\n")
    with pytest.raises(UserError, match="none of its boxes is of a trained class"):
        probe(
            "detect",
            MODEL,
            train=f"{train}?images={images}",
            test=f"{table}?images={images}",
            size=32,
            steps=1,
        )


def test_crowds_and_scales(tmp_path: Path) -> None:
    data = open_data(f"{write_coco(tmp_path / 'coco')}?images=images")
    found = detector(steps=1).fit(data)
    _, _, true = found.predict(data)
    assert [int(b.flags["crowd"].sum()) for b in true] == [1, 0, 1, 0]
    said = [Detections(b.corners, b.classes, np.ones(1, np.float32)) for b in true]
    assert rank(said, true, 0).positive.sum() == 0  # crowds are not to be found
    assert rank(said, true, 0).ignored[0].all()  # and finding one is no mistake
    assert span("480:800") == (480, 512, 544, 576, 608, 640, 672, 704, 736, 768, 800)
    assert span("192") == (192,)
