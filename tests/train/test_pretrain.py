"""Runs from a folder of real JPEGs: reproducible, resumable after a kill, refused when they should be."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from PIL import Image

from cuewise import UserError, pretrain
from cuewise.config import complete, resolve
from cuewise.data import open_data
from cuewise.encoders import load_encoder
from cuewise.train import loop
from cuewise.train.environment import environment as environment_of_run
from cuewise.train.fabric import Fabric
from cuewise.train.log import read_metrics
from cuewise.train.loop import LAYOUTS
from cuewise.train.pretrain import build

pytestmark = pytest.mark.usefixtures("warm_start")

SMALL: dict[str, Any] = {
    "model": "cuewise/resnet-tiny?width=8",
    "size": 16,
    "batch_size": 8,
    "epochs": 2,
    "workers": "0",
    "set": ["loop.log_every=1", "moco.queue=32", "moco.dim=16"],
}


def losses(run: Path) -> list[float]:
    return [r["train/loss"] for r in read_metrics(run / "metrics.jsonl") if "train/loss" in r]


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run with a negative."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    pretrain(str(folder), out=str(out), negatives=["patch"], **SMALL)
    return out


def test_a_run_folder_holds_what_it_promises(whole: Path) -> None:
    for name in (
        "config.yaml",
        "environment.json",
        "metrics.jsonl",
        "train.log",
        "views.png",
        "encoder.safetensors",
        "encoder.json",
    ):
        assert (whole / name).is_file(), name
    assert list(whole.glob("events.out.tfevents*"))
    checkpoint = torch.load(whole / "checkpoints" / "last.ckpt", weights_only=True)
    assert checkpoint["step"] == 12
    environment = json.loads((whole / "environment.json").read_text())
    assert environment["data"]["count"] == 48
    assert environment["versions"]["torch"] == torch.__version__.split("+")[0]
    card = json.loads((whole / "encoder.json").read_text())
    assert card["method"] == "moco"
    assert card["cues"]["negatives"] == ["patch"]
    assert card["mean"] == pytest.approx([0.485, 0.456, 0.406])
    row = read_metrics(whole / "metrics.jsonl")[-1]
    for key in ("step", "epoch", "train/loss", "lr", "train/images_per_s", "train/data_wait"):
        assert key in row
    for dial in ("feature_std", "effective_rank", "alignment", "uniformity", "negative_similarity"):
        assert f"dials/{dial}" in row


def test_the_encoder_loads_and_its_keys_are_the_librarys_own(whole: Path) -> None:
    encoder = load_encoder(str(whole))
    assert "layer4.0.conv2.weight" in encoder.backbone.state_dict()
    assert encoder(torch.zeros(2, 3, 16, 16)).shape == (2, 64)
    assert not encoder.training


def test_the_written_config_repeats_the_run(whole: Path, tmp_path: Path) -> None:
    pretrain(out=str(tmp_path / "again"), config=str(whole / "config.yaml"))
    assert losses(tmp_path / "again") == losses(whole)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "3"])
def test_losses_do_not_depend_on_the_workers(whole: Path, folder: Path, tmp_path: Path, workers: str) -> None:
    pretrain(str(folder), out=str(tmp_path / "run"), negatives=["patch"], **{**SMALL, "workers": workers})
    assert losses(tmp_path / "run") == losses(whole)


@pytest.mark.slow
def test_turning_the_dial_off_leaves_the_views_as_they_were(folder: Path, tmp_path: Path) -> None:
    pretrain(str(folder), out=str(tmp_path / "off"), negatives=["patch"], alpha=[0.0], **SMALL)
    pretrain(str(folder), out=str(tmp_path / "none"), **SMALL)
    assert losses(tmp_path / "off") == losses(tmp_path / "none")


def shell(*words: str, cwd: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUEWISE_CACHE": str(cwd / "cache")}
    return subprocess.Popen(
        [sys.executable, "-m", "cuewise", *words],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for_rows(file: Path, rows: int, process: subprocess.Popen[str]) -> None:
    for _ in range(1200):
        if file.exists() and len(file.read_text().splitlines()) >= rows:
            return
        if process.poll() is not None:
            raise AssertionError(process.stderr.read() if process.stderr else "ended early")
        time.sleep(0.05)
    raise AssertionError(f"{file} did not grow to {rows} rows")


MODEL = ["--model", "cuewise/resnet-tiny?width=8", "--size", "16", "--batch-size", "8"]
SETTINGS = ["--set", "loop.log_every=1", "moco.queue=32", "moco.dim=16", "loop.checkpoint_minutes=0.002"]
ARGUMENTS = [*MODEL, "--epochs", "40", "--workers", "1", "--negatives", "patch", *SETTINGS]


@pytest.mark.kill
def test_resume_after_kill_9_continues_with_exactly_the_same_losses(folder: Path, tmp_path: Path) -> None:
    process = shell("pretrain", str(folder), "--out", "killed", *ARGUMENTS, cwd=tmp_path)
    wait_for_rows(tmp_path / "killed" / "metrics.jsonl", 8, process)
    saved = tmp_path / "killed" / "checkpoints" / "last.ckpt"
    while process.poll() is None and not saved.exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert torch.load(saved, weights_only=True)["step"] > 0  # there is something to resume
    assert not (tmp_path / "killed" / "encoder.safetensors.part").exists()
    before = losses(tmp_path / "killed")
    assert len(before) < 240
    again = shell(
        "pretrain",
        str(folder),
        "--out",
        "killed",
        *ARGUMENTS,
        "--resume",
        "--steps",
        str(len(before) + 12),
        cwd=tmp_path,
    )
    assert again.wait(120) == 0, again.stderr.read() if again.stderr else ""
    pretrain(
        str(folder),
        out=str(tmp_path / "straight"),
        negatives=["patch"],
        steps=len(before) + 12,
        **{**SMALL, "epochs": 40},
    )
    steps = [r["step"] for r in read_metrics(tmp_path / "killed" / "metrics.jsonl")]
    assert steps == list(range(1, len(before) + 13))
    assert losses(tmp_path / "killed") == losses(tmp_path / "straight")


@pytest.mark.kill
def test_ctrl_c_checkpoints_and_exits_130(folder: Path, tmp_path: Path) -> None:
    process = shell("pretrain", str(folder), "--out", "stopped", *ARGUMENTS[:-1], cwd=tmp_path)
    wait_for_rows(tmp_path / "stopped" / "metrics.jsonl", 5, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in errors
    assert "Traceback" not in errors
    saved = torch.load(tmp_path / "stopped" / "checkpoints" / "last.ckpt", weights_only=True)["step"]
    assert saved == read_metrics(tmp_path / "stopped" / "metrics.jsonl")[-1]["step"]
    assert load_encoder(str(tmp_path / "stopped")).dim == 64


def test_a_run_is_never_overwritten_by_accident(whole: Path, folder: Path) -> None:
    with pytest.raises(UserError, match=r"--resume.*--overwrite"):
        pretrain(str(folder), out=str(whole), **SMALL)


def test_resume_refuses_another_configuration_and_names_the_difference(whole: Path, folder: Path) -> None:
    with pytest.raises(UserError, match=r"size: 16 → 24"):
        pretrain(str(folder), out=str(whole), resume=True, negatives=["patch"], **{**SMALL, "size": 24})


@pytest.mark.slow
def test_a_run_of_an_older_version_is_resumed(whole: Path, folder: Path, tmp_path: Path) -> None:
    """A setting that its config.yaml does not have yet is at its default; another value of it is another run."""
    old = tmp_path / "old"
    shutil.copytree(whole, old)
    text = (old / "config.yaml").read_text()
    (old / "config.yaml").write_text(text.replace("  checkpointing: false\n", ""))
    assert "checkpointing" not in (old / "config.yaml").read_text()
    pretrain(str(folder), out=str(old), resume=True, **SMALL)
    (old / "config.yaml").write_text(text.replace("  checkpointing: false\n", ""))
    settings = [*SMALL["set"], "loop.checkpointing=true"]
    with pytest.raises(UserError, match=r"loop\.checkpointing: False → True"):
        pretrain(str(folder), out=str(old), resume=True, **{**SMALL, "set": settings})


def test_overwrite_does_not_delete_a_strangers_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(UserError, match="cuewise did not write"):
        pretrain(str(folder), out=str(tmp_path / "thesis"), overwrite=True, **SMALL)
    assert (tmp_path / "thesis" / "chapter.tex").exists()


def test_accumulation_gives_the_same_step(folder: Path, tmp_path: Path) -> None:
    """Without batch norm, two halves of a batch have the gradient of the whole."""
    same = {**SMALL, "model": "cuewise/resnet-tiny?width=8&norm=group", "method": "supervised", "steps": 6}
    pretrain(str(folder), out=str(tmp_path / "one"), **{**same, "set": ["loop.log_every=1"]})
    pretrain(
        str(folder), out=str(tmp_path / "two"), **{**same, "set": ["loop.log_every=1", "loop.accumulate=2"]}
    )
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)


@pytest.mark.slow
def test_a_checkpoint_is_not_counted_as_training(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk makes neither the rate lower nor the wait for data longer."""
    save = loop.save

    def slowly(run: loop.Run) -> None:
        save(run)
        time.sleep(1.2)

    monkeypatch.setattr(loop, "save", slowly)
    settings = [
        *SMALL["set"],
        "loop.log_every=4",
    ]  # six steps per epoch: a window with the end of an epoch in it
    pretrain(str(folder), out=str(tmp_path / "run"), **{**SMALL, "set": settings})
    rows = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if "train/images_per_s" in r]
    assert [r["step"] for r in rows] == [4, 8, 12]
    for row in rows:
        assert row["train/images_per_s"] > 4 * 8 / 1.2
        assert row["train/data_wait"] < 0.9


