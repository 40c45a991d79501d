"""Nothing an option says is silently ignored: it changes the numbers of a run, or it is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from cuewise.config import Config, Labels, Optim, ViewSettings, complete, merge, resolve
from cuewise.data import Dataset, open_data
from cuewise.errors import UserError
from cuewise.methods import methods
from cuewise.train.fabric import Fabric
from cuewise.train.labels import with_labels
from cuewise.train.loop import optimise
from cuewise.train.optim import lr_factor, scaled_lr
from cuewise.train.pretrain import build
from cuewise.views.object_crops import CropSettings
from tests.methods.conftest import SMALL, TRANSFORMERS

STEPS, BATCH = 2, 16
# their banks are filled by the first epoch: the length of the run shows one step later
LATER = ("cmc", "insdis")
METHODS = sorted(methods())

# another value of every setting; a method's setting that is not here fails the test
SETTINGS: dict[str, Any] = {
    "queue": 24,
    "temperature": 0.9,
    "momentum": 0.3,
    "dim": 8,
    "groups": None,  # acts from 64 images on: tests/methods/test_moco.py
    "statistics": "shared",
    "center": 1.0,
    "negatives_gradient": True,
    "negatives_stop_gradient": True,
    "hidden": 12,
    "plus_plus": True,
    "mask_equal": True,
    "heads": 3,
    "smoothing": 0.3,
    "images": 100,
    "noise": 5,
    "loss": "softmax",
    "most": None,  # the bound of `noise`, where that is not given
    "beta": 0.9,
    "weight": 0.9,
    "warmup": 0.9,
    "curvature": 0.5,
    "decoupled": True,
    "riemannian": False,
    "clip": 0.1,
    "base": "densecl",
    "dense": 0.9,
    "boxes": "proposals",
    "smallest": 22,
    "weights": [0.5, 0.4, 0.1],
    "mask": 0.25,
    "sigma": 0.3,
    "raw_sigma": True,
    "views": 1,  # refused while there is contrast: tests/methods/test_can.py
    "decoder_width": 64,
    "decoder_depth": 2,
    "normalise_target": True,
    "permutations": 12,
    "jitter": 1,
    "patchwise": True,  # refused without --suppress: tests/methods/test_jigsaw.py
    "keep": 0.0,
    "pull": 0.3,
    "contrast": 0.2,
    "target": "robust",
    "steps": 9,
    "kappa": 60.0,
    "patch": 34,
    "critic_width": 12,
    "freeze": True,  # with a generator: tests/train/test_pix2pix_run.py
}
ON_SCENES = ("boxes", "smallest")  # settings that act on images with annotated objects
CROPS: dict[str, Any] = {
    "mode": "scene",
    "boxes": "proposals",
    "dilation": 0.9,
    "reference": "box",
    "radius": 4.0,
    "minimum": 40,
}
NEEDS_NEGATIVES = ("statistics", "center", "negatives_gradient", "negatives_stop_gradient")
DIALS: dict[str, Any] = {
    "negatives": ["patch"],
    "alpha": [0.7],
    "alpha_mode": "out",
    "num_negatives": 2,
    "patch_size": "3:5",
    "patch_augment": ["hflip"],
    "leave_out": ["color"],
    "suppress": "gaussian",
    "layers": "last:1",
    "low_rank": 2,
    "generator": "nowhere",  # tests/train/test_pix2pix_run.py
    "color_jitter": False,
    "hard": {"name": "ifm"},
    "crops": {"name": "object"},
    "size": 20,
    "epochs": 1,
    "batch_size": 8,
    "seed": 3,
    "model": "cuewise/resnet-tiny?width=4",
}
VIEWS: dict[str, Any] = {
    "scale": [0.9, 1.0],
    "blur_p": 0.9,
    "gray_p": 0.9,
    "jitter": [0.1, 0.1, 0.1, 0.0],
    "rotation_p": 0.5,
    "style_p": 0.5,
    "style_strength": [0.5, 0.6],
    "styles": "nowhere",
    "style_copies": "nowhere",
    "style_count": 3,
    "same": ["flip"],
    "scale_blur": False,
    "overlap": "avoid",
}
OPTIM: dict[str, Any] = {
    "name": "adamw",
    "lr": 0.5,
    "reference_batch": 16,
    "momentum": 0.1,
    "betas": [0.5, 0.6],
    "weight_decay": 0.1,
    "decay_all": False,
    "schedule": "constant",
    "milestones": [0.1],
    "warmup_epochs": 1.0,
    "warmup_share": 0.5,
    "clip": 1e-3,
    "layer_decay": 0.5,
    "head_warmup": 0.5,
}
# what is where a run is computed, not what; and what is tested with files of its own
ELSEWHERE = (
    "data",
    "val",
    "method",
    "devices",
    "num_nodes",
    "precision",
    "workers",
    "steps",
    "loop",
    "settings",
)
ELSEWHERE += ("texture_data", "views", "optim", "labels")
ELSEWHERE += ("watch", "watch_every", "max_drop", "stop_on_drop", "log")  # tests/train/test_tune.py
LABELS: dict[str, Any] = {
    "noise": 0.5,
    "gold": 0.5,
    "correction": "glc",  # both phases: tests/train/test_label_noise.py
    "use": "silver",
    "restart": "same",
    "seed": 7,
}


@pytest.fixture(scope="module")
def data(folder: Path) -> Dataset:
    return open_data(str(folder))


@pytest.fixture(scope="module")
def scenes() -> Dataset:
    return open_data("shapes:scenes?n=32&size=64&objects=3")


def numbers(data: Dataset, *options: dict[str, Any]) -> Iterator[str]:
    """A digest of the loss and the parameters after each of a few steps."""
    base = {
        "model": "cuewise/resnet-tiny?width=8",
        "size": 16,
        "epochs": 2,
        "batch_size": BATCH,
        "workers": "0",
    }
    config: Config = complete(resolve(base, *options), len(data))
    data = with_labels(config, data)
    run = build(config, Path(), data, Fabric(accelerator="cpu", devices=1))
    run.method.train()
    for batch in run.loader.batches():
        factor = lr_factor(config.optim, run.step, run.loader.steps_per_epoch, run.total)
        for group in run.optimizer.param_groups:
            group["lr"] = scaled_lr(config.optim, config.batch_size) * factor
        found = hashlib.sha256(str(float(optimise(run, batch).loss)).encode())
        for p in run.method.parameters():
            found.update(p.detach().numpy().tobytes())
        yield found.hexdigest()
        run.step += 1
        if run.step == STEPS + (config.method in LATER):
            break


def small(name: str) -> dict[str, Any]:
    """The method with small heads, and what it cannot do without."""
    kept = {k: v for k, v in SMALL[name].items() if k != "images"}
    base: dict[str, Any] = {"method": name, name: kept}
    if name in TRANSFORMERS:
        base["model"] = "cuewise/vit-tiny?width=64&depth=1"
    if methods()[name].backbone:
        base["model"] = f"{methods()[name].backbone}?width=8"
    return base | ({"leave_out": ["color", "rotation"]} if methods()[name].leaves_out else {})


KNOWN: dict[str, list[str]] = {}  # numbers of the unchanged runs


def acts_or_is_refused(data: Dataset, base: dict[str, Any], change: dict[str, Any]) -> bool:
    """True where it acts; an error where it is neither. What shows after one step is not asked for the next."""
    key = json.dumps([base, data.fingerprint()["hash"]], sort_keys=True)
    if key not in KNOWN:
        torch.manual_seed(0)
        KNOWN[key] = list(numbers(data, base))
    torch.manual_seed(0)
    try:
        changed: list[str] = []
        for number in numbers(data, base, change):
            changed.append(number)
            if changed != KNOWN[key][: len(changed)]:
                return True
    except UserError:
        return False
    assert changed != KNOWN[key], f"{change} changes nothing for {base['method']}"
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "setting"),
    [(n, f.name) for n in METHODS for f in dataclasses.fields(methods()[n].Settings)],
)
def test_every_setting_of_every_method_acts(data: Dataset, scenes: Dataset, name: str, setting: str) -> None:
    assert setting in SETTINGS, f"give another value of {name}.{setting} in this file"
    value, kind = SETTINGS[setting], methods()[name]
    if value is None or (name, setting) == ("tune", "images"):  # which images: tests/train/test_tune.py
        return
    base = small(name)
    if setting in NEEDS_NEGATIVES and "patch" in kind.negative_kinds():
        base["negatives"] = ["patch"]
    if name == "moco++" and setting == "plus_plus":
        value = False
    if name == "cmc" and setting == "loss":
        value = "nce"
    if setting == "dense":
        base[name] = {**base[name], "base": "densecl"}
    acts = acts_or_is_refused(scenes if setting in ON_SCENES else data, base, {name: {setting: value}})
    assert acts or setting not in (*ON_SCENES, "base", "dense")


@pytest.mark.parametrize("key", [f.name for f in dataclasses.fields(CropSettings)])
@pytest.mark.slow
def test_every_setting_of_object_crops_acts(scenes: Dataset, key: str) -> None:
    assert key in CROPS, f"give another value of crops.{key} in this file"
    crops = {"name": "object", "mode": "shift" if key == "radius" else "dilate"}
    base = small("moco") | {"crops": crops}
    assert acts_or_is_refused(scenes, base, {"crops": {**crops, key: CROPS[key]}})


@pytest.mark.slow
@pytest.mark.parametrize("dial", [f.name for f in dataclasses.fields(Config) if f.name not in ELSEWHERE])
@pytest.mark.parametrize("name", METHODS)
def test_every_dial_acts_or_is_refused(data: Dataset, name: str, dial: str) -> None:
    assert dial in DIALS, f"give another value of {dial} in this file"
    if (name, dial) == ("pix2pix", "epochs"):
        return  # its rate is constant: only the number of steps follows
    base, value = small(name), DIALS[dial]
    if dial == "leave_out" and methods()[name].leaves_out:
        value = ["rotation"]
    if dial == "alpha_mode" and name == "byol":
        value = "in"
    acts_or_is_refused(data, base, {dial: value})
    if "patch" in methods()[name].negative_kinds() and dial not in (
        "negatives",
        "crops",
        "size",
        "epochs",
        "seed",
        "model",
    ):
        acts_or_is_refused(data, {**base, "negatives": ["patch"]}, {dial: value})


@pytest.mark.slow
@pytest.mark.parametrize("key", [f.name for f in dataclasses.fields(ViewSettings)])
@pytest.mark.parametrize(
    "extra", [{}, {"negatives": ["patch"], "views": {"style_p": 0.5}}], ids=["plain", "dialled"]
)
def test_every_setting_of_views_acts_or_is_refused(data: Dataset, extra: dict[str, Any], key: str) -> None:
    assert key in VIEWS, f"give another value of views.{key} in this file"
    base = merge(small("simclr"), extra)
    value = 0.9 if key == "style_p" else VIEWS[key]
    acts_or_is_refused(data, base, {"views": {**extra.get("views", {}), key: value}})


@pytest.mark.slow
@pytest.mark.parametrize("key", [f.name for f in dataclasses.fields(Optim)])
@pytest.mark.parametrize("optimiser", ["sgd", "adam", "lars"])
def test_every_setting_of_the_optimiser_acts_or_is_refused(data: Dataset, optimiser: str, key: str) -> None:
    assert key in OPTIM, f"give another value of optim.{key} in this file"
    schedule = "step" if key == "milestones" else "cosine"
    base = small("simclr") | {
        "optim": {"name": optimiser, "lr": 0.1, "weight_decay": 0.01, "schedule": schedule}
    }
    value = True if (optimiser, key) == ("adam", "decay_all") else OPTIM[key]
    acts_or_is_refused(data, base, {"optim": {**base["optim"], key: value}})


@pytest.mark.parametrize("key", [f.name for f in dataclasses.fields(Labels)])
@pytest.mark.parametrize("extra", [{}, {"noise": 0.8, "gold": 0.3}], ids=["plain", "noisy"])
@pytest.mark.slow
def test_every_setting_of_labels_acts_or_is_refused(data: Dataset, extra: dict[str, Any], key: str) -> None:
    assert key in LABELS, f"give another value of labels.{key} in this file"
    base = small("supervised") | {"labels": extra}
    acted = acts_or_is_refused(data, base, {"labels": {**extra, key: LABELS[key]}})
    assert acted == (key == "noise" or (bool(extra) and key != "restart"))


def test_what_is_reported_of_negatives_without_any(data: Dataset) -> None:
    for option, value in (("alpha", 2.0), ("alpha_mode", "in"), ("num_negatives", 2), ("patch_size", "3:5"),
                          ("patch_augment", ["hflip"]), ("texture_data", ["x"])):  # fmt: skip
        with pytest.raises(UserError, match=r"add --negatives (patch|texture)"):
            resolve({option: value})
    for given, flag in (
        ({"patch_size": "3:5"}, "--patch-size"),
        ({"views": {"overlap": "avoid"}}, "views.overlap"),
    ):
        with pytest.raises(UserError, match=f"^{flag} is for patch negatives: add --negatives patch"):
            resolve(given)
    with pytest.raises(UserError, match="one regular negative per image"):
        resolve({"method": "byol", "negatives": ["regular"], "num_negatives": 4})
    with pytest.raises(UserError, match="has no meaning for byol"):
        resolve({"method": "byol", "negatives": ["patch"], "alpha_mode": "in"})
    with pytest.raises(UserError, match=r"moco\.queue 0: must be 1 or more"):
        resolve({"moco": {"queue": 0}})
    assert complete(resolve({"moco": {"momentum": 0.0}}), 1000).settings["momentum"] == 0.0
