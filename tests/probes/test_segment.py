"""cuewise probe segment: masks of every form, mIoU against a loop, the linear layer, FCN, resume, bad input."""

from __future__ import annotations

import copy
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file

from cuewise import UserError, probe
from cuewise.data import Dataset, open_data
from cuewise.data.masks import Masked
from cuewise.encoders import load_encoder
from cuewise.errors import Interrupted
from cuewise.probes.dense import fit as fitting
from cuewise.probes.dense.fcn import dilate
from cuewise.probes.dense.iou import PixelCounts, count_pixels
from cuewise.probes.dense.pixel_views import CroppedView, WholeView
from cuewise.probes.dense.schedule import DenseSchedule, changed
from cuewise.probes.dense.segmenters import FCNSegmenter, PixelProbe
from cuewise.probes.segment import SCHEDULES, classes_of
from tests.probes.object_sets import SIDE, objects, write_coco, write_voc

pytestmark = pytest.mark.slow

MODEL = "cuewise/resnet-tiny?width=8"


@pytest.fixture(scope="module")
def voc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_voc(tmp_path_factory.mktemp("sets") / "voc")


def masked(spec: str, masks: str | None = None) -> Dataset:
    return Dataset([Masked(open_data(spec), None if masks is None else open_data(masks), spec)])


def slow_miou(said: list[np.ndarray], true: list[np.ndarray], classes: int) -> float:
    """Pixel by pixel, over all images."""
    found = []
    for c in range(classes):
        both = either = there = 0
        for p, t in zip(said, true):
            for a, b in zip(p.reshape(-1), t.reshape(-1)):
                if b == 255:
                    continue
                both += a == c and b == c
                either += a == c or b == c
                there += b == c
        if there:
            found.append(both / either)
    return float(np.mean(found))


def test_miou_is_that_of_a_loop_and_counts_no_void() -> None:
    rng = np.random.default_rng(0)
    true = [rng.choice([0, 1, 2, 255], (7, 5)).astype(np.uint8) for _ in range(4)]
    said = [rng.integers(0, 4, (7, 5)).astype(np.uint8) for _ in range(4)]  # class 3 occurs in no truth
    counts = PixelCounts(
        *(np.stack(c).astype(np.int64) for c in zip(*(count_pixels(p, t, 4) for p, t in zip(said, true))))
    )
    assert counts.mean() == pytest.approx(slow_miou(said, true, 4))
    assert counts.judged.tolist() == [True, True, True, False]
    assert np.isnan(counts.per_class()[3])
    known = np.concatenate([t.reshape(-1) for t in true]) != 255
    right = np.concatenate([(p == t).reshape(-1) for p, t in zip(said, true)])
    assert counts.accuracy() == pytest.approx(right[known].mean())
    repeated = [0, 0, 2, 3]  # a resample is the same as its images written out
    weights = np.bincount(repeated, minlength=4)
    assert counts.mean(weights) == pytest.approx(
        slow_miou([said[i] for i in repeated], [true[i] for i in repeated], 4)
    )
    alone = counts.of_images()
    assert alone[2] == pytest.approx(slow_miou(said[2:3], true[2:3], 4))


def test_masks_of_every_form(voc: Path, tmp_path: Path) -> None:
    own = masked(f"{voc}?set=train")
    assert len(own) == 8
    np.testing.assert_array_equal(own.facts(0).mask, objects(0)[1])
    given = masked(str(voc / "JPEGImages"), str(voc / "SegmentationClass"))
    np.testing.assert_array_equal(given.sample(3).facts.mask, objects(3)[1])
    coco = masked(f"{write_coco(tmp_path / 'coco')}?images=images")
    crowd, square = coco.facts(0).mask, coco.facts(1).mask
    assert crowd is not None
    assert square is not None
    assert set(np.unique(crowd)) == {0, 255}  # a crowd is unknown, in its box
    _, x0, y0, x1, y1 = objects(1)[2][0]
    assert (square[y0:y1, x0:x1] == 2).all()
    assert (square == 2).sum() == (y1 - y0) * (x1 - x0)
    scenes = masked("shapes:scenes?n=4&size=64")
    for i in range(4):
        facts = scenes.facts(i)
        assert facts.mask is not None
        assert facts.boxes is not None
        for (left, top, right, bottom), k in zip(facts.boxes.corners.astype(int), facts.boxes.classes):
            inside = facts.mask[top:bottom, left:right] == k + 1
            assert inside.mean() > 0.15
        assert set(np.unique(facts.mask)) == {0, *(facts.boxes.classes + 1)}


