"""Corruptions against slow, plain loops written from their definitions."""

import colorsys
import io

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from cuewise.cues.corruptions import SEVERITIES, blur, corrupt, digital, noise, weather
from cuewise.cues.corruptions.source import CorruptionInput


@pytest.fixture
def image() -> np.ndarray:
    rng = np.random.default_rng(4)
    picture = Image.fromarray(rng.integers(0, 256, (8, 9, 3), dtype=np.uint8)).resize((37, 30), Image.BICUBIC)
    out = np.asarray(picture).copy()
    out[3:9, 5:15] = (250, 10, 30)
    out[20:24, 20:30] = rng.integers(0, 256, (4, 10, 3))
    return out


def store(values: np.ndarray) -> np.ndarray:
    return np.clip(values, 0, 255).astype(np.uint8)  # to uint8: the fraction is dropped


def close(a: np.ndarray, b: np.ndarray, levels: int = 1) -> None:
    assert np.abs(a.astype(int) - b.astype(int)).max() <= levels


def clamped(image: np.ndarray, dy: int, dx: int) -> np.ndarray:
    """image[y + dy, x + dx] with the border continued."""
    h, w = image.shape[:2]
    return image[np.clip(np.arange(h) + dy, 0, h - 1)][:, np.clip(np.arange(w) + dx, 0, w - 1)].astype(float)


def gauss(image: np.ndarray, sigma: float) -> np.ndarray:
    r = int(4 * sigma + 0.5)
    k = np.exp(-0.5 * (np.arange(-r, r + 1) / sigma) ** 2)
    k /= k.sum()
    rows = sum(k[i + r] * clamped(image, i, 0) for i in range(-r, r + 1))
    return sum(k[i + r] * clamped(rows, 0, i) for i in range(-r, r + 1))


LAWS = {
    "gaussian": (noise.gaussian_laws, noise.GAUSSIAN, lambda x, c, rng: x + rng.normal(0, c, x.shape)),
    "speckle": (noise.speckle_laws, noise.SPECKLE, lambda x, c, rng: x + x * rng.normal(0, c, x.shape)),
    "shot": (noise.shot_laws, noise.SHOT, lambda x, c, rng: rng.poisson(x * c) / c),
}


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_noise_law_is_that_of_the_formula(kind, severity):
    laws, constants, formula = LAWS[kind]
    table = laws(constants[severity - 1])
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
    rng = np.random.default_rng(severity)
    n = 40_000
    for v in (1, 40, 128, 254):
        drawn = store(np.clip(formula(np.full(n, v / 255), constants[severity - 1], rng), 0, 1) * 255)
        seen = np.bincount(drawn, minlength=256) / n
        assert np.abs(np.cumsum(seen) - np.cumsum(table[v])).max() < 2.2 / np.sqrt(n)


@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"])
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_noise_is_drawn_from_its_law(name, severity):
    kind = name.split("_")[0]
    law = {**{k: v[:2] for k, v in LAWS.items()}, "impulse": (noise.impulse_laws, noise.IMPULSE)}[kind]
    table = law[0](law[1][severity - 1])
    for v in (0, 3, 100, 255):
        out = corrupt(np.full((201, 301), v, np.uint8), name, severity, np.random.default_rng(v)).ravel()
        expected = table[v] * out.size
        many = expected > 8
        seen = np.bincount(out, minlength=256)
        observed, wanted = (
            np.append(seen[many], seen[~many].sum()),
            np.append(expected[many], expected[~many].sum()),
        )
        if wanted[-1] < 1e-9:
            assert observed[-1] == 0
            observed, wanted = observed[:-1], wanted[:-1]
        if len(wanted) > 1:
            assert stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 1e-4
        else:
            assert observed[0] == out.size


def test_neighbouring_noise_is_independent():
    out = corrupt(
        np.full((300, 300, 3), 128, np.uint8), "gaussian_noise", 2, np.random.default_rng(0)
    ).astype(float)
    out -= out.mean()
    for a, b in ((out[:, 1:], out[:, :-1]), (out[1:], out[:-1]), (out[..., 1:], out[..., :-1])):
        assert abs((a * b).mean() / out.var()) < 0.01


