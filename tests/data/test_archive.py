"""Zips and tar shards: the same rules as folders, and each image one read."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tarfile
import threading
import zipfile

import numpy as np
import pytest
from image_files import age, encoded, pixels

import cuewise.data.archive as archive
from cuewise.data import BrokenImage, open_data
from cuewise.errors import UserError


def names(ds):
    return [ds.name(i) for i in range(len(ds))]


def whys(ds):
    return {s["path"]: s["why"] for s in ds.fingerprint()["skipped"]}


def zip_of(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def picture(seed=0):
    return encoded(pixels(seed=seed), "PNG")


PETS = {"cat/a.png": picture(1), "dog/b.png": picture(2), "dog/c d.png": picture(3)}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_is_like_its_folder(tmp_path, compression):
    ds = open_data(zip_of(tmp_path / "pets.zip", PETS, compression))
    with zipfile.ZipFile(tmp_path / "pets.zip") as file:
        file.extractall(tmp_path / "pets")
    plain = open_data(tmp_path / "pets")
    assert names(ds) == names(plain) == list(PETS)
    assert ds.classes == plain.classes == ("cat", "dog")
    assert ds.fingerprint()["hash"] == plain.fingerprint()["hash"]
    for i, data in enumerate(PETS.values()):
        assert ds.read(i) == data
        np.testing.assert_array_equal(ds.image(i), plain.image(i))


def test_a_folder_inside_a_zip(tmp_path):
    members = {f"{style}/{name}": data for style in ("photo", "sketch") for name, data in PETS.items()}
    path = zip_of(tmp_path / "pacs.zip", members)
    ds = open_data(f"{path}/photo")
    assert names(ds) == list(PETS)
    assert ds.classes == ("cat", "dog")
    assert open_data(path).classes == ("photo", "sketch")
    assert names(open_data(f"{path}/photo/dog/")) == ["b.png", "c d.png"]
    with pytest.raises(UserError, match="holds no images"):
        open_data(f"{path}/nothing")


def test_a_zip_of_a_folder_may_hold_the_folder_itself(tmp_path):
    members = {"pets/": b"", "__MACOSX/pets/._a.png": b"x", **{f"pets/{k}": v for k, v in PETS.items()}}
    path = zip_of(tmp_path / "pets.zip", members)
    assert names(open_data(path)) == list(PETS)
    assert names(open_data(path / "dog")) == names(open_data(path / "pets/dog")) == ["b.png", "c d.png"]
    with pytest.raises(UserError, match=r"holds no images but archives; .*pets\.zip"):
        open_data(tmp_path)


def test_odd_members(tmp_path):
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("d/twice.png", picture(1))
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("d/twice.png", picture(2))
        file.writestr("d/../../../etc/up.png", picture(3))
        file.writestr("/abs/olute.png", picture(4))
        file.writestr("d/empty.png", b"")
        file.writestr("d/page.png", b"<html>")
        file.writestr("d/ü 犬.png", picture(5))
        file.writestr("d/notes.txt", b"text")
        file.writestr("d/.hidden.png", picture(6))
        file.writestr("d/lzma.png", picture(7), zipfile.ZIP_LZMA)
    ds = open_data(path)
    assert names(ds) == ["abs/olute.png", "d/etc/up.png", "d/twice.png", "d/ü 犬.png"]
    np.testing.assert_array_equal(ds.image(2), pixels(seed=2))
    found = whys(ds)
    assert "same name" in found["d/twice.png"]
    assert found["d/empty.png"] == "empty file"
    assert "not an image" in found["d/page.png"]
    assert "method 14" in found["d/lzma.png"]


def test_encrypted_members_are_reported(tmp_path):
    path = zip_of(tmp_path / "a.zip", PETS)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    ds = open_data(path)
    assert len(ds) == 2
    assert "encrypted" in whys(ds)["cat/a.png"]


def test_old_names_without_utf8_flag(tmp_path):
    path = zip_of(tmp_path / "a.zip", {"d/e.png": picture()})
    path.write_bytes(path.read_bytes().replace(b"d/e.png", b"d/\x82.png"))
    assert names(open_data(path)) == ["d/é.png"]


def test_a_64_bit_zip(tmp_path):
    path = tmp_path / "large.zip"
    with zipfile.ZipFile(path, "w") as file, file.open("d/a.png", "w", force_zip64=True) as member:
        member.write(picture())
    data = path.read_bytes()
    at = data.index(b"PK\x01\x02")
    line = bytearray(data[at : data.index(b"PK\x05\x06")])
    size, extra = struct.unpack_from("<I", line, 24)[0], struct.unpack_from("<H", line, 30)[0]
    assert extra == 0
    line[20:28] = b"\xff" * 8
    line[42:46] = b"\xff" * 4
    line[30:32] = struct.pack("<H", 28)
    line += struct.pack("<HHQQQ", 1, 24, size, size, 0)
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, len(line), at)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, at + len(line), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(data[:at] + line + end64 + locator + end)
    assert zipfile.ZipFile(path).namelist() == ["d/a.png"]  # a real one, not only ours
    np.testing.assert_array_equal(open_data(path).image(0), pixels())


def test_a_damaged_member_is_broken_when_read(tmp_path):
    path = zip_of(tmp_path / "a.zip", PETS)
    data = bytearray(path.read_bytes())
    data[data.index(picture(2)) + 60] ^= 1
    path.write_bytes(data)
    ds = open_data(path)
    with pytest.raises(BrokenImage, match="checksum"):
        ds.image(1)
    ds.image(0)


@pytest.mark.parametrize("keep", [0.3, 0.999])
def test_a_cut_zip_is_reported(tmp_path, keep):
    path = zip_of(tmp_path / "a.zip", PETS)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(UserError, match="not a complete zip"):
        open_data(path)


def test_a_zip_is_listed_once_and_anew_after_a_change(tmp_path, monkeypatch):
    path = zip_of(tmp_path / "a.zip", PETS)
    age(path)
    listed = []
    real = archive.members
    monkeypatch.setattr(archive, "members", lambda *args: listed.append(1) or real(*args))
    first = open_data(path)
    made = len(listed)
    assert open_data(path).fingerprint() == first.fingerprint()
    assert len(listed) == made
    age(zip_of(path, {**PETS, "emu/a.png": picture()}))
    assert len(open_data(path)) == 4
    with pytest.raises(UserError, match="changed while it was in use"):
        pickle.loads(pickle.dumps(first)).image(0)


def test_open_archives_survive_pickling_forking_and_threads(tmp_path):
    many = {f"d/{k:03d}.png": picture(k) for k in range(40)}
    ds = open_data(zip_of(tmp_path / "a.zip", many))
    ds.image(0)
    copy = pickle.loads(pickle.dumps(ds))
    np.testing.assert_array_equal(copy.image(7), pixels(seed=7))
    child = os.fork()
    if child == 0:
        good = all(np.array_equal(ds.image(k), pixels(seed=k)) for k in range(40))
        os._exit(0 if good else 1)
    wrong = []

    def check(order):
        for k in order:
            if not np.array_equal(ds.image(k), pixels(seed=k)):
                wrong.append(k)

    threads = [
        threading.Thread(target=check, args=(np.random.default_rng(t).permutation(40),)) for t in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert os.waitpid(child, 0)[1] == 0


def tar_of(path, members, mode="w", form=tarfile.PAX_FORMAT):
    with tarfile.open(path, mode, format=form) as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return path


def test_shards_are_one_set(tmp_path):
    for k in range(12):
        members = {f"dog/{k}.png": picture(k), f"cat/{k}.png": picture(100 + k), "notes.txt": b"x"}
        tar_of(tmp_path / f"s-{k:03d}.tar", members)
    ds = open_data(f"{tmp_path}/s-{{000..011}}.tar")
    assert len(ds) == 24
    assert ds.classes == ("cat", "dog")
    for i in range(24):
        folder, number = ds.name(i).split("/")
        seed = int(number[:-4]) + (100 if folder == "cat" else 0)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(ds)).image(i), pixels(seed=seed))
    assert len(open_data(f"{tmp_path}/s-{{003,005}}.tar")) == 4
    with pytest.raises(UserError, match=r"s-012\.tar: there is no such"):
        open_data(f"{tmp_path}/s-{{000..012}}.tar")


def test_the_same_name_in_two_shards_is_two_images(tmp_path):
    for k in range(2):
        tar_of(tmp_path / f"s{k}.tar", {"dog/a.png": picture(k), f"dog/only{k}.png": picture(9)})
    ds = open_data(f"{tmp_path}/s{{0..1}}.tar")
    assert names(ds) == ["dog/a (s0).png", "dog/a (s1).png", "dog/only0.png", "dog/only1.png"]
    np.testing.assert_array_equal(ds.image(1), pixels(seed=1))


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_odd_tar_members(tmp_path, form):
    long = "d/" + "x" * 150 + " ü.png"
    path = tar_of(
        tmp_path / "s.tar", {long: picture(1), "../d/up.png": picture(2), "d/no.png": b""}, form=form
    )
    with tarfile.open(path, "a", format=form) as file:
        info = tarfile.TarInfo("d/link.png")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(info)
    ds = open_data(path)
    assert names(ds) == ["d/up.png", long]
    assert set(whys(ds)) == {"d/no.png", "d/link.png"}


def test_numbers_beside_the_images_are_labels(tmp_path):
    members = {}
    for k, number in enumerate([3, 0, 3]):
        parts = {f"{k:04d}.png": picture(k), f"{k:04d}.cls": str(number).encode()}
        members |= parts if k != 1 else dict(reversed(parts.items()))
    ds = open_data(tar_of(tmp_path / "s.tar", members))
    np.testing.assert_array_equal(ds.labels, [3, 0, 3])
    assert ds.classes == ("0", "1", "2", "3")


def test_a_cut_tar_gives_what_it_has_and_says_so(tmp_path):
    path = tar_of(tmp_path / "s.tar", PETS)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(picture(3)) + 100])
    ds = open_data(path)
    assert len(ds) == 2 or "damaged tar" in str(whys(ds))
    assert names(ds)[:2] == ["cat/a.png", "dog/b.png"]
    if len(ds) == 3:
        with pytest.raises(BrokenImage, match="cut off"):
            ds.image(2)


def test_compressed_tars_are_refused_with_advice(tmp_path):
    with pytest.raises(UserError, match=r"compressed tar.*unpack it"):
        open_data(tar_of(tmp_path / "s.tar.gz", PETS, "w:gz"))
    with pytest.raises(UserError, match="not a plain tar"):
        open_data(tar_of(tmp_path / "s.tar", PETS, "w:gz"))