def test_masks_that_do_not_fit_are_counted_and_named(voc: Path, tmp_path: Path) -> None:
    root = tmp_path / "voc"
    shutil.copytree(voc, root)
    Image.new("L", (9, 9)).save(root / "SegmentationClass/001.png")
    (root / "SegmentationClass/002.png").write_bytes(b"\x89PNG broken")
    (root / "SegmentationClass/003.png").unlink()
    result = probe("segment", MODEL, train=f"{root}?set=train", test=f"{root}?set=val", size=32)
    skipped = {s["path"]: s["why"] for s in result["skipped"]}
    assert skipped["001.jpg"] == "its mask has 9×9 pixels, the image 32×32"
    assert "003.jpg" in skipped
    assert "002.jpg" in skipped  # a file that is no PNG is no mask
    assert result["scores"][0]["n"] == 4


def test_a_linear_layer_finds_bright_shapes(voc: Path) -> None:
    result = probe("segment", MODEL, train=f"{voc}?set=train", test=f"{voc}?set=val", size=32)
    miou, accuracy = result["scores"]
    assert miou["name"].startswith("miou/")
    assert miou["value"] > 0.45  # background alone: 0.28
    assert accuracy["value"] > 0.9
    assert miou["low"] < miou["value"] <= miou["high"]
    assert "mean_over_3of3classes" in miou["protocol"]
    rows = next(iter(result["tables"].values()))["rows"]
    assert [r[0] for r in rows] == ["value 0", "value 1", "value 2"]  # index images say no names
    assert np.mean([r[1] for r in rows]) == pytest.approx(miou["value"])


