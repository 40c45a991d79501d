"""Batches: equal to the bit for any number of workers and ranks, from any position, past broken images."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import encoded, pixels

from cuewise.data import Dataset, Loader, Shown, auto_workers, fills_cores, open_data, ordered
from cuewise.data.embedded import ShapesSource
from cuewise.data.plan import Plan, generator
from cuewise.errors import UserError


def look(sample, rng):
    """Two random looks at an image, a number, and facts: one of the same shape for all, one ragged."""
    top, left = rng.integers(0, 8, size=2)
    views = {
        "query": sample.image[top : top + 8, left : left + 8],
        "key": np.full((8, 8, 3), rng.integers(256), np.uint8),
        "number": np.array([sample.index, rng.random()], np.float32),
    }
    return Shown(views, {"place": np.array([top, left]), "letters": list(sample.name)})


@pytest.fixture
def ds(write, tmp_path):
    for k in range(22):
        write(f"s/{'dog' if k % 2 else 'cat'}/{k:02d}.png", seed=k)
    return open_data(tmp_path / "s")


def frozen(batches):
    """Batches as plain bytes, to compare."""
    return [
        (
            b.epoch,
            b.step,
            b.index.tolist(),
            b.label.tolist(),
            [(k, v.numpy().tobytes()) for k, v in b.views.items()],
            (b.facts["place"].tolist(), b.facts["letters"]),
        )
        for b in batches
    ]


def load(ds, workers=0, epoch=0, step=0, epochs=2, **options):
    loader = Loader(ds, look, **{"batch_size": 4, "seed": 7, "workers": workers, **options})
    return frozen(loader.batches(epoch=epoch, step=step, epochs=epochs))


def test_a_batch(ds):
    loader = Loader(ds, look, batch_size=4, seed=0, workers=0)
    assert loader.steps_per_epoch == 5
    batch = next(loader.batches())
    assert list(batch.views) == ["query", "key", "number"]
    assert batch.views["query"].shape == (4, 8, 8, 3)
    assert batch.views["query"].dtype == torch.uint8
    assert batch.views["query"].is_contiguous()
    assert batch.views["number"].dtype == torch.float32
    assert batch.index.dtype == batch.label.dtype == torch.int64
    np.testing.assert_array_equal(batch.label, ds.labels[batch.index.numpy()])
    np.testing.assert_array_equal(batch.views["number"][:, 0], batch.index)
    assert (batch.epoch, batch.step, batch.skipped) == (0, 0, [])


@pytest.mark.parametrize("between_steps", [False, True], ids=["at any time", "between steps"])
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.slow
def test_workers_change_nothing(ds, workers, between_steps):
    assert load(ds, workers, between_steps=between_steps) == load(ds, 0)


def test_seed_and_epoch_change_everything(ds):
    batches = load(ds)
    assert batches != load(ds, seed=8)
    first, second = batches[:5], batches[5:]
    assert [b[0] for b in batches] == [0] * 5 + [1] * 5
    assert [b[2] for b in first] != [b[2] for b in second]
    seen = [i for b in first for i in b[2]]
    assert len(set(seen)) == 20


@pytest.mark.parametrize(("epoch", "step"), [(0, 0), (0, 3), (1, 0), (1, 4), (2, 0)])
@pytest.mark.parametrize("workers", [0, 2])
def test_any_position_continues_the_same_run(ds, epoch, step, workers):
    assert load(ds, workers, epoch, step) == load(ds)[epoch * 5 + step :]


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("workers", [0, 1])
def test_ranks_share_the_global_batch(ds, world, workers):
    ranks = [load(ds, workers, rank=rank, world=world, epochs=1) for rank in range(world)]
    for whole, *parts in zip(load(ds, epochs=1), *ranks):
        assert whole[2] == [i for part in parts for i in part[2]]
        for k, (key, data) in enumerate(whole[4]):
            assert data == b"".join(part[4][k][1] for part in parts), key


def test_without_shuffling_and_with_the_short_batch(ds):
    batches = load(ds, shuffle=False, drop_last=False, epochs=1)
    assert [i for b in batches for i in b[2]] == list(range(22))
    assert len(batches[-1][2]) == 2


def test_a_short_last_batch_gives_every_rank_as_many(ds):
    parts = [load(ds, rank=r, world=4, drop_last=False, epochs=1)[-1][2] for r in range(4)]
    assert [len(p) for p in parts] == [1, 1, 1, 1]


def test_sizes_that_cannot_be(ds):
    with pytest.raises(UserError, match=r"22 images are fewer than one batch of 32.*--batch-size 22"):
        Loader(ds, look, batch_size=32, seed=0, workers=0)
    with pytest.raises(UserError, match="multiple of 3"):
        Loader(ds, look, batch_size=4, seed=0, workers=0, world=3)
    with pytest.raises(UserError):
        Loader(ds, look, batch_size=0, seed=0, workers=0)


def test_loaders_can_be_pickled(ds):
    loader = Loader(ds, look, batch_size=4, seed=7, workers=0)
    list(loader.batches())
    assert frozen(pickle.loads(pickle.dumps(loader)).batches(epochs=2)) == load(ds)


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 5), st.booleans(), st.integers(1, 4))
def test_every_image_comes_once_an_epoch(count, share, epoch, shuffle, world):
    batch = share * world
    plans = [Plan(count, batch, 3, shuffle, False, rank, world) for rank in range(world)]
    seen = np.concatenate([plan.indices(epoch, s) for s in range(plans[0].steps) for plan in plans])
    np.testing.assert_array_equal(np.unique(seen), np.arange(count))
    assert len(seen) - count < world


@settings(max_examples=60)
@given(st.integers(-(2**70), 2**70), st.integers(0, 10_000), st.integers(0, 2**39))
def test_streams_are_the_same_for_the_same_numbers_only(seed, epoch, index):
    def draw(*key):
        return generator(*key).integers(2**63, size=2).tolist()

    assert draw(seed, epoch, index) == draw(seed, epoch, index)
    others = [draw(seed + 1, epoch, index), draw(seed, epoch + 1, index), draw(seed, epoch, index + 1)]
    assert draw(seed, epoch, index) not in [*others, draw(seed, epoch, index, 1)]


@pytest.fixture
def damaged(write, tmp_path):
    for k in range(12):
        data = encoded(pixels(96, 96, seed=k))
        write(f"s/{k:02d}.jpg", data[: len(data) // 2] if k in (3, 4, 11) else data)
    return open_data(tmp_path / "s")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_gives_way_to_the_next_and_is_reported_once(damaged, workers):
    assert len(damaged) == 12  # they look whole until they are decoded
    loader = Loader(damaged, look, batch_size=4, seed=1, workers=workers, shuffle=False)
    batches = list(loader.batches(epochs=3))
    assert [b.index.tolist() for b in batches[:3]] == [[0, 1, 2, 5], [5, 5, 6, 7], [8, 9, 10, 0]]
    said = [name for b in batches for name, why in b.skipped if "truncated" in why]
    assert sorted(said) == ["03.jpg", "04.jpg", "11.jpg"]
    first, second = batches[1].views["key"][:2]
    assert not torch.equal(first, second)  # the same image, but random numbers of its own
    same = Loader(damaged, look, batch_size=4, seed=1, workers=0, shuffle=False)
    assert frozen(same.batches(epochs=3)) == frozen(batches)


@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_readable_is_an_error_of_one_line(write, tmp_path, workers):
    for k in range(5):
        write(f"s/{k}.jpg", encoded(pixels())[:-40])
    ds = open_data(tmp_path / "s")
    loader = Loader(ds, look, batch_size=2, seed=0, workers=workers)
    with pytest.raises(UserError, match=r"5 images in a row cannot be read .*\.jpg: truncated") as caught:
        list(loader.batches())
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="none of the 5 images can be read"):
        list(ordered(ds, look, 2, workers))


@pytest.mark.parametrize("workers", [0, 2])
def test_in_order_for_evaluation(damaged, workers):
    batches = list(ordered(damaged, look, 5, workers))
    assert [b.index.tolist() for b in batches] == [[0, 1, 2], [5, 6, 7, 8, 9], [10]]
    assert [len(b.views["query"]) for b in batches] == [3, 5, 1]
    assert [[name for name, _ in b.skipped] for b in batches] == [["03.jpg", "04.jpg"], [], ["11.jpg"]]
    assert all((b.label == -1).all() for b in batches)


def test_a_batch_with_nothing_readable_is_passed_over(damaged):
    batches = list(ordered(damaged, look, 1))
    assert [b.index.tolist() for b in batches if len(b.index)] == [
        [i] for i in range(12) if i not in (3, 4, 11)
    ]
    assert sorted(name for b in batches for name, _ in b.skipped) == ["03.jpg", "04.jpg", "11.jpg"]


def uneven(sample, rng):
    return Shown({"x": np.zeros((sample.index + 1, 2), np.uint8)})


@pytest.mark.parametrize("workers", [0, 1])
def test_the_error_of_a_wrong_transform_is_reported_unchanged(ds, workers):
    with pytest.raises(ValueError, match="shape"):
        list(Loader(ds, uneven, batch_size=4, seed=0, workers=workers).batches())


def test_facts_travel_with_their_images(ds):
    """Through workers, substitution-free: numbers are stacked, ragged facts are lists, a part keeps its rows."""
    for workers in (0, 2):
        batch = next(Loader(ds, look, batch_size=4, seed=3, workers=workers).batches())
        assert batch.facts["place"].shape == (4, 2)
        assert ["".join(x) for x in batch.facts["letters"]] == [ds.name(int(i)) for i in batch.index]
        assert batch.label.tolist() == ds.labels[batch.index.numpy()].tolist()
        half = batch.part(1, 2)
        assert half.index.tolist() == batch.index[2:].tolist()
        assert half.facts["letters"] == batch.facts["letters"][2:]
        assert torch.equal(half.views["query"], batch.views["query"][2:])


@pytest.mark.slow
def test_what_a_source_knows_reaches_the_batch():
    """The boxes of shapes:scenes, which object is odd, several labels: all from the loader."""
    scenes = open_data("shapes:scenes?n=12&odd=0.5&size=32")

    def known(sample, rng):
        return Shown(
            {"x": sample.image[:2, :2]}, {"boxes": sample.facts.boxes, "labels": sample.facts.labels}
        )

    batch = next(Loader(scenes, known, batch_size=12, seed=0, workers=0).batches())
    columns = {k: v[batch.index.numpy()] for k, v in scenes.columns.items()}
    assert batch.facts["labels"].numpy().tolist() == columns["present"].tolist()
    for i, boxes in enumerate(batch.facts["boxes"]):
        n = columns["count"][i]
        np.testing.assert_array_equal(boxes.corners, columns["boxes"][i, :n])
        np.testing.assert_array_equal(boxes.classes, columns["shape"][i, :n])
        assert np.flatnonzero(boxes.flags["out_of_context"]).tolist() == [
            k for k in [columns["odd"][i]] if k >= 0
        ]


def test_object_classes_of_joined_sets_are_one_list():
    a, b = ShapesSource("shapes:scenes?n=6&classes=16"), ShapesSource("shapes:scenes?n=5&classes=12")
    both, alone = Dataset([a, b]), Dataset([b])
    assert set(both.object_classes) == set(a.object_classes)
    assert both.object_classes != a.object_classes
    for i in range(5):
        here, there = alone.facts(i), both.facts(6 + i)
        assert [both.object_classes[k] for k in there.boxes.classes] == [
            alone.object_classes[k] for k in here.boxes.classes
        ]
        names = [both.object_classes[k] for k in np.flatnonzero(there.labels)]
        assert sorted(names) == sorted(alone.object_classes[k] for k in np.flatnonzero(here.labels))


def test_a_data_set_is_a_sequence_of_samples(ds):
    assert repr(ds) == "Dataset(22 images, 2 classes)"
    assert [s.index for s in ds] == list(range(22))
    assert (ds[3].name, ds[3].label) == (ds.name(3), ds.labels[3])
    assert ds[-1].index == 21
    np.testing.assert_array_equal(ds[3].image, ds.image(3))
    with pytest.raises(IndexError):
        ds[22]


def test_auto_workers():
    assert 1 <= auto_workers() <= 8
    assert auto_workers(1000) == 1


@pytest.mark.parametrize(
    ("cores", "ranks", "beside", "between"), [(2, 1, 1, 2), (8, 2, 3, 4), (1, 1, 1, 1), (64, 1, 8, 8)]
)
def test_workers_between_steps_take_the_core_of_the_training_loop_as_well(
    monkeypatch, cores, ranks, beside, between
):
    monkeypatch.setattr("cuewise.data.loader.usable_cores", lambda: cores)
    assert auto_workers(ranks) == beside
    assert auto_workers(ranks, between_steps=True) == between


@pytest.mark.parametrize(
    ("cores", "threads", "ranks", "fills"),
    [(2, 2, 1, True), (2, 1, 1, False), (2, 1, 2, True), (8, 4, 1, False)],
)
def test_training_threads_fill_the_cores(monkeypatch, cores, threads, ranks, fills):
    monkeypatch.setattr("cuewise.data.loader.usable_cores", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert fills_cores(ranks) is fills
