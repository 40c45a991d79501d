"""The synthesiser against its specification in plain Python with the same random draws, and its invariants."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cuewise.cues.texture import PUBLISHED, Search, example_pyramid, quotas, synthesize
from cuewise.cues.texture_patches import extract_patches, patch_side
from cuewise.errors import UserError

MASK = 2**64 - 1


class Counter:
    """splitmix64."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def draw(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def specification(examples, size, seed, search: Search) -> np.ndarray:
    """Slow and literal: dictionaries, full sorts, every candidate costed in full."""
    height, width = size
    pyramids = [example_pyramid(e, search.stages) for e in examples]
    counter = Counter(seed)

    def random_source():
        bits = counter.draw()
        e = ((bits >> 48) * len(examples)) >> 16
        h, w = examples[e].shape[:2]
        return e, (((bits >> 24) & 0xFFFFFF) * h) >> 24, ((bits & 0xFFFFFF) * w) >> 24

    def colour(e, y, x, level):
        inside = 0 <= y < examples[e].shape[0] and 0 <= x < examples[e].shape[1]
        return pyramids[e][level][y, x].astype(float) if inside else np.zeros(3)

    def cost(u, neighbours, weights, candidate, sign, level):
        e, y, x = candidate
        total = 0.0
        for v, w in zip(neighbours, weights):
            dy, dx = sign * (v[0] - u[0]), sign * (v[1] - u[1])
            d = (colour(*source[v], level) - colour(e, y + dy, x + dx, level)) / 255 / search.sigma
            total += w * np.log1p(d**2).sum()
        return total

    source: dict[tuple[int, int], tuple[int, int, int]] = {}
    order: list[tuple[int, int]] = []
    pending = [(i // width, i % width) for i in range(height * width)]
    for stage, quota in enumerate(quotas(height * width, search)):
        level = min(stage, search.stages - 1)
        before = len(order)
        for i in range(quota):
            if i < before:
                u = order[i]
            else:
                j = ((counter.draw() >> 32) * len(pending)) >> 32
                u = pending[j]
                pending[j] = pending[-1]
                pending.pop()

            def distance(v, u=u):
                dy, dx = v[0] - u[0], v[1] - u[1]
                return dy**2 + dx**2, dy, dx

            neighbours = sorted(order, key=distance)[: search.neighbours]
            if not neighbours:
                source[u] = random_source()
                order.append(u)
                continue
            d = [((v[0] - u[0]) / height) ** 2 + ((v[1] - u[1]) / width) ** 2 for v in neighbours]
            mean = sum(d) / len(d)
            weights = [math.exp(-x / mean) if mean else 1.0 for x in d]
            candidates = []
            for v in neighbours:
                e, y, x = source[v]
                y, x = y + u[0] - v[0], x + u[1] - v[1]
                if 0 <= y < examples[e].shape[0] and 0 <= x < examples[e].shape[1]:
                    candidates.append(((e, y, x), 1))
            for _ in range(search.random):
                candidates.append((random_source(), -1 if search.mirror_random else 1))
            costs = [cost(u, neighbours, weights, c, sign, level) for c, sign in candidates]
            if costs:
                source[u] = candidates[int(np.argmin(np.float32(costs)))][0]
            if i >= before:
                order.append(u)
    out = np.empty((height, width, 3), np.uint8)
    for (y, x), (e, sy, sx) in source.items():
        out[y, x] = examples[e][sy, sx]
    return out


def patch(seed: int, height: int = 12, width: int = 12) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    stripes = 128 + 100 * np.sin((x + seed * y)[..., None] / (1.5 + np.arange(3)))
    return np.clip(stripes + rng.normal(0, 10, (height, width, 3)), 0, 255).astype(np.uint8)


class Fixed(np.random.Generator):
    """A generator whose only draw is known."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.seed = seed

    def integers(self, *_args, **_kwargs):
        return np.uint64(self.seed)


@pytest.mark.slow
@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize(("size", "seed"), [((24, 24), 11), ((13, 21), 7)])
def test_equals_the_specification(size, seed, mirror):
    examples = [patch(1), patch(3, 10, 15)]
    search = Search(neighbours=5, random=5, stages=3, mirror_random=mirror)
    got = synthesize(examples, size, rng=Fixed(seed), search=search)
    assert np.array_equal(got, specification(examples, size, seed, search))


@pytest.mark.parametrize(
    "search", [Search(), PUBLISHED, Search(mirror_random=True), Search(random=0), Search(stages=1)]
)
def test_only_source_pixels(search):
    examples = [patch(1, 20, 20), patch(2, 17, 23)]
    out = synthesize(examples, (40, 33), rng=np.random.default_rng(0), search=search)
    known = {tuple(p) for e in examples for p in e.reshape(-1, 3)}
    assert out.shape == (40, 33, 3)
    assert {tuple(p) for p in out.reshape(-1, 3)} <= known


def test_constant_patch_gives_constant_texture():
    example = np.full((16, 16, 3), (10, 200, 90), np.uint8)
    assert (synthesize([example], (20, 20), rng=np.random.default_rng(0)) == example[0, 0]).all()


def test_two_patches_both_occur():
    examples = [np.full((16, 16, 3), 40, np.uint8) + patch(1, 16, 16) // 8, 180 + patch(2, 16, 16) // 8]
    shares = [
        (synthesize(examples, (40, 40), rng=np.random.default_rng(seed)) > 150).mean() for seed in range(4)
    ]
    assert 0.05 < np.mean(shares) < 0.95


def test_same_seed_same_texture_other_seed_other():
    examples = [patch(1, 20, 20)]
    one, two, other = (synthesize(examples, (32, 32), rng=np.random.default_rng(s)) for s in (5, 5, 6))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_texture_is_local_structure_not_noise():
    """Neighbouring output pixels were mostly neighbours in the example: fidelity far below a shuffle of its pixels."""
    example = patch(1, 32, 32)
    out = synthesize([example], (48, 48), rng=np.random.default_rng(0)).astype(float)
    shuffled = np.random.default_rng(0).permutation(example.reshape(-1, 3)).reshape(32, 32, 3).astype(float)

    def blocks(a):
        return np.lib.stride_tricks.sliding_window_view(a, (5, 5), (0, 1))[::3, ::3].reshape(-1, 75)

    def fidelity(a):
        source = np.lib.stride_tricks.sliding_window_view(example.astype(float), (5, 5), (0, 1)).reshape(
            -1, 75
        )
        return np.sqrt(((blocks(a)[:, None] - source[None]) ** 2).mean(-1)).min(1).mean()

    assert fidelity(out) < 0.5 * fidelity(shuffled)


def test_pyramid_ends_in_the_example_and_keeps_its_mean():
    example = patch(1, 33, 48)
    pyramid = example_pyramid(example, 5)
    assert len(pyramid) == 5
    assert np.array_equal(pyramid[-1], example)
    spread = [level.astype(float).std() for level in pyramid]
    assert spread == sorted(spread)
    for level in pyramid:
        assert level.shape == example.shape
        assert abs(level.astype(float).mean() - example.astype(float).mean()) < 6


def test_work_is_twice_the_pixels():
    assert quotas(224 * 224, Search()).tolist() == [1568, 3136, 6272, 12544, 25088, 50176]


@pytest.mark.parametrize(
    ("shape", "rule", "side"),
    [((375, 500), "auto", 96), ((96, 200), "auto", 96), ((95, 200), "auto", 48), ((64, 64), "auto", 28),
     ((64, 64), "paper", 48), ((30, 40), "paper", 48), ((8, 8), "auto", 3)],
)  # fmt: skip
def test_patch_side(shape, rule, side):
    assert patch_side(*shape, rule) == side


def test_patches_lie_where_they_say():
    image = np.random.default_rng(0).integers(0, 256, (120, 151, 3), dtype=np.uint8)
    found = extract_patches(image, np.random.default_rng(1))
    assert found.boxes[0] == (12, 27, 96, 96)
    for example, (top, left, height, width) in zip(found.examples, found.boxes):
        assert np.array_equal(example, image[top : top + height, left : left + width])
    corners = [extract_patches(image, np.random.default_rng(s)).boxes[1][:2] for s in range(300)]
    assert np.min(corners, 0).tolist() == [0, 0]
    assert np.max(corners, 0).tolist() == [24, 55]  # the range is inclusive


def test_small_image_is_enlarged_under_the_paper_rule():
    found = extract_patches(np.zeros((24, 36, 3), np.uint8), np.random.default_rng(0), rule="paper")
    assert found.examples[0].shape == (48, 48, 3)
    assert found.scale == 2


@pytest.mark.parametrize("bad", [{"neighbours": 0}, {"sigma": 0.0}, {"backtrack": 1.0}, {"stages": 0}])
def test_bad_search_is_refused(bad):
    with pytest.raises(UserError):
        Search(**bad)