@pytest.mark.slow
def test_the_layout_in_memory_changes_rounding_only(folder: Path, tmp_path: Path) -> None:
    """Images and weights have it; losses stay."""
    seen: dict[str, set[bool]] = {}
    convolve = torch.nn.Conv2d.forward

    def look(self: torch.nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            seen[name] |= {t.is_contiguous(memory_format=LAYOUTS[name]) for t in (x, self.weight)}
        return convolve(self, x)

    for name in ("channels_last", "contiguous"):
        settings = [*SMALL["set"], "loop.log_every=1", f"loop.layout={name}"]
        seen[name] = set()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.nn.Conv2d, "forward", look)
            pretrain(str(folder), out=str(tmp_path / name), **{**SMALL, "steps": 3, "set": settings})
    assert seen == {"channels_last": {True}, "contiguous": {True}}
    assert losses(tmp_path / "contiguous") == pytest.approx(losses(tmp_path / "channels_last"), rel=1e-3)
    with pytest.raises(UserError, match=r"loop\.layout 'nhwc': channels_last or contiguous"):
        pretrain(str(folder), out=str(tmp_path / "no"), **{**SMALL, "set": ["loop.layout=nhwc"]})


@pytest.mark.slow
def test_views_rendered_by_the_training_process(folder: Path, tmp_path: Path) -> None:
    """The same draws: losses close to those of views from the host; stopped and resumed to the bit; a picture of the views."""
    same = {**SMALL, "negatives": ["patch"], "suppress": "anisotropic", "steps": 4}
    on_device = {**same, "set": [*SMALL["set"], "loop.log_every=1", "loop.views=device"]}
    pretrain(str(folder), out=str(tmp_path / "host"), **{**same, "set": [*SMALL["set"], "loop.log_every=1"]})
    pretrain(str(folder), out=str(tmp_path / "device"), **on_device)
    first = [losses(tmp_path / name)[0] for name in ("host", "device")]
    assert first[0] == pytest.approx(first[1], rel=5e-3)
    assert first[0] != first[1]
    assert (tmp_path / "device" / "views.png").is_file()
    pretrain(str(folder), out=str(tmp_path / "parts"), **{**on_device, "steps": 2, "workers": 1})
    pretrain(str(folder), out=str(tmp_path / "parts"), resume=True, **{**on_device, "workers": 1})
    assert losses(tmp_path / "parts") == losses(tmp_path / "device")