def test_trimaps_and_their_void(voc: Path, tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    for i in range(12):
        mask = objects(i)[1]
        trimap = np.where(mask == 255, 3, np.where(mask == 0, 2, 1)).astype(np.uint8)
        Image.fromarray(trimap).save(tmp_path / "maps" / f"{i:03d}.png")
    images, maps = str(voc / "JPEGImages"), str(tmp_path / "maps")
    other = str(write_voc(tmp_path / "other", 3, seed=70))
    with pytest.raises(UserError, match="one for --train and one for each --test"):
        probe("segment", MODEL, train=images, test=other, masks=[maps], size=32)
    result = probe("segment", MODEL, train=images, masks=[maps], void=[3], size=32)
    assert [r[0] for r in next(iter(result["tables"].values()))["rows"]] == ["value 1", "value 2"]
    with pytest.raises(UserError, match="fewer than two classes"):
        probe("segment", MODEL, train=images, masks=[maps], void=[2, 3], size=32)
    with pytest.raises(UserError, match="values of a mask are 0 to 255"):
        probe("segment", MODEL, train=images, masks=[maps], void=[300], size=32)


def test_what_is_no_segmentation_is_refused(voc: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no masks: give --masks"):
        probe("segment", MODEL, train=str(folder), size=32)
    with pytest.raises(UserError, match="their names must be equal up to the ending"):
        probe("segment", MODEL, train=str(folder), masks=[str(voc / "SegmentationClass")], size=32)
    with pytest.raises(UserError, match="--epochs belongs to an FCN"):
        probe("segment", MODEL, train=str(voc), epochs=3, size=32)
    with pytest.raises(UserError, match="no preset 'fnc' here"):
        probe("segment", MODEL, train=str(voc), preset="fnc", size=32)
    with pytest.raises(UserError, match="give one of them"):
        probe("segment", MODEL, train=str(voc), preset="fcn", epochs=1, steps=3, size=32)
    one = write_voc(tmp_path / "one", 1)
    with pytest.raises(UserError, match="leaves nothing to test on"):
        probe("segment", MODEL, train=str(one), size=32)
    coco = write_coco(tmp_path / "coco", 5)
    with pytest.raises(UserError, match="has no masks"):  # its numbers would be those of all classes
        probe("segment", MODEL, train=f"{coco}?images=images&per_class=3", size=32)


def test_classes_that_are_not_in_both_sets_do_not_count(voc: Path, tmp_path: Path, capsys: Any) -> None:
    test = write_voc(tmp_path / "voc", 4, seed=50)
    for i in range(4):
        mask = objects(50 + i)[1]
        Image.fromarray(np.where(mask == 2, 7, mask).astype(np.uint8)).save(
            test / f"SegmentationClass/{i:03d}.png"
        )
    result = probe("segment", MODEL, train=f"{voc}?set=train", test=str(test), size=32)
    assert result["tests"][0]["left_out_classes"] == ["value 2", "value 7"]
    assert "value 2, value 7" in capsys.readouterr().err
    assert "mean_over_2of3classes" in result["scores"][0]["protocol"]


def test_views_keep_image_and_mask_together() -> None:
    data = masked("shapes:scenes?n=3&size=64")
    table = np.arange(256, dtype=np.uint8)
    bright = np.zeros(256, np.uint8)
    for i in range(3):
        sample = data.sample(i)
        assert sample.facts.mask is not None
        painted = np.repeat((sample.facts.mask > 0).astype(np.uint8)[..., None] * 200, 3, axis=2)
        marked = type(sample)(painted, i, sample.name, -1, sample.facts)  # the image shows the mask
        for seed in range(4):
            shown = CroppedView(48, table, (0, 0, 0))(marked, np.random.default_rng(seed)).views
            image, target = shown["image"][..., 0], shown["target"]
            inside = target != 255
            agree = (image[inside] > 100) == (target[inside] > 0)
            assert agree.mean() > 0.97  # edges are blurred
            assert (image[~inside] == 0).all()
        whole = WholeView(32, table, (0, 0, 0), grid=8)(marked, np.random.default_rng(0))
        assert whole.facts["cells"].shape == (8, 8)
        assert ((whole.views["image"][2::4, 2::4, 0] > 100) == (whole.facts["cells"] > 0)).mean() > 0.85
    assert bright.sum() == 0


def test_dilation_is_that_of_torchvision() -> None:
    torch.manual_seed(0)
    plain = torchvision.models.resnet50(weights=None).eval()
    ours = copy.deepcopy(plain)
    assert dilate(ours)
    theirs = torchvision.models.resnet50(
        weights=None, replace_stride_with_dilation=[False, True, True]
    ).eval()
    theirs.load_state_dict(plain.state_dict())
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x))
        assert not torch.allclose(ours(x), plain(x))


def segmenter(data: Dataset, file: Path | None = None, steps: int = 6) -> FCNSegmenter:
    torch.manual_seed(0)
    encoder = load_encoder(MODEL, size=32)
    return FCNSegmenter(encoder, 32, 3, 0, {}, DenseSchedule(0.01, 4, None, steps), 0.4, "densecl", file)