@pytest.mark.parametrize("severity", SEVERITIES)
def test_defocus(image, severity):
    radius, sigma = blur.DEFOCUS[severity - 1]
    reach, width = (8, 1) if radius <= 8 else (radius, 2)
    side = np.arange(-reach, reach + 1)
    kernel = (side[:, None] ** 2 + side**2 <= radius**2).astype(float)
    kernel /= kernel.sum()
    soft = np.exp(-0.5 * (np.arange(-width, width + 1) / sigma) ** 2)
    soft /= soft.sum()
    wide = np.pad(kernel, width, mode="reflect")
    kernel = sum(
        soft[i] * soft[j] * wide[i : i + 2 * reach + 1, j : j + 2 * reach + 1]
        for i in range(2 * width + 1)
        for j in range(2 * width + 1)
    )
    padded = np.pad(image.astype(float), ((reach, reach), (reach, reach), (0, 0)), mode="reflect")
    h, w = image.shape[:2]
    want = sum(
        kernel[i, j] * padded[i : i + h, j : j + w]
        for i in range(2 * reach + 1)
        for j in range(2 * reach + 1)
    )
    close(corrupt(image, "defocus_blur", severity, np.random.default_rng(0)), store(want))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_gaussian_blur(image, severity):
    close(
        corrupt(image, "gaussian_blur", severity, np.random.default_rng(0)),
        store(gauss(image, (1, 2, 3, 4, 6)[severity - 1])),
    )


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("degrees", [-45.0, -13.0, 0.0, 31.0])
def test_motion(image, severity, degrees):
    radius, sigma = blur.MOTION[severity - 1]
    i = np.arange(2 * radius + 1)
    k = np.exp(-0.5 * (i / sigma) ** 2)
    k /= k.sum()
    dy = np.ceil(i * np.sin(np.deg2rad(degrees)) - 0.5).astype(int)
    dx = np.ceil(i * np.cos(np.deg2rad(degrees)) - 0.5).astype(int)
    want = sum(k[t] * clamped(image, dy[t], dx[t]) for t in i)
    close(blur.blur_along(CorruptionInput(image), severity, degrees), store(want))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_glass_copies_from_the_bottom_right(image, severity):
    sigma, reach, rounds = blur.GLASS[severity - 1]
    h, w = image.shape[:2]
    rng = np.random.default_rng(9)
    moves = rng.integers(0, (2 * reach) ** 2, (rounds, (h - 2 * reach) * (w - 2 * reach)))
    want = store(gauss(image, sigma) + 1e-3)
    for once in moves:
        k = 0
        for y in range(h - reach, reach, -1):
            for x in range(w - reach, reach, -1):
                dy, dx = divmod(int(once[k]), 2 * reach)
                want[y, x] = want[y + dy - reach, x + dx - reach]
                k += 1
    close(blur.blur_through_glass(CorruptionInput(image), severity, moves, reach), store(gauss(want, sigma)))