def test_a_broken_file_is_skipped_named_and_counted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "images" / "x"
    bad.mkdir(parents=True)
    for i, file in enumerate(sorted(folder.rglob("*.jpg"))[:12]):
        (bad / f"{i}.jpg").write_bytes(file.read_bytes())
    whole_file = (bad / "3.jpg").read_bytes()
    (bad / "3.jpg").write_bytes(whole_file[: len(whole_file) // 2])  # truncated: seen only when it is decoded
    (bad / "4.jpg").write_bytes(b"")  # empty: seen when the folder is read
    result = pretrain(str(tmp_path / "images"), out=str(tmp_path / "run"), **{**SMALL, "epochs": 4})
    assert result["skipped"] == 2
    skipped = {
        e["path"] for e in json.loads((tmp_path / "run" / "environment.json").read_text())["data"]["skipped"]
    }
    assert any("3.jpg" in p for p in skipped)
    assert any("4.jpg" in p for p in skipped)
    assert "3.jpg" in capsys.readouterr().err


def test_validation_accuracy_while_training(folder: Path, tmp_path: Path) -> None:
    pretrain(str(folder), out=str(tmp_path / "run"), val=[str(folder)], **SMALL)
    rows = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if "val/knn20_t0.07_loo" in r]
    assert len(rows) == 2
    assert all(0 <= r["val/knn20_t0.07_loo"] <= 1 for r in rows)


@pytest.mark.shell
def test_two_processes_on_cpu_from_the_shell(folder: Path, tmp_path: Path) -> None:
    """Fabric starts the second process itself; without batch norm the losses are those of one process."""
    words = [w.replace("width=8", "width=8&norm=group") for w in ARGUMENTS] + ["--steps", "6"]
    images = shutil.copytree(folder, tmp_path / "images")
    for file in (broken := sorted(images.rglob("*.jpg"))[::6]):
        file.write_bytes(file.read_bytes()[:200])
    for name, devices in (("one", "cpu"), ("two", "cpu:2")):
        process = shell("pretrain", str(images), "--out", name, *words, "--devices", devices, cwd=tmp_path)
        result, errors = process.communicate(timeout=180)
        assert process.returncode == 0, errors
        # what any process found broken, said once
        assert [line.split()[0] for line in result.splitlines()].count("skipped") == 1, result
        skipped = json.loads((tmp_path / name / "environment.json").read_text())["data"]["skipped"]
        assert len(skipped) == len(broken)
        assert errors.count("skipped ") == len(broken), errors
    one, two = (
        read_metrics(tmp_path / "one" / "metrics.jsonl"),
        read_metrics(tmp_path / "two" / "metrics.jsonl"),
    )
    assert [r["step"] for r in two] == [r["step"] for r in one]
    # the loss of the whole batch, not that of the first process's half
    assert [r["train/loss"] for r in two] == pytest.approx([r["train/loss"] for r in one], rel=1e-4)
    z1 = torch.load(tmp_path / "one" / "checkpoints" / "last.ckpt", weights_only=True)["method"]
    z2 = torch.load(tmp_path / "two" / "checkpoints" / "last.ckpt", weights_only=True)["method"]
    torch.testing.assert_close(z2["queue.keys"], z1["queue.keys"], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(
        z2["encoder.backbone.conv1.weight"], z1["encoder.backbone.conv1.weight"], rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "supervised"}, "this run's method is supervised"),
        ({"method": "supervised", "set": [], "negatives": ["patch"]}, "has no meaning for supervised"),
        ({"method": "moco", "negatives": ["regular"]}, "has no meaning for moco"),
        ({"alpha": [2.0]}, "add --negatives patch"),
        ({"negatives": ["patch"], "alpha": [1.0, 2.0]}, "give 1 or as many"),
        ({"negatives": ["patch"], "alpha": [-1.0]}, "0 \\(off\\) or more"),
        ({"negatives": ["patch"], "alpha_mode": "sideways"}, "in or out"),
        ({"method": "mocoo"}, "there are: .*byol, .*moco"),
        ({"set": ["optim.lrr=1"]}, "did you mean optim.lr"),
        ({"set": ["moco.quue=1"]}, "did you mean moco.queue"),
        ({"set": ["optim.lr=fast"]}, "must be a number"),
        ({"set": ["nonsense"]}, "dotted.key=value"),
        ({"set": ["data=[a?b:c"]}, "cannot read the value"),
        ({"batch_size": 4096}, "4096"),
        ({"precision": "bf16x"}, "auto, 32, bf16 or 16"),
        ({"devices": "tpu"}, "auto, a number"),
        ({"workers": "many"}, "auto, or a number"),
        ({"model": "torchvision/resnet5000"}, "torchvision has no model"),
        ({"model": "timm/resnet5o"}, "did you mean"),
        ({"model": "nowhere.module:factory"}, "cannot import"),
        ({"crops": "objects"}, "--crops objects: random or object"),
        ({"size": 4}, "8 or more"),
    ],
)
def test_mistakes_are_reported(folder: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        pretrain(str(folder), out=str(tmp_path / "run"), **{**SMALL, **options})


@pytest.mark.slow
def test_object_crops_are_shown_and_counted(tmp_path: Path) -> None:
    """Boxes are drawn into views.png, and images without boxes are counted and said."""
    scenes = ["shapes:scenes?n=48&size=32", "shapes?n=16&size=32"]
    options = {**SMALL, "size": 32, "crops": "object", "set": [*SMALL["set"], "crops.minimum=8"]}
    pretrain(*scenes, out=str(tmp_path / "object"), **options)
    pretrain(*scenes, out=str(tmp_path / "random"), **{**options, "crops": "random", "set": SMALL["set"]})
    rows = [json.loads(x) for x in (tmp_path / "object" / "metrics.jsonl").read_text().splitlines()]
    boxed = [row["train/boxed"] for row in rows if "train/boxed" in row]
    assert boxed
    assert 0.5 < boxed[-1] < 1
    assert "have no box that can be used" in (tmp_path / "object" / "train.log").read_text()
    widths = [Image.open(tmp_path / run / "views.png").width for run in ("object", "random")]
    assert widths[0] > widths[1]  # one more column: whole images with boxes
    card = json.loads((tmp_path / "object" / "encoder.json").read_text())
    assert card["cues"]["crops"]["mode"] == "dilate"


def test_no_data_and_missing_data(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no DATA"):
        pretrain(out=str(tmp_path / "run"), **SMALL)
    with pytest.raises(UserError, match="nowhere"):
        pretrain(str(tmp_path / "nowhere"), out=str(tmp_path / "run"), **SMALL)


def test_config_layers(tmp_path: Path, folder: Path) -> None:
    """File < --set < option."""
    (tmp_path / "c.yaml").write_text(
        "epochs: 7\nbatch_size: 16\noptim: {lr: 1e-2}\nmoco: {queue: 32, dim: 16}\n"
    )
    options = {k: v for k, v in SMALL.items() if k not in ("epochs", "set")}
    pretrain(
        str(folder),
        out=str(tmp_path / "run"),
        config=str(tmp_path / "c.yaml"),
        set=["optim.momentum=0.8"],
        steps=1,
        **options,
    )
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (config["epochs"], config["batch_size"]) == (7, 8)
    assert (config["optim"]["lr"], config["optim"]["momentum"]) == (0.01, 0.8)
    assert config["moco"]["queue"] == 32


def test_collapse_and_a_stuck_loss_are_reported() -> None:
    from cuewise.train.dials import Watch

    watch = Watch(chance_loss=8.32, warm=100)
    flat = {"dials/feature_std": 0.01, "dials/effective_rank": 1.1}
    said = [line for i in range(10) for line in watch.look(i, 5.0, flat)]
    assert len(said) == 1
    assert "collapsing" in said[0]
    fine = {"dials/feature_std": 0.9, "dials/effective_rank": 40.0}
    watch = Watch(chance_loss=8.32, warm=100)
    assert not [line for i in range(0, 100, 10) for line in watch.look(i, 8.32, fine)]
    said = [line for i in range(100, 200, 10) for line in watch.look(i, 8.31, fine)]
    assert len(said) == 1
    assert "chance" in said[0]


def test_a_small_spread_is_no_collapse_where_nothing_spreads_embeddings() -> None:
    from cuewise.train.dials import Watch
    from tests.methods.conftest import small_method

    def warned(method: str, spread: float, **settings: Any) -> bool:
        watch = Watch(None, warm=100, least_spread=small_method(method, **settings).least_spread)
        dials = {"dials/feature_std": spread, "dials/effective_rank": 5.0}
        return any("collapsing" in line for i in range(10) for line in watch.look(i, 1.0, dials))

    assert warned("can", 0.074)
    assert not warned("mae", 0.074)  # of a healthy run
    assert not warned("can", 0.074, weights=[0, 1, 0])
    assert warned("mae", 0.005)


def test_a_run_made_to_collapse_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretrain(str(folder), out=str(tmp_path / "run"), **{**SMALL, "model": "tests.train.flat:flat"})
    assert "collapsing" in capsys.readouterr().err
    assert "collapsing" in (tmp_path / "run" / "train.log").read_text()


def test_the_command_can_be_pasted_back(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["cuewise", "reproduce", "--arms", "α = 2 separate", "it's", "--out", "a b"]
    monkeypatch.setattr(sys, "argv", words)
    assert shlex.split(environment_of_run()["command"]) == words


@pytest.mark.parametrize(
    ("asked", "cores", "threads", "count", "between"),
    [
        ("auto", 2, 2, 2, True),  # the step takes both cores: workers compute when it does not
        ("auto", 2, 1, 1, False),
        ("1", 2, 2, 1, False),  # one worker alone would leave a core idle between the steps
        ("2", 2, 2, 2, True),
        ("auto", 64, 64, 8, False),
    ],
)
def test_loader_processes_compute_between_steps_where_training_takes_all_cores(
    monkeypatch, asked, cores, threads, count, between
):
    for name in ("cuewise.data.loader", "cuewise.train.pretrain"):
        monkeypatch.setattr(f"{name}.usable_cores", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    data = open_data("shapes?n=32&size=16")
    settings = {
        "model": "cuewise/resnet-tiny?width=8",
        "size": 16,
        "batch_size": 8,
        "workers": asked,
        "epochs": 1,
    }
    loader = build(
        complete(resolve(settings), len(data)), Path(), data, Fabric(accelerator="cpu", devices=1)
    ).loader
    assert (loader.workers, loader.between_steps) == (count, between)


def test_resume_with_another_method_names_both(folder, tmp_path):
    pretrain(
        str(folder), out=tmp_path / "run", method="simclr", **{**SMALL, "set": ["loop.log_every=1"]}, steps=1
    )
    with pytest.raises(
        UserError, match=r"--resume with another configuration \(method: simclr → byol\); undo the change"
    ):
        pretrain(str(folder), out=tmp_path / "run", method="byol", resume=True, **{**SMALL, "set": []})
