"""Stylised images: the style's statistics, the image's layout, draws that can be copied, three back-ends."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save_file

from cuewise.cues.registry import cue
from cuewise.cues.style_adain import DECODER, ENCODER, AdaIN
from cuewise.cues.style_patterns import COUNT, drawn_style
from cuewise.cues.style_statistics import collapse, colour_map, levels_for, pyramid, transfer
from cuewise.cues.stylize import StyleDraw, Stylizer, stylize
from cuewise.errors import UserError


def scene(side: int = 64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    disk = ((y - 0.5) ** 2 + (x - 0.5) ** 2 < 0.09)[..., None]
    image = np.where(disk, rng.uniform(140, 220, 3), rng.uniform(30, 90, 3)) + rng.normal(
        0, 3, (side, side, 3)
    )
    return np.clip(image, 0, 255).astype(np.uint8)


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (
        np.asarray(Image.fromarray(i).convert("L").resize((8, 8), Image.Resampling.BOX), float)
        for i in (a, b)
    )
    return abs(float(np.corrcoef(a.ravel(), b.ravel())[0, 1]))


def fine(image: np.ndarray) -> np.ndarray:
    """Standard deviation of the finest band, a channel."""
    return pyramid(image.astype(np.float32), 1)[0].std(axis=(0, 1))


def test_the_pyramid_collapses_to_the_image():
    image = np.random.default_rng(0).uniform(0, 255, (37, 50, 3)).astype(np.float32)
    for levels in (1, 2, 4):
        np.testing.assert_allclose(collapse(pyramid(image, levels)), image, atol=1e-3)
    assert levels_for(8, 8) == 1
    assert levels_for(224, 300) == 5


def test_colours_take_the_mean_and_covariance_of_the_style():
    content = drawn_style(6).astype(np.float32)  # colours that vary in all directions
    style = drawn_style(2).astype(np.float32)
    out = colour_map(content, style).reshape(-1, 3)
    np.testing.assert_allclose(out.mean(axis=0), style.reshape(-1, 3).mean(axis=0), atol=0.1)
    wanted = np.cov(style.reshape(-1, 3).T)
    assert np.abs(np.cov(out.T) - wanted).max() < 0.02 * wanted.max() + 8


@pytest.mark.parametrize("index", range(0, 10))
def test_style_statistics_move_to_the_style_and_the_layout_stays(index):
    image, style = scene(96), drawn_style(index)
    out = stylize(image, style)
    sized = np.asarray(Image.fromarray(style).resize((96, 96), Image.Resampling.BOX))
    gap = np.abs(image.astype(float).mean(axis=(0, 1)) - sized.mean(axis=(0, 1))).max()
    assert np.abs(out.astype(float).mean(axis=(0, 1)) - sized.mean(axis=(0, 1))).max() < max(0.4 * gap, 12)
    assert np.abs(np.log(fine(out) / fine(sized))).max() < np.abs(np.log(fine(image) / fine(sized))).max()
    assert correlation(image, out) > 0.5


def test_things_in_the_style_do_not_come_along():
    """A style with one big bright square: its place must not show in a flat image."""
    style = np.random.default_rng(0).normal(90, 12, (96, 96, 3))
    style[:40, 50:] += 100
    style = np.clip(style, 0, 255).astype(np.uint8)
    flat = np.clip(np.random.default_rng(1).normal(128, 12, (96, 96, 3)), 0, 255).astype(np.uint8)
    assert correlation(style, transfer(flat, style, 1.0)) < 0.45


def test_strength_is_a_line_from_the_image_to_the_style():
    image, style = scene(), drawn_style(5)
    full = stylize(image, style).astype(float)
    np.testing.assert_array_equal(stylize(image, style, 0.0), image)
    half = stylize(image, style, 0.5)
    inside = (full > 0) & (full < 255)
    assert np.abs(half - (image + full) / 2)[inside].max() <= 1.01


@settings(max_examples=25, deadline=None)
@given(
    st.integers(8, 65),
    st.integers(8, 65),
    st.integers(0, COUNT - 1),
    st.floats(0, 1),
    st.sampled_from([0, 128, 255, None]),
)
def test_any_size_and_flat_images(height, width, index, strength, fill):
    image = np.random.default_rng(index).integers(0, 256, (height, width, 3), dtype=np.uint8)
    if fill is not None:
        image[:] = fill
    out = stylize(image, drawn_style(index % 10), strength)
    assert out.shape == image.shape
    assert out.dtype == np.uint8


def test_drawn_styles_are_many_different_and_fixed():
    styles = [drawn_style(i) for i in range(12)]
    assert len({s.tobytes() for s in styles}) == 12
    np.testing.assert_array_equal(drawn_style.__wrapped__(3), styles[3])
    assert all(s.std() > 8 for s in styles)


def test_a_draw_is_plain_and_can_be_copied():
    stylizer = Stylizer()
    draw = stylizer.draw(np.random.default_rng(1), (0.3, 0.9))
    assert 0 <= draw.style < len(stylizer) == COUNT
    assert 0.3 <= draw.strength <= 0.9
    assert (
        StyleDraw(**dataclasses.asdict(draw)) == draw == stylizer.draw(np.random.default_rng(1), (0.3, 0.9))
    )
    a, b = scene(seed=1), scene(seed=2)
    np.testing.assert_array_equal(
        stylizer.apply(a, draw), stylizer.apply(a, StyleDraw(draw.style, draw.strength))
    )
    assert not np.array_equal(stylizer.apply(a, draw), stylizer.apply(b, draw))


def test_styles_from_a_folder_and_from_a_dataset(tmp_path):
    (tmp_path / "deep").mkdir()
    Image.fromarray(np.full((40, 30), 200, np.uint8)).save(tmp_path / "a grey.png")
    Image.fromarray(drawn_style(1)).save(tmp_path / "deep" / "b.jpg")
    stylizer = Stylizer(tmp_path)
    assert len(stylizer) == 2
    out = stylizer.apply(scene(), StyleDraw(0, 1.0))
    assert abs(out.mean() - 200) < 8

    class Pictures:
        def __len__(self):
            return 1

        def image(self, index, /):
            return drawn_style(4)

    np.testing.assert_array_equal(
        Stylizer(Pictures()).apply(scene(), StyleDraw(0, 1.0)), stylize(scene(), drawn_style(4))
    )


def test_copies_made_beforehand(tmp_path):
    for style, value in ((0, 10), (1, 250)):
        (tmp_path / str(style) / "dog").mkdir(parents=True)
        Image.fromarray(np.full((32, 32, 3), value, np.uint8)).save(tmp_path / str(style) / "dog" / "rex.png")
    stylizer = Stylizer(precomputed=tmp_path)
    assert len(stylizer) == 2
    image = scene()
    assert (stylizer.apply(image, StyleDraw(1, 1.0), "dog/rex.jpg") == 250).all()
    half = stylizer.apply(image, StyleDraw(0, 0.5), "dog/rex.jpg")
    assert np.abs(half - (image / 2 + 5)).max() <= 1
    with pytest.raises(UserError, match="cat"):
        stylizer.apply(image, StyleDraw(0, 1.0), "cat/tom.jpg")
    with pytest.raises(UserError, match="name"):
        stylizer.apply(image, StyleDraw(0, 1.0))


def network(seed: int, *, one_by_one: bool, prefix: str = "") -> tuple[dict, dict]:
    """State dicts in the common layout: numbered layers of a Sequential, pads and activations in between."""
    torch.manual_seed(seed)
    states: list[dict] = []
    for plan in (ENCODER, DECODER):
        state, number = {}, 0
        if plan is ENCODER and one_by_one:
            state[f"{prefix}0.weight"], state[f"{prefix}0.bias"] = (
                torch.eye(3)[:, :, None, None] * 2,
                -torch.ones(3),
            )
        for step in plan:
            number += 1 if isinstance(step, str) else 3
            if not isinstance(step, str):
                inputs, outputs = step
                state[f"{prefix}{number}.weight"] = (
                    torch.randn(outputs, inputs, 3, 3) * (2 / (9 * inputs)) ** 0.5
                )
                state[f"{prefix}{number}.bias"] = torch.zeros(outputs) + (0.5 if outputs == 3 else 0)
        states.append(state)
    return states[0], states[1]


@pytest.mark.slow
def test_adain_reads_weights_and_gives_the_styles_statistics(tmp_path):
    encoder, decoder = network(0, one_by_one=True)
    encoder["31.weight"], encoder["31.bias"] = (
        torch.zeros(512, 512, 3, 3),
        torch.zeros(512),
    )  # deeper layers: unused
    torch.save(encoder, tmp_path / "vgg.pth")
    save_file(decoder, tmp_path / "decoder.safetensors")
    net = AdaIN(tmp_path / "vgg.pth", tmp_path / "decoder.safetensors")
    image, style = scene(48), drawn_style(0)
    out = stylize(image, style, method=net)
    assert out.shape == image.shape
    assert not np.array_equal(out, net(image, drawn_style(1), 1.0))
    as_tensor = torch.from_numpy(image.astype(np.float32) / 255).permute(2, 0, 1)[None]
    assert net.features(as_tensor).shape == (1, 512, 6, 6)
    own = net.decode(net.features(as_tensor))[0].permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(net(image, style, 0.0), np.clip(own * 255 + 0.5, 0, 255).astype(np.uint8))
    np.testing.assert_array_equal(  # an image in its own style is what the decoder makes of it
        np.abs(net(image, image, 1.0).astype(int) - net(image, style, 0.0)).max() <= 1, True
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(8, 8), (17, 40), (33, 35)])
def test_adain_keeps_any_size(tmp_path, shape):
    encoder, decoder = network(1, one_by_one=False, prefix="features.")
    torch.save({"state_dict": encoder}, tmp_path / "e.pt")
    torch.save(decoder, tmp_path / "d.pt")
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    stylizer = Stylizer(encoder=tmp_path / "e.pt", decoder=tmp_path / "d.pt")
    assert stylizer.apply(image, StyleDraw(3, 0.7)).shape == image.shape


def test_adain_says_what_is_wrong_with_weights(tmp_path):
    encoder, decoder = network(2, one_by_one=True)
    torch.save(encoder, tmp_path / "e.pth")
    torch.save(decoder, tmp_path / "d.pth")
    with pytest.raises(UserError, match="convolution 0"):
        AdaIN(tmp_path / "d.pth", tmp_path / "e.pth")
    with pytest.raises(UserError, match="no file"):
        AdaIN(tmp_path / "x.pth", tmp_path / "d.pth")
    (tmp_path / "junk.pth").write_bytes(b"junk")
    with pytest.raises(UserError, match="cannot read"):
        AdaIN(tmp_path / "junk.pth", tmp_path / "d.pth")
    with pytest.raises(UserError, match="both"):
        Stylizer(encoder=tmp_path / "e.pth")


def test_errors_a_user_can_fix(tmp_path):
    with pytest.raises(UserError, match="strength"):
        stylize(scene(), drawn_style(0), 1.5)
    with pytest.raises(UserError, match="uint8"):
        stylize(scene()[..., 0], drawn_style(0))
    with pytest.raises(UserError, match="no pictures"):
        Stylizer(tmp_path)


def test_the_registered_cue():
    image = scene()
    a, b, c = (cue("stylized")(image, np.random.default_rng(s)) for s in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    np.testing.assert_array_equal(cue("stylized")(image, np.random.default_rng(0), strength=0.0), image)
