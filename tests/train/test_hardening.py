"""A run that goes wrong: it says so in one line, and what was good before is kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from cuewise import UserError, pretrain
from cuewise.config import dotted, read_yaml, resolve
from cuewise.data import open_data
from cuewise.methods.moco import MoCo
from cuewise.progress import Progress
from cuewise.report.folders import own_data
from cuewise.train.banner import image_warnings
from cuewise.train.checkpoint import read_checkpoint
from cuewise.train.dials import Watch
from cuewise.train.distributed import explain_lost_process
from cuewise.train.log import read_metrics
from cuewise.train.reload import load_config
from cuewise.views import PatchNegative

SMALL: dict[str, Any] = {
    "model": "cuewise/resnet-tiny?width=8",
    "size": 16,
    "batch_size": 8,
    "workers": "0",
    "epochs": 2,
}
SET = ["moco.queue=32", "moco.dim=16", "loop.log_every=1"]


@pytest.fixture(scope="module")
def good(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one epoch out of two."""
    run = tmp_path_factory.mktemp("hardening") / "run"
    pretrain(str(folder), out=str(run), steps=6, set=SET, **SMALL)
    return run


def test_a_diverging_run_keeps_what_was_good(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = [*SET, "optim.lr=1e30", "optim.schedule=constant", "loop.checkpoint_minutes=0"]
    with pytest.raises(UserError, match=r"diverged.*not finite at step \d+.*lower --set optim\.lr"):
        pretrain(str(folder), out=str(run), set=settings, **SMALL)
    for file in (*run.glob("checkpoints/*.ckpt"), *run.glob("encoder.safetensors")):
        state = torch.load(file, weights_only=True)["method"] if file.suffix == ".ckpt" else {}
        assert all(torch.isfinite(v).all() for v in state.values() if v.dtype.is_floating_point)


@pytest.mark.slow
def test_the_last_good_checkpoint_is_named(
    folder: Path, good: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(good, run)
    kept = (run / "checkpoints" / "last.ckpt").read_bytes()
    encoder = (run / "encoder.safetensors").read_bytes()
    plain = MoCo.after_backward

    def poison(self: Any) -> None:
        plain(self)
        with torch.no_grad():
            next(self.encoder.parameters()).fill_(float("nan"))

    monkeypatch.setattr(MoCo, "after_backward", poison)
    with pytest.raises(UserError, match=r"the checkpoint of step 6 is kept"):
        pretrain(str(folder), out=str(run), resume=True, set=SET, **SMALL)
    assert (run / "checkpoints" / "last.ckpt").read_bytes() == kept
    assert (run / "encoder.safetensors").read_bytes() == encoder


def test_weights_that_are_not_finite_are_not_saved(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The loss of the step is still finite, and a checkpoint is due: the one before stays."""
    run, calls, plain = tmp_path / "run", [0], MoCo.after_backward

    def poison(self: Any) -> None:
        plain(self)
        calls[0] += 1
        if calls[0] == 3:
            with torch.no_grad():
                next(self.encoder.parameters()).fill_(float("nan"))

    monkeypatch.setattr(MoCo, "after_backward", poison)
    with pytest.raises(UserError, match=r"not finite at step 3; the checkpoint of step 2 is kept"):
        pretrain(str(folder), out=str(run), set=[*SET, "loop.checkpoint_minutes=0"], **SMALL)
    content = read_checkpoint(run / "checkpoints" / "last.ckpt")
    assert content["step"] == 2
    assert all(torch.isfinite(v).all() for v in content["method"].values() if v.dtype.is_floating_point)


@pytest.mark.parametrize(
    "setting", ["optim.lr=.nan", "optim.lr=.inf", "optim.lr=0", "loop.log_every=0", "views.scale=[.nan,1]"]
)
def test_settings_that_are_no_numbers_are_refused(setting: str) -> None:
    with pytest.raises(UserError, match=r"finite number|must be"):
        resolve(dotted([setting]))


def test_alpha_must_be_a_number() -> None:
    with pytest.raises(UserError, match=r"0 .off. or more|finite"):
        resolve({"negatives": ["patch"], "alpha": [float("nan")]})


def test_every_flipped_byte_of_a_tensor_is_found(good: Path, tmp_path: Path) -> None:
    file = good / "checkpoints" / "last.ckpt"
    data = file.read_bytes()
    place = data.index(b"data/0") + 2000  # inside the first tensors
    copy = tmp_path / "last.ckpt"
    copy.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.raises(UserError, match=r"damaged.*checksum"):
        read_checkpoint(copy)
    assert read_checkpoint(file)["step"] == 6


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04" + bytes(100)])
def test_a_broken_checkpoint_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "last.ckpt").write_bytes(content)
    with pytest.raises(UserError, match=r"last\.ckpt is (damaged|missing or empty)") as said:
        read_checkpoint(tmp_path / "last.ckpt")
    assert "weights_only" not in str(said.value)


@pytest.mark.parametrize("content", [[1, 2], {"step": 3}])
def test_a_file_that_is_no_checkpoint_is_one_line(tmp_path: Path, content: Any) -> None:
    torch.save(content, tmp_path / "last.ckpt")
    with pytest.raises(UserError, match="not a checkpoint of this version"):
        read_checkpoint(tmp_path / "last.ckpt")


@pytest.mark.parametrize("text", ["a: [1", "!!python/object/apply:os.system ['true']", "- 1"])
def test_a_broken_config_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UserError, match=r"config\.yaml"):
        read_yaml(tmp_path / "config.yaml")


def test_the_log_begins_with_what_the_run_will_do(good: Path) -> None:
    text = (good / "train.log").read_text()
    assert "moco with cuewise/resnet-tiny?width=8 at 16 px: 48 images of 3 classes" in text
    assert "2 epochs of 6 steps = 12 steps of 8 images, stopping after step 6; no image is dropped" in text
    assert "learning rate 0.0075 for this batch size" in text
    assert "queue of 32 keys" in text
    assert "loader process" in text


def test_the_progress_line_has_a_loss_from_the_first_step(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of metrics come later."""
    shown, plain = [], Progress.add

    def kept(self: Any, count: int, **fields: str) -> None:
        shown.append(float(fields["loss"]))
        plain(self, count, **fields)

    monkeypatch.setattr(Progress, "add", kept)
    settings = ["moco.queue=32", "moco.dim=16", "loop.log_every=100"]
    pretrain(str(folder), out=str(tmp_path / "run"), steps=3, set=settings, **SMALL)
    assert len(shown) == 3
    assert np.isfinite(shown).all()


@pytest.mark.slow
def test_a_run_can_be_extended_as_a_stated_choice(folder: Path, good: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(good, run)
    longer = {**SMALL, "epochs": 3}
    with pytest.raises(UserError, match=r"epochs: 2 → 3.*--extend"):
        pretrain(str(folder), out=str(run), resume=True, set=SET, **longer)
    with pytest.raises(UserError, match="add --resume"):
        pretrain(str(folder), out=str(run), extend=True, set=SET, **longer)
    with pytest.raises(UserError, match="more --epochs than the 2"):
        pretrain(str(folder), out=str(run), resume=True, extend=True, set=SET, **SMALL)
    result = pretrain(str(folder), out=str(run), resume=True, extend=True, set=SET, **longer)
    assert result["steps"] == 18
    rows = read_metrics(run / "metrics.jsonl")
    assert [r["step"] for r in rows] == list(range(1, 19))
    assert read_yaml(run / "config.yaml")["epochs"] == 3
    # cosine of the longer run from where it stopped
    assert rows[6]["lr"] == pytest.approx(0.24 * 8 / 256 * 0.5 * (1 + np.cos(np.pi * 6 / 18)), rel=1e-6)
    assert json.loads((run / "encoder.json").read_text())["step"] == 18


def test_images_without_content_are_reported(tmp_path: Path) -> None:
    for i in range(12):
        Image.fromarray(np.full((20, 20, 3), i, np.uint8)).save(tmp_path / f"{i:02d}.png")
    assert "12 of the first 12 images are of one colour" in image_warnings(open_data(str(tmp_path)))[0]
    noise = np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    for i in range(12):
        Image.fromarray(noise).save(tmp_path / f"{i:02d}.png")
    assert "11 of the first 12 images repeat another one" in image_warnings(open_data(str(tmp_path)))[0]
    assert image_warnings(open_data("shapes?n=20")) == []


def test_a_loss_out_of_range_is_reported() -> None:
    watch = Watch(chance_loss=4.0, warm=100)
    assert watch.look(1, 8.0, {}) == []
    assert "far out of the range" in watch.look(2, 900.0, {})[0]


def test_patches_of_the_whole_view_are_reported() -> None:
    assert "4% of the patch negatives are the view itself" in PatchNegative(patch_size=(8, 72)).doubts(32)[0]
    assert PatchNegative(patch_size=(8, 31)).doubts(32) == []
    assert PatchNegative().doubts(32) == []


def test_accumulation_is_not_a_large_batch_and_says_so(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pretrain(str(folder), out=str(tmp_path / "run"), steps=1, set=[*SET, "loop.accumulate=2"], **SMALL)
    assert "batch statistics are those of 4 images" in capfd.readouterr().err


def test_one_class_is_nothing_to_learn(tmp_path: Path) -> None:
    (tmp_path / "set" / "only").mkdir(parents=True)
    for i in range(8):
        noise = np.random.default_rng(i).integers(0, 256, (20, 20, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "set" / "only" / f"{i}.png")
    with pytest.raises(UserError, match="all images are of one class"):
        pretrain(str(tmp_path / "set"), out=str(tmp_path / "run"), method="supervised", **SMALL)


def test_synchronised_statistics_need_gpus(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs GPUs"):
        pretrain(str(folder), out=str(tmp_path / "run"), set=[*SET, "loop.sync_batch_norm=true"], **SMALL)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("method", "payload_x:Evil"),
        ("model", "payload_x:make"),
        ("negatives", ["payload_x:Evil"]),
        ("suppress", "payload_x:Evil"),
        ("leave_out", ["payload_x:Evil"]),
    ],
)
def test_code_that_a_file_names_is_not_imported(
    good: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: Any
) -> None:
    """A stranger's run folder or configuration: nothing of it is run unless the user types its name."""
    (tmp_path / "payload_x.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(str(tmp_path))
    run = tmp_path / "run"
    shutil.copytree(good, run)
    config = yaml.safe_load((run / "config.yaml").read_text()) | {option: value}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    for attempt in (
        lambda: pretrain(str(folder), out=str(run), resume=True),
        lambda: pretrain(str(folder), out=str(tmp_path / "new"), config=str(run / "config.yaml")),
    ):
        with pytest.raises(UserError, match=r"names code to import, payload_x:\w+; if you trust it, give --"):
            attempt()
    with pytest.raises(
        UserError, match=r"payload_x:\w+; if you trust it, make it an entry point .*import payload_x first"
    ):
        load_config(run)
    assert own_data([run]) == own_data([good])  # which reads neither
    (run / "config.yaml").write_text(yaml.safe_dump(config | {"data": ["payload_x:Evil"]}))
    with pytest.raises(UserError, match="names code to import"):
        own_data([run])
    assert not (tmp_path / "ran").exists()


def test_a_killed_rank_is_one_line() -> None:
    """As gloo and NCCL report it; other errors, and errors of a single process, are not explained away."""
    for text in (
        "[/gloo/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:5",
        "NCCL communicator was aborted",
    ):
        with (
            pytest.raises(UserError, match=r"another of the 2 processes .* continue with --resume"),
            explain_lost_process(2),
        ):
            raise RuntimeError(text)
        with pytest.raises(RuntimeError, match=r"peer|NCCL"), explain_lost_process(1):
            raise RuntimeError(text)
    with pytest.raises(RuntimeError, match="mat1 and mat2"), explain_lost_process(2):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