def test_fcn_resumes_to_the_bit(voc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = masked(f"{voc}?set=train")
    table = classes_of(data, [255]).table
    whole = segmenter(data).fit(data, table)
    plain = fitting.Fit._advance
    file = tmp_path / "last.ckpt"

    def stopping(self: Any, *args: Any) -> float:
        if self.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(self, *args)

    monkeypatch.setattr(fitting.Fit, "_advance", stopping)
    with pytest.raises(
        Interrupted, match=r"stopped at step 3 of 6; (give the same command again|give --out DIR)"
    ):
        segmenter(data, file).fit(data, table)
    monkeypatch.setattr(fitting.Fit, "_advance", plain)
    again = segmenter(data, file).fit(data, table)
    for name, value in whole.fcn.state_dict().items():
        torch.testing.assert_close(again.fcn.state_dict()[name], value, rtol=0, atol=0, msg=name)
    with pytest.raises(UserError, match="was trained with another protocol"):
        segmenter(data, file, steps=9).fit(data, table)
    one, two = (list(s.predict(data, table)) for s in (whole, again))
    assert all((a.mask == b.mask).all() for a, b in zip(one, two))


def test_schedules_scale_with_their_length() -> None:
    moco = DenseSchedule(0.02, 16, None, 240, warmup=0.05, drops=(0.75, 0.9))
    rates = [moco.rate(s, 240, 32) for s in range(240)]
    assert rates[0] == pytest.approx(0.04 * (0.001 + 0.999 / 12))
    assert rates[12] == rates[179] == pytest.approx(0.04)  # twice the batch, twice the rate
    assert rates[180] == pytest.approx(0.004)
    assert rates[239] == pytest.approx(0.0004)
    poly = SCHEDULES["densecl"]
    assert poly.rate(10_000, 20_000, 16) == pytest.approx(0.01 * 0.5**0.9)
    assert poly.rate(19_999, 20_000, 16) == 1e-4
    given = changed(SCHEDULES, "densecl", epochs=2, lr=0.5, batch_size=4)
    assert given.length(10) == 20
    assert given.rate(0, 20, 4) == 0.5  # as typed, whatever the batch


def test_folder_with_baseline_pictures_and_report(voc: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_file(load_encoder(MODEL).backbone.state_dict(), tmp_path / "w.safetensors")
    model = f"{MODEL}:{tmp_path / 'w.safetensors'}"  # as if these weights were trained
    how: dict[str, Any] = {"train": f"{voc}?set=train", "test": f"{voc}?set=val", "size": 32, "out": out}
    result = probe("segment", model, preset="fcn", steps=4, batch_size=4, baseline="random", **how)
    assert [d["value"] for d in result["differences"]] == [0.0, 0.0]  # the same weights, the same seed
    assert result["differences"][0]["protocol"] == "paired_by_image"
    page = (out / "report.html").read_text()
    assert "cannot be distinguished from random initialisation" in page
    assert page.count("data:image/") >= 4
    assert all((out / p["file"]).is_file() for p in result["pictures"])
    with pytest.raises(UserError, match="is not empty"):
        probe("segment", model, preset="fcn", steps=4, batch_size=4, **how)
    with pytest.raises(UserError, match=r"started with another lr: None → 0\.5"):
        probe(
            "segment",
            model,
            preset="fcn",
            steps=4,
            batch_size=4,
            baseline="random",
            lr=0.5,
            resume=True,
            **how,
        )
    again = probe(
        "segment", model, preset="fcn", steps=4, batch_size=4, baseline="random", resume=True, **how
    )
    assert again["scores"] == result["scores"]
    with pytest.raises(UserError, match="belong to --out"):
        probe("segment", MODEL, train=str(voc), resume=True)


def test_a_transformer_and_a_library_network(voc: Path) -> None:
    data = masked(f"{voc}?set=train").select([0, 1, 2, 3])
    table = classes_of(data, [255]).table
    for name, strides in (("cuewise/vit-tiny?patch=4", [4]), ("timm/tf_efficientnet_lite0", [4, 8, 16, 32])):
        found = PixelProbe(load_encoder(name, size=SIDE), SIDE, 3).fit(data, table)
        assert found.maps.strides == strides
        assert [p.mask.shape for p in found.predict(data, table)] == [(SIDE, SIDE)] * 4
