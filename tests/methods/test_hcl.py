"""HCL: its loss from its pieces, gradients, the ball queue, which images it takes, and its head on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cuewise import UserError, pretrain
from cuewise.checks.method import train
from cuewise.data import Boxes, Facts, Sample, open_data
from cuewise.encoders import load_encoder
from cuewise.encoders.heads import unit
from cuewise.encoders.spaces import read_heads
from cuewise.objectives.hyperbolic import exp0
from cuewise.objectives.nce import extended_nce
from cuewise.objectives.scene_object import scene_object_loss
from cuewise.views.object_crops import GivenBoxes
from cuewise.views.scene_objects import SceneObjects, large_enough, whole, widened, with_scenes
from tests.methods.conftest import small_batch, small_method


def test_the_loss_is_both_orders_of_moco_and_the_scene_object_loss() -> None:
    m: Any = small_method("hcl", norm="group", weight=0.5)
    given = small_batch(m)
    m.begin_step(0.0)
    with torch.no_grad():
        q1, q2, s = (m.projector(m.encoder(given.views[r])) for r in ("query", "key", "scene"))
        k1, k2, o = (m.key_network(given.views[r]) for r in ("query", "key", "object"))
        q1, q2, k1, k2 = map(unit, (q1, q2, k1, k2))
        first, second = m.queue.keys
        euclidean = [
            extended_nce((q * k).sum(1), q @ queue.T, tau=0.2)
            for q, k, queue in ((q1, k2, second), (q2, k1, first))
        ]
        ball = scene_object_loss(exp0(s, 0.05), exp0(o, 0.05), m.objects.keys, c=0.05, tau=0.2)
    step = m(given)
    torch.testing.assert_close(step.loss.detach(), sum(euclidean) / 2 + 0.5 * ball)
    held_keys, held_objects = m.queue.held, m.objects.held
    m.after_backward()
    torch.testing.assert_close(m.queue.keys[0, :8], held_keys[:, 0])
    torch.testing.assert_close(m.queue.keys[1, :8], held_keys[:, 1])
    torch.testing.assert_close(m.objects.keys[:8], held_objects)


def dense_loss(
    q: torch.Tensor, k: torch.Tensor, f_q: torch.Tensor, f_k: torch.Tensor, queue: torch.Tensor
) -> float:
    """DenseCL's loss of cells in a loop: q, k B×C×S projections, f_q, f_k B×F×S backbone features."""
    q, k, f_q, f_k = (x.double() / x.double().norm(dim=1, keepdim=True) for x in (q, k, f_q, f_k))
    losses = []
    for b in range(len(q)):
        for i in range(q.shape[2]):
            j = int((f_q[b, :, i] @ f_k[b]).argmax())
            logits = torch.cat([(q[b, :, i] @ k[b, :, j])[None], queue.double() @ q[b, :, i]]) / 0.2
            losses.append(-float(torch.log_softmax(logits, 0)[0]))
    return float(np.mean(losses))


def test_on_densecl_cells_of_objects_are_compared_too() -> None:
    m: Any = small_method("hcl", norm="group", weight=0.5, base="densecl", dense=0.3)
    plain: Any = small_method("hcl", norm="group", weight=0.5)
    given = small_batch(m)
    m.begin_step(0.0)
    with torch.no_grad():
        step = m(given)
        maps = {r: m.encoder.feature_map(given.views[r]) for r in ("query", "key")}
        theirs = {r: m.key_network[0].feature_map(given.views[r]) for r in ("query", "key")}
        cells = 0.0
        for number, (own, other) in enumerate((("key", "query"), ("query", "key"))):
            d_q, d_k = m.dense(maps[own]).flatten(2), m.key_network[2](theirs[other]).flatten(2)
            cells += (
                dense_loss(d_q, d_k, maps[own].flatten(2), theirs[other].flatten(2), m.cells.keys[number]) / 2
            )
        # without cells: the same encoder, projector and queues
        wanted, _ = plain.load_state_dict(m.state_dict(), strict=False)
        assert not wanted
        plain.begin_step(0.0)
        whole = plain(given)
    expected = 0.7 * float(whole.extra["euclidean"]) + 0.3 * cells
    assert float(step.extra["euclidean"]) == pytest.approx(expected, abs=1e-4)
    assert float(step.loss) == pytest.approx(expected + 0.5 * float(whole.extra["hyperbolic"]), abs=1e-4)
    m.after_backward()
    pooled = m.key_network[2](theirs["key"]).flatten(2)
    pooled = unit((pooled / pooled.norm(dim=1, keepdim=True)).mean(2))
    torch.testing.assert_close(m.cells.keys[1, :8], pooled)


