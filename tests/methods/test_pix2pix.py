"""Pix2Pix: its networks at any size, its losses against loops, whose gradient reaches whom, and that it learns."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from cuewise import UserError
from cuewise.config import resolve
from cuewise.cues.diffusion import perona_malik, scaled_steps
from cuewise.data import Batch, open_data
from cuewise.encoders import load_encoder
from cuewise.encoders.unet import PatchGAN, UNet, unet_depth
from cuewise.methods.pix2pix import Pix2Pix, Target, gan_losses, to_pixels
from cuewise.objectives.conditional_gan import adversarial_loss, discriminator_loss, psnr
from tests.methods.conftest import small_batch, small_method


@pytest.mark.parametrize(("size", "depth"), [(16, 2), (32, 3), (64, 4), (96, 4), (224, 5), (8, 1), (4, 1)])
def test_depth_follows_the_size(size: int, depth: int) -> None:
    assert unet_depth(size) == depth


@pytest.mark.parametrize("shape", [(32, 32), (33, 57), (7, 9), (1, 1), (96, 40)])
@pytest.mark.parametrize("residual", [True, False])
def test_any_size_in_range(shape: tuple[int, int], residual: bool) -> None:
    torch.manual_seed(0)
    net = UNet(32, width=4, residual=residual)
    torch.nn.init.normal_(net.last.weight)  # far from the start
    x = torch.rand(2, 3, *shape) * 2 - 1
    out, _ = net.translate(x)
    assert out.shape == x.shape
    assert float(out.detach().abs().max()) <= 1
    alone, _ = net.translate(x[:1])
    torch.testing.assert_close(alone, out[:1], rtol=1e-4, atol=1e-5)  # no image depends on its batch


def test_a_residual_generator_starts_as_the_identity() -> None:
    x = torch.rand(2, 3, 32, 32) * 2 - 1
    assert torch.equal(UNet(32, width=4).translate(x)[0], x)
    assert not torch.allclose(UNet(32, width=4, residual=False).translate(x)[0], x, atol=0.1)


def test_a_bottleneck_of_one_pixel_has_no_norm() -> None:
    net = UNet(16, width=4, depth=4)
    assert not any(isinstance(m, torch.nn.InstanceNorm2d) for m in net.down[-1].modules())
    assert any(isinstance(m, torch.nn.InstanceNorm2d) for m in net.down[1].modules())
    out, inner = net.train().translate(torch.rand(1, 3, 16, 16))
    assert inner.shape[-2:] == (1, 1)
    assert torch.isfinite(out).all()


@pytest.mark.parametrize(("field", "size"), [(16, 32), (34, 48), (70, 96)])
def test_a_logit_sees_a_patch_of_its_field(field: int, size: int) -> None:
    """By the gradient of one logit; norms, which see the whole image, are left out."""
    net = PatchGAN(field, width=4)
    kept = (m for m in net.modules() if isinstance(m, torch.nn.Conv2d | torch.nn.LeakyReLU))
    net.layers = torch.nn.Sequential(*kept)
    for p in net.parameters():
        torch.nn.init.constant_(p, 0.01)
    x = torch.rand(1, 6, size, size, requires_grad=True)
    out = net(x)
    out[0, 0, out.shape[2] // 2, out.shape[3] // 2].backward()
    assert x.grad is not None
    rows = x.grad.abs().sum((0, 1, 3)).nonzero()
    assert int(rows.max() - rows.min()) + 1 == field


def test_losses_are_those_of_the_loop() -> None:
    g = torch.Generator().manual_seed(0)
    real, fake = torch.randn(2, 3, 1, 4, 4, generator=g, dtype=torch.float64)
    sigma = lambda z: 1 / (1 + math.exp(-z))  # noqa: E731
    yes = np.mean([-math.log(sigma(z)) for z in real.flatten().tolist()])
    no = np.mean([-math.log(1 - sigma(z)) for z in fake.flatten().tolist()])
    assert float(discriminator_loss(real, fake)) == pytest.approx((yes + no) / 2, rel=1e-9)
    wanted = np.mean([-math.log(sigma(z)) for z in fake.flatten().tolist()])
    assert float(adversarial_loss(fake)) == pytest.approx(wanted, rel=1e-9)
    a, b = torch.rand(2, 2, 3, 8, 8, generator=g) * 2 - 1
    levels = [((a[i] - b[i]).numpy() * 127.5) ** 2 for i in range(2)]
    expected = [10 * math.log10(255**2 / v.mean()) for v in levels]
    np.testing.assert_allclose(psnr(a, b).numpy(), expected, rtol=1e-5)


def test_each_loss_reaches_its_own_network() -> None:
    torch.manual_seed(0)
    G, D = UNet(16, width=4, residual=False), PatchGAN(16, width=4)
    x = torch.rand(2, 3, 16, 16)
    for name, reached in (("adversarial", G), ("l1", G), ("discriminator", D)):
        for p in (*G.parameters(), *D.parameters()):
            p.grad = None
        gan_losses(D, x, -x, G.translate(x)[0])[name].backward()
        for net in (G, D):
            assert all((p.grad is not None) == (net is reached) for p in net.parameters()), name


def test_target_is_the_diffused_image() -> None:
    image = np.random.default_rng(0).integers(0, 256, (2, 24, 24, 3), dtype=np.uint8)
    x = torch.from_numpy(image).permute(0, 3, 1, 2) / 127.5 - 1
    for filter, option in (("anisotropic", 1), ("robust", 3)):
        made = to_pixels(Target(filter, 5, 30.0, 24)(x))
        expected = perona_malik(image, steps=5, kappa=30.0, option=option)
        assert np.abs(made.astype(int) - expected.astype(int)).max() <= 1
    default = to_pixels(Target("anisotropic", None, 20.0, 64)(x))
    assert np.abs(default.astype(int) - perona_malik(image, steps=scaled_steps(64)).astype(int)).max() <= 1


@pytest.mark.slow
def test_it_learns_the_target() -> None:
    """PSNR to the target rises above the input's own on images that it did not see."""
    m = small_method("pix2pix", critic_width=16, kappa=60.0, steps=10, weight=100.0)
    data = open_data("shapes:aligned?n=96&size=16")
    pixels = torch.from_numpy(np.stack([data.image(i) for i in range(96)]))
    images = m.encoder.normalise(pixels)
    optimizer = torch.optim.Adam(m.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for step in range(60):
        rows = torch.arange(64).roll(-16 * step)[:16]
        m(Batch({"query": images[rows]}, rows)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        found = m.eval()(Batch({"query": images[64:]}, torch.arange(32))).extra
    assert float(found["psnr"]) > float(found["psnr_input"]) + 0.5
    shown = m.pictures(Batch({"query": images[64:72]}, torch.arange(8)))
    assert list(shown) == ["source", "target", "reconstruction"]
    assert np.abs(shown["source"].astype(int) - pixels[64:72].numpy()).max() <= 1


def test_what_has_no_meaning_is_refused() -> None:
    for own, words in (
        ({"target": "cartoon"}, "anisotropic or robust"),
        ({"steps": 0}, "must be 1 or more"),
        ({"patch": 20}, "16, 34 or 70"),
        ({"weight": -1.0}, "must be 0 or more"),
        ({"kappa": 0.0}, "kappa 0"),
    ):
        with pytest.raises(UserError, match=words):
            resolve({"method": "pix2pix", "pix2pix": own})
    with pytest.raises(UserError, match="trains cuewise/unet only; leave --model out"):
        resolve({"method": "pix2pix", "model": "torchvision/resnet18"})
    with pytest.raises(UserError, match=r"its target is set by pix2pix\.target"):
        resolve({"method": "pix2pix", "suppress": "robust"})
    with pytest.raises(UserError, match="use --method supervised"):
        resolve({"method": "simclr", "generator": "G"})
    with pytest.raises(UserError, match="depth 0 must be 1 or more"):
        load_encoder("cuewise/unet?depth=0")
    assert resolve({"method": "pix2pix"}).model == "cuewise/unet"


def test_the_run_has_its_losses_in_metrics() -> None:
    m = small_method("pix2pix")
    assert isinstance(m, Pix2Pix)
    found = m(small_batch(m)).extra
    assert set(found) == {"adversarial", "l1", "discriminator", "psnr", "psnr_input"}
