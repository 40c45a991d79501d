"""CAN, MAE and SimCLR-ViT: masks, noise, and which of the three is which."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cuewise import UserError
from cuewise.config import resolve
from cuewise.encoders.load import build, load_encoder
from cuewise.methods import Method, Negatives, Setup, method
from cuewise.methods.masking import Draws, visible_patches
from cuewise.methods.method import SingleProcess
from cuewise.train.optim import build_optimizer, lr_factor, scaled_lr
from tests.contract.test_methods import train
from tests.methods.conftest import small_batch, small_method


def first_losses(m: Method) -> list[float]:
    return train(m, 3)


def test_reconstruction_alone_at_three_quarters_is_mae_to_the_bit() -> None:
    mae, can = small_method("mae"), small_method("can", weights=[0, 1, 0], mask=0.75)
    assert [k for k, _ in mae.named_parameters()] == [k for k, _ in can.named_parameters()]
    assert first_losses(can) == first_losses(mae)
    for (key, ours), theirs in zip(can.state_dict().items(), mae.state_dict().values()):
        assert torch.equal(ours, theirs), key


def test_contrast_alone_without_a_mask_is_simclr_on_a_transformer() -> None:
    """Up to rounding: CAN encodes both views in one pass."""
    simclr = small_method("simclr", transformer=True, temperature=0.1)
    can = small_method("can", weights=[1, 0, 0], mask=0.0)
    assert [k for k, _ in simclr.named_parameters()] == [k for k, _ in can.named_parameters()]
    assert first_losses(can) == pytest.approx(first_losses(simclr), rel=1e-6)


def spied(m: Method) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    """What the encoder is given: images and kept places."""
    calls: list[tuple[torch.Tensor, torch.Tensor | None]] = []
    tokens = m.encoder.tokens

    def noting(x: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        calls.append((x.clone(), keep))
        out = tokens(x, keep)
        assert keep is None or out.shape[1] == keep.shape[1]
        return out

    m.encoder.tokens = noting  # type: ignore[method-assign]
    return calls


def test_noise_is_added_to_the_input_and_not_to_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    import cuewise.methods.can as can

    targets: list[torch.Tensor] = []
    cut = can.patchify
    monkeypatch.setattr(can, "patchify", lambda x, p: (targets.append(x.clone()), cut(x, p))[1])
    m = small_method("can")
    given = small_batch(m)
    before = {role: x.clone() for role, x in given.views.items()}
    calls = spied(m)
    m(given)
    clean, noise = (t.chunk(2) for t in targets)  # of both views: the images, then the noise
    seen = calls[0][0].chunk(2)
    for i, role in enumerate(("first", "second")):
        assert torch.equal(given.views[role], before[role])
        assert torch.equal(clean[i], before[role])
        torch.testing.assert_close(seen[i], before[role] + noise[i], rtol=0, atol=0)
        spread = noise[i].flatten(1).std(1)  # σ of each image
        assert 0 < spread.max() < 0.06
        assert spread.max() > 2 * spread.min()
    assert not torch.equal(noise[0], noise[1])


def test_masks_differ_between_images_and_views_and_hide_half() -> None:
    m = small_method("can")
    calls = spied(m)
    m(small_batch(m))
    (_, keep), *others = calls
    assert keep is not None
    assert not others  # both views in one pass
    first, second = keep.chunk(2)
    assert first.shape == second.shape == (8, 8)  # of 16 patches
    assert not torch.equal(first, second)
    assert len({tuple(row.tolist()) for row in first}) > 4
    for row in first.tolist():
        assert row == sorted(set(row))


@pytest.mark.parametrize(
    ("patches", "mask", "n"), [(64, 0.75, 16), (49, 0.5, 24), (4, 0.9, 1), (4, 0.1, 3), (4, 0, 4)]
)
def test_how_many_patches_are_visible(patches: int, mask: float, n: int) -> None:
    assert visible_patches(patches, mask) == n


class Half:
    """One of two processes."""

    world = 2

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def gather(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_masks_and_noise_are_the_same_however_images_are_shared_out() -> None:
    def drawn(comm: Any, n: int) -> list[torch.Tensor]:
        draws, x = Draws(comm, torch.Generator().manual_seed(3)), torch.zeros(n, 3, 8, 8)
        keep = draws.keep(x, 16, 0.5)
        assert keep is not None
        return [keep, *draws.noise(x, 0.05)]

    whole, halves = drawn(SingleProcess(), 8), [drawn(Half(rank), 4) for rank in range(2)]
    for i, expected in enumerate(whole):
        assert torch.equal(torch.cat([half[i] for half in halves]), expected)


def test_negatives_are_masked_as_views_are() -> None:
    m = small_method("can", negatives=Negatives(("patch",), (2.0,), 2))
    calls = spied(m)
    step = m(small_batch(m))
    assert [len(x) for x, _ in calls] == [16, 16, 16]  # both views, then the negatives of each
    assert all(keep is not None and keep.shape[1] == 8 for _, keep in calls)
    assert step.negatives is not None
    assert step.negatives.shape == (8, 2, 16)


def test_the_decoder_learns_the_level_of_the_noise_only_where_it_is_used() -> None:
    assert small_method("can", weights=[0.1, 0.9, 0]).level is None
    m = small_method("can", weights=[0, 0, 1])
    assert m.projector is None
    m(small_batch(m)).loss.backward()
    assert all(float(p.grad.abs().max()) > 0 for p in m.level.parameters())


@pytest.mark.parametrize(
    ("settings", "dial", "message"),
    [
        ({"weights": [1, 2]}, {}, "can.weights"),
        ({"weights": [0, 0, 0]}, {}, "can.weights"),
        ({"mask": 1.0}, {}, "can.mask 1.0"),
        ({"mask": 0.0}, {}, "nothing to reconstruct"),
        ({"sigma": 0.0}, {}, "can.sigma"),
        ({"views": 1}, {}, "nothing to contrast"),
        ({"decoder_width": 40}, {}, "multiple of 32"),
        ({"weights": [0, 1, 0]}, {"negatives": ["patch"]}, "--negatives acts on contrast"),
        ({"weights": [0, 1, 0]}, {"hard": "ifm"}, "--hard acts on contrast"),
        ({}, {"leave_out": ["color"]}, "--leave-out has no meaning for can"),
    ],
)
def test_what_has_no_meaning_is_refused(settings: dict[str, Any], dial: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        resolve({"method": "can", "model": "cuewise/vit-tiny", "can": settings, **dial})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["can", "mae"])
def test_a_network_without_tokens_is_one_line(name: str) -> None:
    encoder = build("cuewise/resnet-tiny", {"width": 8}, size=16)
    with pytest.raises(UserError, match="has no patch tokens: use cuewise/vit-tiny"):
        method(name)(encoder, Setup(method(name).Settings()))


@pytest.mark.slow
def test_timm_transformers_pool_over_patches_and_have_fixed_positions() -> None:
    config = resolve({"method": "can", "model": "timm/vit_tiny_patch16_224?depth=1", "size": 64})
    assert config.model == "timm/vit_tiny_patch16_224?depth=1&global_pool=avg&fc_norm=False"
    assert resolve(config.as_dict()).model == config.model
    encoder = load_encoder(config.model, size=64)
    assert encoder.card.pool == "avg"
    m = config.method_class(encoder, config.setup())
    positions = encoder.backbone.pos_embed
    assert isinstance(positions, torch.Tensor)
    assert not positions.requires_grad
    assert torch.equal(positions[:, 0], torch.zeros(1, 192))  # of the class token
    given = small_batch(m, 4, size=64)
    m(given).loss.backward()
    missing = [k for k, p in m.named_parameters() if p.requires_grad and p.grad is None]
    assert missing == []
    for spec in ("timm/vit_tiny_patch16_224?global_pool=token", "timm/resnet10t", "cuewise/vit-tiny", "m:f"):
        assert method("can").model(spec) == spec
    assert method("mae").model("timm/vit_tiny_patch16_224:w.pth") == (
        "timm/vit_tiny_patch16_224?global_pool=avg&fc_norm=False:w.pth"
    )


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        ({}, ["image", "masked", "reconstruction", "noise", "predicted noise"]),
        ({"weights": [0, 1, 0], "normalise_target": True}, ["image", "masked", "reconstruction"]),
        ({"weights": [1, 0, 0]}, ["image", "masked"]),
    ],
)
def test_pictures_show_what_is_seen_and_predicted(settings: dict[str, Any], columns: list[str]) -> None:
    m = small_method("can", **settings)
    given = small_batch(m)
    state = m.generator.get_state()
    shown = m.pictures(given)
    assert list(shown) == columns
    assert torch.equal(m.generator.get_state(), state)
    again = m.pictures(given)
    for name, pixels in shown.items():
        assert pixels.shape == (8, 16, 16, 3)
        assert (pixels == again[name]).all()
    grey = (shown["masked"] == 128).all(-1).mean()
    assert 0.45 < grey < 0.55
    if "reconstruction" in shown:  # visible patches stay
        same = (shown["reconstruction"] == shown["image"]).all(-1).mean()
        assert 0.45 < same < 0.65


def test_two_views_without_contrast_are_an_average_over_both() -> None:
    one, two = (small_method("can", weights=[0, 1, 0], views=n) for n in (1, 2))
    assert len(type(one).shown(one.setup)) == 1
    step = two(small_batch(two))
    assert step.positive is not None
    assert not torch.equal(step.loss, one(small_batch(one)).loss)


def test_warm_up_is_a_share_of_training_and_the_rate_follows_the_batch() -> None:
    config = resolve({"method": "can", "model": "cuewise/vit-tiny", "batch_size": 512})
    assert scaled_lr(config.optim, config.batch_size) == 2 * 2.5e-4
    factors = [lr_factor(config.optim, step, 10, 1000) for step in range(1000)]
    assert factors[:50] == pytest.approx([(i + 1) / 50 for i in range(50)])
    assert factors[50:] == sorted(factors[50:], reverse=True)
    asked = resolve({"method": "can", "model": "cuewise/vit-tiny", "optim": {"warmup_epochs": 3}})
    assert (asked.optim.warmup_share, asked.optim.warmup_epochs) == (0.0, 3)
    with pytest.raises(UserError, match="exclude each other"):
        resolve({"optim": {"warmup_epochs": 3, "warmup_share": 0.1}})


def test_adamw_decays_neither_biases_nor_norms() -> None:
    m, config = small_method("can"), resolve({"method": "can", "model": "cuewise/vit-tiny"})
    optimizer = build_optimizer(m, config.optim, 256)
    assert isinstance(optimizer, torch.optim.AdamW)
    assert {g["betas"] for g in optimizer.param_groups} == {(0.9, 0.95)}
    decay, plain = optimizer.param_groups
    assert (decay["weight_decay"], plain["weight_decay"]) == (0.05, 0.0)
    assert all(p.ndim > 1 for p in decay["params"])
    assert all(p.ndim == 1 for p in plain["params"])
