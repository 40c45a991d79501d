"""Files that lie about their sizes, that inflate without end or that never answer: refused or skipped, in bounded memory."""

from __future__ import annotations

import importlib
import io
import os
import resource
import signal
import struct
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_files import encoded, pixels
from PIL import Image as Pillow

from cuewise.data import BrokenImage, decode, open_data
from cuewise.data.parent import end_with_parent
from cuewise.errors import UserError

decoding = importlib.import_module("cuewise.data.decode")  # the package has a function of that name
GOOD = encoded(pixels(), "PNG")


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """A reader that never ends fails its own test, and does not hold up the others."""

    def late(number: int, frame: object) -> None:
        raise AssertionError("it takes too long")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def zip_of(path: Path, *members: tuple[str, bytes, int]) -> bytearray:
    """A zip of (name, data, method) and its bytes."""
    with zipfile.ZipFile(path, "w") as file:
        for name, data, method in members:
            file.writestr(name, data, method)
    return bytearray(path.read_bytes())


def directory(data: bytearray, name: bytes) -> int:
    """Where the member's line in the directory begins."""
    at = data.rfind(b"PK\x01\x02", 0, data.rfind(name))
    assert data[at + 46 :].startswith(name)
    return at


def skipped(path: Path) -> dict[str, str]:
    ds = open_data(path)
    found = {s["path"]: s["why"] for s in ds.fingerprint()["skipped"]}
    for i in range(len(ds)):
        try:
            ds.image(i)
        except BrokenImage as error:
            found[error.name] = error.why
    return found


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("field", ["stored", "size", "header", "all"])
@pytest.mark.parametrize("value", [2**40, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_zip_that_lies_about_sizes(tmp_path: Path, method: int, field: str, value: int) -> None:
    """64-bit numbers stand in an extra field; each that is all ones in the old field is looked up there."""
    path = tmp_path / "a.zip"
    data = zip_of(path, ("c/good.png", GOOD, 0), ("c/liar.png", GOOD, method))
    at = directory(data, b"c/liar.png")
    places = {"size": at + 24, "stored": at + 20, "header": at + 42}
    chosen = [k for k in places if field in (k, "all")]
    for k in chosen:
        data[places[k] : places[k] + 4] = b"\xff" * 4
    extra = struct.pack(f"<HH{len(chosen)}Q", 1, 8 * len(chosen), *[value] * len(chosen))
    struct.pack_into("<H", data, at + 30, len(extra))
    end = at + 46 + len(b"c/liar.png")
    data[end:end] = extra
    tail = data.rfind(b"PK\x05\x06")
    struct.pack_into("<I", data, tail + 12, struct.unpack_from("<I", data, tail + 12)[0] + len(extra))
    path.write_bytes(data)
    before = peak_mb()
    assert list(skipped(path)) == ["c/liar.png"]
    assert peak_mb() - before < 100


@pytest.mark.slow
def test_a_member_that_inflates_to_more_than_it_declares(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = bomb.compress(GOOD) + b"".join(bomb.compress(bytes(1 << 20)) for _ in range(256)) + bomb.flush()
    data = zip_of(path, ("c/good.png", GOOD, 0), ("c/liar.png", stream, 0))
    at = directory(data, b"c/liar.png")
    struct.pack_into("<H", data, at + 10, zipfile.ZIP_DEFLATED)
    struct.pack_into("<I", data, at + 24, 5000)
    path.write_bytes(data)
    before = peak_mb()
    assert list(skipped(path)) == ["c/liar.png"]
    assert peak_mb() - before < 100


@pytest.mark.parametrize("cut", [1, 10, 21, 30, 60, 90])
def test_a_zip_whose_directory_is_cut_or_points_past_its_end(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.zip"
    data = zip_of(path, ("a.png", GOOD, 0), ("b.png", GOOD, 0))
    tail = data.rfind(b"PK\x05\x06")
    path.write_bytes(data[: tail - cut] + data[tail:])  # the directory runs into the end record
    with pytest.raises(UserError):
        open_data(path)
    path.write_bytes(data[:tail] + b"PK\x06\x07" + struct.pack("<IQI", 0, len(data) - cut, 1) + data[tail:])
    with pytest.raises(UserError):
        open_data(path)
    path.write_bytes(b"")
    with pytest.raises(UserError):
        open_data(path)


def number(value: int) -> bytes:
    """A tar's size field in base 256."""
    if value < 0:
        value += 256**12
    return value.to_bytes(12, "big") if value >> 95 else b"\x80" + value.to_bytes(11, "big")


def tar_of(path: Path, size: bytes, kind: bytes = b"0") -> None:
    """A good image, then a member of that size and kind, then another good one."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("c/good.png", "c/liar.png", "c/last.png"):
            member = tarfile.TarInfo(name)
            member.size = len(GOOD)
            tar.addfile(member, io.BytesIO(GOOD))
    data = bytearray(out.getvalue())
    at = data.find(b"c/liar.png")
    data[at + 124 : at + 136], data[at + 156 : at + 157] = size, kind
    data[at + 148 : at + 156] = b"        "
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    path.write_bytes(data)


@pytest.mark.parametrize("kind", [b"0", b"x", b"g", b"L", b"K", b"S", b"V"])
@pytest.mark.parametrize("size", [2**40, 2**62, 2**80, -1, -512, -1024, -(2**40)])
def test_a_tar_that_lies_about_sizes(tmp_path: Path, size: int, kind: bytes) -> None:
    path = tmp_path / "a.tar"
    tar_of(path, number(size), kind)
    before = peak_mb()
    ds = open_data(path)
    assert ds.name(0) == "c/good.png"
    assert ds.read(0) == GOOD
    assert "c/liar.png" not in [ds.name(i) for i in range(len(ds))]
    assert peak_mb() - before < 100


def test_a_tar_of_headers_of_headers(tmp_path: Path) -> None:
    out = io.BytesIO()
    member = tarfile.TarInfo("a.png")
    member.size = len(GOOD)
    out.write(member.tobuf() + GOOD + bytes(-len(GOOD) % 512))
    for _ in range(3000):  # each announces the name of the next
        header = tarfile.TarInfo("././@LongLink")
        header.type, header.size = b"L", 1
        out.write(header.tobuf() + b"x" + bytes(511))
    (tmp_path / "a.tar").write_bytes(out.getvalue())
    assert len(open_data(tmp_path / "a.tar")) == 1


MODES = ["1", "L", "P", "LA", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I;16", "I"]


@pytest.mark.parametrize("mode", MODES)
def test_large_images_are_converted_in_strips_to_the_same_pixels(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    if mode.startswith("I"):
        image = Pillow.fromarray(
            rng.integers(0, 65536, (33, 47)).astype(np.int32 if mode == "I" else np.uint16)
        )
    else:
        image = Pillow.fromarray(rng.integers(0, 256, (33, 47, 4), dtype=np.uint8), "RGBA")
        image = image.convert(mode) if mode != "PA" else image.convert("RGB").convert("P").convert("PA")
    whole = decoding.to_rgb(image, "x")
    monkeypatch.setattr(decoding, "STRIP", 100)
    np.testing.assert_array_equal(decoding.to_rgb(image, "x"), whole)
    image.info["transparency"] = 3
    if mode in ("L", "P", "RGB"):
        image.info["transparency"] = (1, 2, 3) if mode == "RGB" else 3
        monkeypatch.setattr(decoding, "STRIP", 1 << 20)
        whole = decoding.to_rgb(image, "x")
        monkeypatch.setattr(decoding, "STRIP", 100)
        np.testing.assert_array_equal(decoding.to_rgb(image, "x"), whole)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_small_file_of_many_pixels_costs_little(mode: str) -> None:
    data = encoded(Pillow.new(mode, (4000, 4000)), "PNG")
    base = peak_mb()
    assert decode(data, "x").shape == (4000, 4000, 3)
    assert peak_mb() - base < 16 * 12  # bytes per pixel: Pillow's 4, ours 3, strips and the file


def test_more_pixels_than_allowed_are_refused_before_they_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for form in ("PNG", "JPEG"):
        data = encoded(Pillow.new("RGB", (300, 200)), form)
        monkeypatch.setenv("CUEWISE_MAX_PIXELS", "59999")
        with pytest.raises(BrokenImage, match="300×200 pixels are more than the 59999 allowed"):
            decode(data, "x")
        monkeypatch.setenv("CUEWISE_MAX_PIXELS", "60000")
        assert decode(data, "x").shape == (200, 300, 3)


def test_a_progressive_jpeg_cut_inside_its_frame_header() -> None:
    data = encoded(Pillow.new("RGB", (30, 20)), "JPEG", progressive=True)
    at = data.find(b"\xff\xc2")
    for end in range(at, at + 20):
        with pytest.raises(BrokenImage):
            decode(data[:end], "x")


def test_a_file_that_became_a_pipe_or_a_giant(write: Callable[..., Path], tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(f"s/{name}.png")
    ds = open_data(tmp_path / "s")
    (tmp_path / "s" / "a.png").unlink()
    os.mkfifo(tmp_path / "s" / "a.png")
    with open(tmp_path / "s" / "b.png", "r+b") as file:
        file.truncate(2**40)
    signal.alarm(10)
    try:
        with pytest.raises(BrokenImage, match="not a regular file any more"):
            ds.read(0)
        with pytest.raises(BrokenImage, match="of which at most"):
            ds.read(1)
        assert ds.image(2).shape == (24, 32, 3)
        again = open_data(tmp_path / "s")
    finally:
        signal.alarm(0)
    assert {s["path"] for s in again.fingerprint()["skipped"]} == {"a.png", "b.png"}


def forked(work: Callable[[], Any]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_ends_with_its_parent_whatever_it_waits_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    note = tmp_path / "worker"

    def worker() -> None:
        end_with_parent()
        note.write_text(str(os.getpid()))
        open(tmp_path / "pipe", "rb")  # noqa: SIM115  # never answers

    def parent() -> None:
        forked(worker)
        time.sleep(60)

    pid = forked(parent)
    while not note.exists() or not note.read_text():
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    end = time.monotonic() + 10
    while Path(f"/proc/{note.read_text()}/stat").exists():
        state = Path(f"/proc/{note.read_text()}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":  # nobody reaps it here
            break
        assert time.monotonic() < end
        time.sleep(0.05)
