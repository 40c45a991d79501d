"""What the study of tuning measures, against the classifier asked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from cuewise.audits.decisions import Decision
from cuewise.cues.corruptions import corrupt, corruption_rng
from cuewise.data import open_data
from cuewise.studies.jobs import job_of, run_job
from cuewise.studies.labs import Lab, tuning
from cuewise.studies.measures import TrainedArm, find_measure
from cuewise.studies.measures.cues import CORRUPTIONS, SEVERITY
from cuewise.studies.measures.tuned import PHOTOGRAPH, biases
from cuewise.studies.tune import NONE, arms

pytestmark = pytest.mark.slow

KNOWN = {"n02690373": 404, "n01440764": 0}  # airliner and tench among ImageNet's outputs


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A classifier of 1000 outputs and photographs of two of them, at the size that it is asked at."""
    place, rng = tmp_path_factory.mktemp("tuning"), np.random.default_rng(0)
    torch.manual_seed(0)
    save_file(timm.create_model("test_efficientnet", num_classes=1000).state_dict(), place / "w.safetensors")
    for name in KNOWN:
        (place / "photos" / name).mkdir(parents=True)
        for i in range(24):
            small = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8))
            small.resize((PHOTOGRAPH, PHOTOGRAPH), Image.Resampling.BICUBIC).save(
                place / "photos" / name / f"{i}.png"
            )
    photos = str(place / "photos")
    return tuning(f"timm/test_efficientnet:{place}/w.safetensors", [photos], [photos], [], [])


@pytest.fixture(scope="module")
def start(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> TrainedArm:
    """The arm that moves nothing."""
    settings = next(a.settings for a in arms(lab) if a.name == NONE)
    job = job_of(lab.config(settings, "tune", 0, 1), tmp_path_factory.mktemp("arms"), ())
    run_job(job, lab)
    return TrainedArm(Path(job.folder), lab)


def network(lab: Lab) -> torch.nn.Module:
    """The classifier, outside of the studies."""
    net = timm.create_model("test_efficientnet", num_classes=1000).eval()
    net.load_state_dict(load_file(lab.base["model"].partition(":")[2]))
    return net


def normalised(net: torch.nn.Module, images: list[np.ndarray]) -> torch.Tensor:
    mean, std = (np.array(net.pretrained_cfg[k]) for k in ("mean", "std"))  # type: ignore[index]
    return torch.from_numpy((np.stack(images) / 255 - mean) / std).float().permute(0, 3, 1, 2)


def test_photographs_are_asked_of_the_own_classifier(lab: Lab, start: TrainedArm) -> None:
    """Over all classes, over every second one, and over the others; all classes stay in the choice."""
    net, data = network(lab), open_data(lab.sets["clean"])
    sets = {**lab.sets, "conflict": lab.sets["clean"]}  # names without cues: nothing to decide
    found = find_measure("own").take(TrainedArm(start.folder, replace(lab, sets=sets)))
    assert data.labels is not None
    with torch.inference_mode():
        answers = net(normalised(net, [data.image(i) for i in range(len(data))]))
    right = answers[:, [KNOWN[name] for name in data.classes]].argmax(1).numpy() == data.labels
    first = data.labels == data.classes.index("n01440764")  # the first of ImageNet's outputs that are asked
    assert found["own/accuracy"] == pytest.approx(right.mean())
    assert found["own/accuracy/chosen"] == pytest.approx(right[first].mean())
    assert found["own/accuracy/confirmed"] == pytest.approx(right[~first].mean())
    assert right[first].mean() != right[~first].mean()
    assert np.isnan(found["shape_bias"])


def test_halves_of_the_conflicts() -> None:
    """Images of one class are no conflicts, and are left out before the halves are made."""
    rng, names = np.random.default_rng(0), np.array(["cat", "dog", "bear"])
    decisions = [Decision(f"{i}.png", *rng.choice(names, 3).tolist()) for i in range(60)]
    kept = [d for d in decisions if d.shape != d.texture]
    assert len(kept) < len(decisions)
    expected = {}
    for name, half in (("", kept), ("/chosen", kept[::2]), ("/confirmed", kept[1::2])):
        shape, texture = (sum(getattr(d, cue) == d.response for d in half) for cue in ("shape", "texture"))
        expected[f"shape_bias{name}"] = shape / (shape + texture)
    assert len(set(expected.values())) == 3
    expected["shape_accuracy"] = sum(d.shape == d.response for d in kept) / len(kept)
    expected["texture_accuracy"] = sum(d.texture == d.response for d in kept) / len(kept)
    assert biases(decisions) == pytest.approx(expected)


def test_corrupted_photographs_are_asked_of_the_own_classifier(lab: Lab, start: TrainedArm) -> None:
    found = find_measure("own_corrupted").take(start)
    net, data = network(lab), open_data(lab.sets["clean"])
    assert data.labels is not None
    outputs, shares = [KNOWN[name] for name in data.classes], []
    for name in CORRUPTIONS:
        rngs = [corruption_rng(0, data.name(i), name, SEVERITY) for i in range(len(data))]
        images = [
            corrupt(data.image(i), name, SEVERITY, rng, scale_to_image=True) for i, rng in enumerate(rngs)
        ]
        with torch.inference_mode():
            answers = net(normalised(net, images))[:, outputs].argmax(1).numpy()
        shares.append(float((answers == data.labels).mean()))
        assert found[f"own/{name}"] == pytest.approx(shares[-1])
    assert found["own/corrupted"] == pytest.approx(np.mean(shares))
    assert len(set(shares)) > 1  # else the order of the corruptions would not show