def bilinear(field: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """field at rows y × columns x, inside."""
    y0, x0 = (
        np.minimum(np.floor(v).astype(int), n - 2) for v, n in ((y, field.shape[0]), (x, field.shape[1]))
    )
    b = (y - y0).reshape(-1, *[1] * (field.ndim - 1))
    rows = field[y0] * (1 - b) + field[y0 + 1] * b
    a = (x - x0).reshape(-1, *[1] * (field.ndim - 2))
    return rows[:, x0] * (1 - a) + rows[:, x0 + 1] * a


@pytest.mark.parametrize("severity", SEVERITIES)
def test_zoom(image, severity):
    end, step = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))[severity - 1]
    factors = np.arange(1, end, step)
    total = image.astype(float)
    h, w = image.shape[:2]
    for z in factors:
        ch, cw = int(np.ceil(h / z)), int(np.ceil(w / z))
        crop = image[(h - ch) // 2 :, (w - cw) // 2 :][:ch, :cw].astype(float)
        y, x = np.linspace(0, ch - 1, round(ch * z)), np.linspace(0, cw - 1, round(cw * z))
        total += bilinear(crop, y, x)[:h, :w]
    close(corrupt(image, "zoom_blur", severity, np.random.default_rng(0)), store(total / (len(factors) + 1)))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_elastic(image, severity):
    h, w = image.shape[:2]
    fields = np.random.default_rng(3).uniform(-1, 1, (h, w, 2)).astype(np.float32)
    alpha = 250 * (0.05, 0.065, 0.085, 0.1, 0.12)[severity - 1]
    smooth = fields * 0.005 * h * alpha
    for axis, n in ((0, h), (1, w)):
        r = int(3 * 0.01 * n + 0.5)
        k = np.exp(-0.5 * (np.arange(-r, r + 1) / (0.01 * n)) ** 2)
        k /= k.sum()
        wide = np.pad(smooth, [(r, r) if a == axis else (0, 0) for a in range(3)], mode="symmetric")
        smooth = sum(k[i] * np.take(wide, np.arange(n) + i, axis=axis) for i in range(2 * r + 1))
    wide = np.pad(image.astype(float), ((h, h), (w, w), (0, 0)), mode="symmetric")
    want = np.empty(image.shape)
    for y in range(h):
        for x in range(w):
            v, u = y + smooth[y, x, 1] + h, x + smooth[y, x, 0] + w
            want[y, x] = bilinear(wide, np.array([v]), np.array([u]))[0, 0]
    close(digital.bend(CorruptionInput(image), severity, fields), store(want))


@pytest.mark.slow
@pytest.mark.parametrize("severity", SEVERITIES)
def test_fog(image, severity):
    density, decay = weather.FOG[severity - 1]
    side, wibble = 64, 100.0
    numbers = np.random.default_rng(2).uniform(-1, 1, side * side)
    m, used, step = np.zeros((side, side)), 0, side
    while step >= 2:
        half = step // 2
        for down, right in ((half, half), (0, half), (half, 0)):
            for y in range(down, side, step):
                for x in range(right, side, step):
                    if down and right:
                        near = [(y + a, x + b) for a in (-half, half) for b in (-half, half)]
                    else:
                        near = [(y - half, x), (y + half, x), (y, x - half), (y, x + half)]
                    mean = sum(m[i % side, j % side] for i, j in near) / 4
                    m[y, x] = mean + wibble**2 * numbers[used]
                    used += 1
        step, wibble = half, wibble / decay
    m = (m - m.min()) / np.ptp(m)
    top = image.max() / 255
    want = (image / 255 + density * m[: image.shape[0], : image.shape[1], None]) * top / (top + density) * 255
    close(weather.fog_of(CorruptionInput(image), severity, numbers, 1.0, 0.0), store(want))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_snow(image, severity):
    mean, sigma, flake, threshold, radius, blur_sigma, mix = weather.SNOW[severity - 1]
    h, w = image.shape[:2]
    ch, cw = int(np.ceil(h / flake)), int(np.ceil(w / flake))
    field = np.random.default_rng(1).normal(mean, sigma, (ch, cw)).astype(np.float32)
    y, x = np.linspace(0, ch - 1, round(ch * flake)), np.linspace(0, cw - 1, round(cw * flake))
    layer = bilinear(field.astype(float), y, x)
    layer[layer < threshold] = 0
    layer = np.clip(layer, 0, 1)
    i = np.arange(2 * radius + 1)
    k = np.exp(-0.5 * (i / blur_sigma) ** 2)
    k /= k.sum()
    dy, dx = (np.ceil(i * f(np.deg2rad(-70.0)) - 0.5).astype(int) for f in (np.sin, np.cos))
    layer = sum(k[t] * clamped(layer, dy[t], dx[t]) for t in i)
    layer = np.round(layer * 255)[:h, :w, None]
    luma = (image @ np.array([0.299, 0.587, 0.114]))[..., None]
    want = mix * image + (1 - mix) * np.maximum(image, 1.5 * luma + 127.5) + layer + layer[::-1, ::-1]
    close(weather.snow_of(CorruptionInput(image), severity, field, -70.0), store(want))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_brightness_and_saturation_in_hsv(image, severity):
    image = image[:12, :20].copy()
    image[0, :3] = [[0, 0, 0], [90, 90, 90], [255, 255, 255]]
    a, b = digital.SATURATE[severity - 1]
    bright, vivid = np.empty(image.shape), np.empty(image.shape)
    for place in np.ndindex(*image.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*(image[place] / 255))
        bright[place] = colorsys.hsv_to_rgb(h, s, min(v + severity / 10, 1))
        vivid[place] = colorsys.hsv_to_rgb(h, min(s * a + b, 1), v)
    close(corrupt(image, "brightness", severity, np.random.default_rng(0)), store(bright * 255))
    close(corrupt(image, "saturate", severity, np.random.default_rng(0)), store(vivid * 255))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_contrast(image, severity):
    c = (0.4, 0.3, 0.2, 0.1, 0.05)[severity - 1]
    mean = image.mean(axis=(0, 1))
    close(corrupt(image, "contrast", severity, np.random.default_rng(0)), store((image - mean) * c + mean))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_pixelate_and_jpeg_are_pillows(image, severity):
    c = (0.6, 0.5, 0.4, 0.3, 0.25)[severity - 1]
    for side in (image, image[:, :25], np.ascontiguousarray(image[:20, :30])):
        h, w = side.shape[:2]
        small = Image.fromarray(side).resize((int(w * c), int(h * c)), Image.Resampling.BOX)
        want = np.asarray(small.resize((w, h), Image.Resampling.NEAREST))
        close(corrupt(side, "pixelate", severity, np.random.default_rng(0)), want)
    for picture in (image, image[..., 0]):
        data = io.BytesIO()
        Image.fromarray(picture).save(data, "JPEG", quality=(25, 18, 15, 10, 7)[severity - 1])
        close(
            corrupt(picture, "jpeg_compression", severity, np.random.default_rng(0)),
            np.asarray(Image.open(data)),
        )