def test_golden_losses_on_densecl() -> None:
    """Four steps from a fixed seed give the recorded losses."""
    golden = json.loads((Path(__file__).parents[1] / "contract" / "golden_losses.json").read_text())
    losses = train(small_method("hcl", base="densecl"))
    assert losses == pytest.approx(golden["hcl-densecl"], rel=2e-3)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"base": "byol"}, "hcl.base byol: moco or densecl"),
        ({"dense": 0.5}, "hcl.dense is for hcl.base=densecl"),
        ({"base": "densecl", "dense": 1.5}, "hcl.dense"),
    ],
)
def test_bases_are_checked(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        small_method("hcl", **settings)


@pytest.mark.slow
def test_a_stopped_run_on_densecl_resumes_exactly(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "method": "hcl",
        "model": "cuewise/resnet-tiny?width=8",
        "size": 32,
        "batch_size": 8,
        "epochs": 2,
        "workers": "0",
        "set": ["hcl.base=densecl", "hcl.queue=32", "hcl.dim=16", "hcl.smallest=5", "loop.log_every=1"],
    }
    for name, parts in (("whole", (None,)), ("parts", (2, None))):
        for steps in parts:
            pretrain("shapes:scenes?n=24&size=32&objects=3", out=str(tmp_path / name), steps=steps,
                     resume=(tmp_path / name).exists(), **options)  # fmt: skip
    whole, parts = (
        torch.load(tmp_path / n / "checkpoints" / "last.ckpt", weights_only=True)["method"]
        for n in ("whole", "parts")
    )
    assert whole.keys() == parts.keys()
    for key, value in whole.items():
        torch.testing.assert_close(parts[key], value, rtol=0, atol=0)


def test_gradient_flows_through_the_scene_and_not_through_its_object() -> None:
    m: Any = small_method("hcl", norm="group", weight=1.0)
    given = small_batch(m)
    for view in given.views.values():
        view.requires_grad_()
    m.begin_step(0.0)
    m(given).loss.backward()
    assert given.views["scene"].grad.abs().sum() > 0
    assert given.views["object"].grad is None


def test_the_ball_queue_starts_inside_the_ball() -> None:
    for c in (0.05, 1.0, 4.0):
        keys = small_method("hcl", curvature=c).objects.keys  # type: ignore[union-attr]
        norms = keys.norm(dim=1)  # type: ignore[operator]
        assert float(norms.max()) < 1 / c**0.5
        assert float(norms.std()) > 0.05 * min(1, 1 / c**0.5)


def sample(boxes: list[list[float]], height: int = 100, width: int = 120) -> Sample:
    corners = np.array(boxes, np.float32).reshape(-1, 4)
    image = np.zeros((height, width, 3), np.uint8)
    return Sample(image, facts=Facts(boxes=Boxes(corners, np.zeros(len(corners), np.int64))))


def test_a_scene_is_the_union_of_two_to_five_boxes_with_the_object_among_them() -> None:
    boxes = [[10 * i, 10 * i, 10 * i + 9, 10 * i + 9] for i in range(8)] + [
        [100, 90, 104, 94]
    ]  # the last is too small
    law, counts, objects = SceneObjects(GivenBoxes(), 8, 20), set(), set()
    for seed in range(300):
        query, key, own, scene = law.draw(sample(boxes), np.random.default_rng(seed), 4)
        assert query == key is not None
        assert own is not None
        assert scene is not None
        assert own.whole
        assert scene.whole
        number = own.left // 10
        assert (own.top, own.height, own.width) == (10 * number, 9, 9)
        objects.add(number)
        assert scene.left <= own.left
        assert scene.left + scene.width >= own.left + own.width
        assert scene.left + scene.width <= 79  # nothing of the small box
        counts.add((scene.width + 1) // 10)
        assert query.left <= own.left <= own.left + own.width <= query.left + query.width
        assert max(query.height, query.width) <= 20
    assert objects == set(range(8))
    assert counts == set(range(2, 9))  # from two neighbours to boxes at both ends
    two = sample(boxes[:2])
    assert {law.draw(two, np.random.default_rng(s), 4)[3] for s in range(30)} == {
        whole(boxes_of(two), 100, 120)
    }


def boxes_of(found: Sample) -> np.ndarray:
    assert found.facts.boxes is not None
    return found.facts.boxes.corners


def test_large_objects_are_not_widened() -> None:
    box = np.array([10, 10, 60, 60], np.float32)
    region = widened(box, [0.9, 0.9, 0.9, 0.9], 40, 100, 120)
    assert (region.top, region.left, region.height, region.width) == (10, 10, 50, 50)
    assert len(large_enough(np.array([[0, 0, 7, 7], [0, 0, 9, 9]], np.float32), 8)) == 1


def test_images_with_fewer_than_two_boxes_are_not_used() -> None:
    data = open_data("shapes:scenes?n=60&size=64&objects=3")
    kept = with_scenes(data, GivenBoxes(), 22)
    large = [len(large_enough(GivenBoxes().known(data, i), 22)) for i in range(60)]  # type: ignore[arg-type]
    assert 0 < len(kept) < 60
    assert [kept.name(i) for i in range(len(kept))] == [data.name(i) for i in range(60) if large[i] >= 2]


@pytest.mark.slow
def test_a_run_saves_its_head(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    scenes = "shapes:scenes?n=40&size=64&objects=3"
    options: dict[str, Any] = {
        "method": "hcl",
        "model": "cuewise/resnet-tiny?width=8",
        "size": 32,
        "batch_size": 8,
        "epochs": 1,
        "workers": "0",
    }
    pretrain(scenes, out=str(out), set=["hcl.queue=32", "hcl.dim=16", "hcl.smallest=22"], **options)
    assert "images are not used: hcl needs two boxes per image" in capsys.readouterr().err
    encoder = load_encoder(str(out))
    heads = read_heads(encoder, out)
    assert heads is not None
    assert heads.curvature == 0.05
    checkpoint = torch.load(out / "checkpoints" / "last.ckpt", weights_only=True)["method"]
    for name, value in heads.state_dict().items():
        torch.testing.assert_close(value, checkpoint[f"heads.{name}"])
    rows = [json.loads(x) for x in (out / "metrics.jsonl").read_text().splitlines()]
    assert {"train/euclidean", "train/hyperbolic", "train/scene_norm", "train/object_norm"} <= set(rows[-1])
    pretrain("shapes?n=20&size=64", out=str(tmp_path / "proposed"), set=["hcl.queue=32"], steps=1, **options)
    assert (tmp_path / "proposed" / "heads.safetensors").exists()  # without annotations: proposals
    with pytest.raises(UserError, match="--crops object has no meaning for hcl"):
        pretrain(scenes, out=str(tmp_path / "crops"), crops="object", **options)
