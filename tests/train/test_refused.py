"""Settings that could not act, or not as they read, are refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cuewise import pretrain, tune
from cuewise.config import resolve
from cuewise.data import open_data
from cuewise.data.loader import check_sizes
from cuewise.errors import UserError
from cuewise.train.guard import Guard
from cuewise.train.pretrain import check_share
from cuewise.train.shown import build_views
from tests.audits.small_models import photos

TINY: dict[str, Any] = {"model": "cuewise/resnet-tiny?width=8", "size": 16, "batch_size": 8, "workers": "0"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"optim": {"schedule": "cosin"}}, "cosine, step, constant"),
        ({"optim": {"schedule": "step", "milestones": [120, 160]}}, "epoch 120 of 200 is 0.6"),
        ({"optim": {"schedule": "step", "milestones": [1]}}, "between 0 and 1"),
        ({"optim": {"clip": -1.0}}, "optim.clip"),
        ({"optim": {"reference_batch": 0}}, "optim.reference_batch"),
        ({"optim": 0.1}, "optim is a group of settings"),
        ({"moco": 512}, "moco is a group of settings"),
        ({"suppress": 3}, "3 is not a name"),
        ({"steps": 0}, "--steps 0: must be 1 or more"),
        ({"steps": -4}, "--steps -4"),
        ({"method": "supervised", "views": {"jitter": [0.4, 0.4, 0.4, 0.1]}}, "views.jitter has no meaning"),
    ],
)
def test_settings(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        resolve(given)


@pytest.mark.parametrize(
    ("views", "says"),
    [
        ({"scale": [0.2]}, "give 2 numbers"),
        ({"scale": [0.2, 5.0]}, "1 at most"),
        ({"jitter": [0.4]}, "give 4 numbers"),
        ({"style_strength": [0.5], "style_p": 0.5}, "give 2 numbers"),
    ],
)
def test_ranges_of_views(views: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        build_views(resolve({**TINY, "views": views}), open_data("shapes?n=8&size=16"))


def test_one_image_has_no_statistics() -> None:
    with pytest.raises(UserError, match="use at least 8"):
        check_share(resolve({**TINY, "method": "simclr", "batch_size": 4, "loop": {"accumulate": 4}}), 1)
    with pytest.raises(UserError, match="give at least 2 images"):
        check_sizes(1, 8, 1, drop_last=True)
    with pytest.raises(UserError, match="give --batch-size 5 or less"):
        check_sizes(5, 8, 1, drop_last=True)


def test_epochs_that_are_typed_win_over_the_budget_of_a_file(tmp_path: Path) -> None:
    data = "shapes?n=24&size=16"
    pretrain(data, out=tmp_path / "first", set=["loop.budget=4"], **TINY)
    pretrain(out=tmp_path / "second", config=tmp_path / "first" / "config.yaml", epochs=3)
    config = yaml.safe_load((tmp_path / "second" / "config.yaml").read_text())
    assert (config["epochs"], config["loop"]["budget"]) == (3, None)
    assert json.loads((tmp_path / "second" / "encoder.json").read_text())["step"] == 9
    for verb in (lambda **o: pretrain(data, **o), lambda **o: tune("cuewise/resnet-tiny", data, **o)):
        with pytest.raises(UserError, match="exclude each other"):
            verb(out=tmp_path / "third", epochs=1, set=["loop.budget=4"])


def test_a_run_with_a_budget_is_extended_by_a_larger_one(tmp_path: Path) -> None:
    data, run = "shapes?n=24&size=16", tmp_path / "run"
    pretrain(data, out=run, set=["loop.budget=4"], **TINY)
    for options in ({"epochs": 5}, {"set": ["loop.budget=4"]}):
        with pytest.raises(UserError, match="larger budget than the 4 steps"):
            pretrain(data, out=run, resume=True, extend=True, **options)
    pretrain(data, out=run, resume=True, extend=True, set=["loop.budget=7"])
    assert json.loads((run / "encoder.json").read_text())["step"] == 7


def test_a_resumed_guard_looks_at_the_images_of_the_first_call(tmp_path: Path) -> None:
    data, run = "shapes?n=24&size=16", tmp_path / "run"
    pretrain(data, out=tmp_path / "start", steps=1, epochs=1, **TINY)
    options: dict[str, Any] = {**TINY, "model": str(tmp_path / "start"), "epochs": 2, "out": run}
    pretrain(data, val="shapes?n=16&size=16&seed=1", steps=3, **options)
    for other in ("shapes?n=16&size=16&seed=2", "shapes?n=20&size=16&seed=1"):
        with pytest.raises(UserError, match="give --val as in the first call"):
            pretrain(data, val=other, resume=True, **options)
    pretrain(data, val="shapes?n=16&size=16&seed=1", resume=True, **options)


def test_a_guard_knows_images_by_their_content(tmp_path: Path) -> None:
    one, two = (
        Guard(open_data(str(photos(tmp_path / n, 2, seed=s))), True, 3.0) for n, s in (("a", 0), ("b", 1))
    )
    assert one.data.fingerprint()["hash"] == two.data.fingerprint()["hash"]  # the same names
    assert one.images != two.images
