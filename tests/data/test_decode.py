"""Every kind of image file gives the pixels a viewer shows, or a BrokenImage with a reason."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import encoded, pixels
from PIL import Image as Pillow
from PIL import ImageOps

from cuewise.data import BrokenImage, decode
from cuewise.data.headers import exif_orientation, kind, read_jpeg_header

JPEGS = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "progressive 4:2:0": {"subsampling": 2, "progressive": True},
    "progressive 4:4:4": {"subsampling": 0, "progressive": True, "optimize": True},
    "coarse": {"quality": 10},
    "fine": {"quality": 100},
    "restart markers": {"restart_marker_blocks": 1},
    "RGB inside": {"keep_rgb": True},
}


def by_pillow(data: bytes) -> np.ndarray:
    with Pillow.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("options", JPEGS.values(), ids=JPEGS.keys())
@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 5), (157, 203)])
def test_jpeg_is_pillows_to_the_bit(options, height, width):
    data = encoded(pixels(height, width), **options)
    image = decode(data, "x")
    np.testing.assert_array_equal(image, by_pillow(data))
    assert image.dtype == np.uint8
    assert image.flags.c_contiguous


def test_grey_jpeg():
    data = encoded(Pillow.fromarray(pixels()).convert("L"))
    np.testing.assert_array_equal(decode(data, "x"), by_pillow(data))


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_forms_keep_their_pixels(form):
    np.testing.assert_array_equal(decode(encoded(pixels(), form), "x"), pixels())


def test_lossless_webp():
    np.testing.assert_array_equal(decode(encoded(pixels(), "WEBP", lossless=True), "x"), pixels())


def test_cmyk_jpeg_looks_like_its_original():
    data = encoded(Pillow.fromarray(pixels(64, 64)).convert("CMYK"), quality=98)
    assert np.abs(decode(data, "x").astype(int) - pixels(64, 64)).mean() < 3


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_16_bit_grey_is_scaled_not_clipped(form):
    values = np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16)
    image = decode(encoded(values, form), "x")
    np.testing.assert_array_equal(image, np.repeat((values >> 8).astype(np.uint8)[:, :, None], 3, 2))


def test_16_bit_pgm():
    data = b"P5 2 1 65535\n" + bytes([0x12, 0x34, 0xFE, 0xDC])
    np.testing.assert_array_equal(decode(data, "x")[0, :, 0], [0x12, 0xFE])


def test_16_bit_rgb_png_keeps_the_high_byte():
    rows = b"\0" + struct.pack(">6H", 0x1234, 0x5678, 0x9ABC, 0xFFFF, 0x0000, 0x80FF)
    data = png_of(2, 1, rows, bits=16, colour=2)
    np.testing.assert_array_equal(decode(data, "x")[0], [[0x12, 0x56, 0x9A], [0xFF, 0, 0x80]])


def png_of(width: int, height: int, rows: bytes, bits: int, colour: int) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    ends = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + ends


def test_transparency_is_composited_on_white():
    rgba = np.zeros((1, 3, 4), np.uint8)
    rgba[0, :, 0] = 200
    rgba[0, :, 3] = [0, 255, 128]
    got = decode(encoded(rgba, "PNG"), "x")[0]
    np.testing.assert_array_equal(got[0], [255, 255, 255])
    np.testing.assert_array_equal(got[1], [200, 0, 0])
    np.testing.assert_allclose(got[2], [227, 127, 127], atol=1)


def test_palette_and_its_transparent_colour():
    image = Pillow.fromarray(pixels()).quantize(8)
    np.testing.assert_array_equal(decode(encoded(image, "PNG"), "x"), np.asarray(image.convert("RGB")))
    clear = int(np.asarray(image)[0, 0])
    got = decode(encoded(image, "PNG", transparency=clear), "x")
    assert (got[np.asarray(image) == clear] == 255).all()
    shown = np.asarray(image) != clear
    np.testing.assert_array_equal(got[shown], np.asarray(image.convert("RGB"))[shown])


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "LAB"])
def test_every_mode_becomes_rgb(mode):
    source = Pillow.fromarray(pixels())
    if mode == "LAB":
        image = Pillow.new("LAB", (32, 24), (128, 10, 10))
    else:
        image = source.convert(mode)
    form = "TIFF" if mode in ("CMYK", "YCbCr", "LAB") else "PNG"
    data = encoded(image, form)
    try:
        Pillow.open(io.BytesIO(data)).load()
    except OSError:
        pytest.skip(f"this Pillow cannot read the {form} of mode {mode} that it wrote")
    got = decode(data, "x")
    assert got.shape == (24, 32, 3)


@pytest.mark.parametrize("form", ["GIF", "WEBP"])
def test_animation_gives_its_first_frame(form):
    frames = [Pillow.new("RGB", (8, 8), colour) for colour in ("red", "blue", "lime")]
    options = {"lossless": True} if form == "WEBP" else {}
    data = encoded(frames[0], form, save_all=True, append_images=frames[1:], duration=50, **options)
    np.testing.assert_array_equal(decode(data, "x"), np.broadcast_to([255, 0, 0], (8, 8, 3)))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_exif_is_upright(orientation, form):
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    data = encoded(pixels(20, 30), form, exif=exif)
    with Pillow.open(io.BytesIO(data)) as image:
        upright = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    got = decode(data, "x")
    np.testing.assert_array_equal(got, upright)
    assert got.shape[:2] == ((30, 20) if orientation > 4 else (20, 30))
    assert got.flags.c_contiguous


def test_orientation_that_makes_no_sense_is_ignored():
    for value in (0, 9, 65535):
        tiff = struct.pack("<2sHIHHHIHHI", b"II", 42, 8, 1, 0x0112, 3, 1, value, 0, 0)
        assert exif_orientation(tiff) == 1


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_in_the_exif_block_are_survived(body):
    assert exif_orientation(b"II*\0" + body) in range(1, 9)
    data = b"\xff\xd8\xff\xe1" + struct.pack(">H", 8 + len(body)) + b"Exif\0\0" + body
    read_jpeg_header(data + encoded(pixels())[2:])


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 1}])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("end", [b"", b"\xff\xd9", b"\0" * 64])
def test_truncated_jpeg_is_broken_not_grey(options, mode, end):
    image = Pillow.fromarray(pixels(96, 128)).convert(mode)
    data = encoded(image, quality=90, **options)
    for share in (0.05, 0.35, 0.65, 0.93):
        with pytest.raises(BrokenImage) as caught:
            decode(data[: int(len(data) * share)] + end, "dog/rex.jpg")
        assert caught.value.name == "dog/rex.jpg"
        assert caught.value.why


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_progressive_jpeg_cut_between_scans_is_broken(mode):
    data = encoded(Pillow.fromarray(pixels(64, 64)).convert(mode), progressive=True)
    ends = [at for at in range(len(data)) if data[at : at + 2] in (b"\xff\xc4", b"\xff\xda")]
    assert len(ends) > 6
    for at in ends[2:]:
        with pytest.raises(BrokenImage):
            decode(data[:at] + b"\xff\xd9", "x")


def test_bytes_behind_a_jpeg_do_no_harm():
    data = encoded(pixels())
    np.testing.assert_array_equal(decode(data + b"trailing" * 9, "x"), by_pillow(data))


@pytest.mark.parametrize("form", ["PNG", "GIF", "WEBP", "TIFF", "BMP", "PPM"])
def test_other_truncated_files_are_broken(form):
    data = encoded(pixels(64, 64), form)
    with pytest.raises(BrokenImage):
        decode(data[: len(data) // 2], "x")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"<html>not found</html>", "not an image"),
        (b"\xff\xd8\xff", "cannot be decoded"),
        (png_of(0, 5, b"", 8, 2), "decoded|zero"),
        (png_of(60000, 60000, b"", 8, 2), "pixels"),
    ],
)
def test_other_broken_files(data, word):
    with pytest.raises(BrokenImage, match=word):
        decode(data, "x")


def test_a_jpeg_bomb_is_refused_before_it_is_unpacked():
    data = bytearray(encoded(pixels()))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", 65000, 65000)
    with pytest.raises(BrokenImage, match="65000×65000"):
        decode(bytes(data), "x")


def test_float_pixels_are_refused():
    with pytest.raises(BrokenImage, match="floating"):
        decode(encoded(np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8), "TIFF"), "x")


@pytest.mark.slow
def test_pillow_warns_nobody(capfd, monkeypatch):
    monkeypatch.setenv("CUEWISE_MAX_PIXELS", "100000000")
    large = Pillow.new("1", (12_000, 8_000))  # over Pillow's warning, under its refusal
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decode(encoded(large, "PNG"), "x")
    assert not caught
    assert capfd.readouterr() == ("", "")


@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.slow
def test_a_damaged_file_never_does_anything_but_decode_or_say_so(data):
    form = data.draw(st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"]))
    good = bytearray(encoded(pixels(), form))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        image = decode(bytes(good), "x")
    except BrokenImage:
        return
    assert image.ndim == 3
    assert image.shape[2] == 3


def test_kinds():
    for form, name in [("JPEG", "jpeg"), ("PNG", "png"), ("GIF", "gif"), ("WEBP", "webp"), ("TIFF", "tiff")]:
        assert kind(encoded(pixels(), form)[:32]) == name
    assert kind(b"plain text") is None
