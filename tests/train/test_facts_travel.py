"""What a method needs of an image is in its batch as it is in the view, or the run is refused before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from cuewise import UserError, pretrain
from cuewise.checks.method import random_batch
from cuewise.data import Batch, open_data
from cuewise.encoders.heads import unit
from cuewise.methods import FACTS, Method, MethodSettings, Step
from cuewise.train.cost import made_up
from cuewise.train.reload import load_method

SMALL: dict[str, Any] = {"model": "cuewise/resnet-tiny?width=8", "size": 16, "batch_size": 4, "workers": "0"}
SCENES = "shapes:scenes?n=4&size=32"


class Curious(Method):
    """Keeps what it is given."""

    name, summary, citation = "curious", "keeps what it is given", "this test"
    views: ClassVar[dict[str, str]] = {"query": "moco-v2"}
    optim: ClassVar[dict[str, Any]] = {"name": "sgd", "lr": 0.1, "reference_batch": 4, "weight_decay": 0.0}
    needs = FACTS
    Settings = MethodSettings
    seen: ClassVar[list[Batch]] = []

    def forward(self, batch: Batch) -> Step:
        self.seen.append(batch)
        z: Tensor = self.encoder(batch.views["query"])
        return Step(z.square().mean(), unit(z.detach()), unit(z.detach()))


HERE = "tests.train.test_facts_travel:Curious"


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    Curious.seen.clear()
    pretrain(SCENES, out=tmp_path / "run", method=HERE, steps=1, **SMALL)
    return Curious.seen[0]


def test_every_fact_arrives(batch: Batch) -> None:
    data, facts = open_data(SCENES), batch.facts
    order = batch.index.tolist()
    assert facts["name"] == [data.name(i) for i in order]
    expected = np.stack([data.facts(i).labels for i in order])
    np.testing.assert_array_equal(facts["labels"], expected)
    assert torch.equal(batch.label, torch.from_numpy(data.labels[order]))
    assert facts["query.mask"].shape == (4, 16, 16)
    for boxes, i in zip(facts["query.boxes"], order):
        assert set(boxes.classes) <= set(data.facts(i).boxes.classes)
        assert boxes.corners.max(initial=0) <= 16


def test_a_made_up_batch_has_every_fact_in_its_form(batch: Batch, tmp_path: Path) -> None:
    """`cuewise cost` and `cuewise check` ask a method that needs them."""
    method = load_method(tmp_path / "run")
    for found in (made_up(method, 4, torch.device("cpu")), random_batch(method, 4, 16)):
        assert set(batch.facts) <= set(found.facts)
        for name, fact in batch.facts.items():
            other = found.facts[name]
            assert type(other) is type(fact)
            assert len(other) == 4
            if isinstance(fact, Tensor):
                assert (other.dtype, other.ndim) == (fact.dtype, fact.ndim)
            else:
                assert type(other[0]) is type(fact[0])
        method(found).loss.backward()


@pytest.mark.parametrize(
    ("need", "what"), [("boxes", "boxes"), ("mask", "masks"), ("labels", "several labels per image")]
)
def test_what_is_not_known_is_refused(
    need: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Curious, "needs", (need,))
    with pytest.raises(UserError, match=f"needs {what}"):
        pretrain("shapes?n=4&size=32", out=tmp_path / "run", method=HERE, steps=1, **SMALL)
    assert not (tmp_path / "run").exists()
