"""Folders: what counts as an image, what becomes a label, and what is skipped and said."""

from __future__ import annotations

import os

import numpy as np
import pytest
from image_files import age, encoded, pixels

import cuewise.data.folder as folder
from cuewise.data import BrokenImage, open_data
from cuewise.errors import UserError


def names(ds):
    return [ds.name(i) for i in range(len(ds))]


def whys(ds):
    return {s["path"]: s["why"] for s in ds.fingerprint()["skipped"]}


def test_labels_come_from_the_first_folders(write, tmp_path):
    for name in ["s/dog/deep/b.jpg", "s/dog/a.jpg", "s/cat/x.png", "s/cat/y.WEBP"]:
        write(name)
    ds = open_data(tmp_path / "s")
    assert names(ds) == ["cat/x.png", "cat/y.WEBP", "dog/a.jpg", "dog/deep/b.jpg"]
    assert ds.classes == ("cat", "dog")
    np.testing.assert_array_equal(ds.labels, [0, 0, 1, 1])
    assert ds.labels.dtype == np.int64
    assert ds.image(0).shape == (24, 32, 3)
    assert ds.read(0) == (tmp_path / "s/cat/x.png").read_bytes()


def test_a_flat_folder_has_no_labels(write, tmp_path):
    write("s/b.jpg")
    write("s/a.jpg")
    ds = open_data(str(tmp_path / "s"))
    assert names(ds) == ["a.jpg", "b.jpg"]
    assert ds.labels is None
    assert ds.classes == ()


def test_a_few_loose_images_are_skipped_and_reported(write, tmp_path):
    for name in ["s/dog/a.jpg", "s/cat/a.jpg", "s/cover.jpg"]:
        write(name)
    ds = open_data(tmp_path / "s")
    assert names(ds) == ["cat/a.jpg", "dog/a.jpg"]
    assert "no label" in whys(ds)["cover.jpg"]


def test_many_loose_images_make_the_folder_flat(write, tmp_path):
    for name in ["s/extra/a.jpg", "s/1.jpg", "s/2.jpg"]:
        write(name)
    ds = open_data(tmp_path / "s")
    assert len(ds) == 3
    assert ds.labels is None


def test_other_files_are_ignored_without_a_word(write, tmp_path):
    write("s/dog/a.jpg")
    for name in [
        "s/index.csv",
        "s/dog/notes.txt",
        "s/dog/.hidden.jpg",
        "s/.git/x.jpg",
        "s/__MACOSX/dog/._a.jpg",
    ]:
        write(name, b"whatever")
    write("s/docs/readme.md", b"a folder without images is no class")
    ds = open_data(tmp_path / "s")
    assert names(ds) == ["dog/a.jpg"]
    assert ds.classes == ("dog",)
    assert ds.fingerprint()["skipped"] == []


def test_broken_files_are_counted_with_a_reason(write, tmp_path):
    write("s/dog/a.jpg")
    write("s/dog/empty.jpg", b"")
    write("s/dog/page.png", b"<html>404</html>")
    os.symlink(tmp_path / "nowhere", tmp_path / "s/dog/gone.jpg")
    os.mkfifo(tmp_path / "s/dog/pipe.jpg")
    ds = open_data(tmp_path / "s")
    assert names(ds) == ["dog/a.jpg"]
    found = whys(ds)
    assert found["dog/empty.jpg"] == "empty file"
    assert found["dog/page.png"].startswith("not an image")
    assert "broken symbolic link" in found["dog/gone.jpg"]
    assert found["dog/pipe.jpg"] == "not a regular file"
    assert ds.fingerprint()["count"] == 1


def test_an_image_under_another_images_ending_is_fine(write, tmp_path):
    write("s/a.jpg", encoded(pixels(), "PNG"))
    np.testing.assert_array_equal(open_data(tmp_path / "s").image(0), pixels())


def test_links_are_followed_once_and_loops_end(write, tmp_path):
    write("s/dog/a.jpg")
    write("elsewhere/b.jpg")
    os.symlink(tmp_path / "s", tmp_path / "s/dog/loop")
    os.symlink(tmp_path / "s/dog", tmp_path / "s/alias")  # comes first in order, and yet dog stays dog
    os.symlink(tmp_path / "elsewhere", tmp_path / "s/wolf")
    os.symlink(tmp_path / "elsewhere", tmp_path / "s/yak")
    os.symlink(tmp_path / "s/dog/self", tmp_path / "s/dog/self")
    os.symlink(tmp_path / "s/dog/a.jpg", tmp_path / "s/dog/also.jpg")
    ds = open_data(tmp_path / "s")
    assert names(ds) == ["dog/a.jpg", "dog/also.jpg", "wolf/b.jpg"]
    assert set(whys(ds)) == {"dog/loop", "alias", "yak"}


@pytest.mark.parametrize(
    "name",
    [
        b"a b.jpg",
        "ünïcode 犬.jpg".encode(),
        b"new\nline.jpg",
        b"bad \xff\xfe.jpg",
        b"tab\t'quote\".jpg",
        b"\xe2\x80\xae.jpg",
    ],
)
def test_any_name_works(tmp_path, name):
    root = os.fsencode(tmp_path / "s")
    os.makedirs(root + b"/cl\xe4ss")
    with open(root + b"/cl\xe4ss/" + name, "wb") as file:
        file.write(encoded(pixels(), "PNG"))
    ds = open_data(tmp_path / "s")
    assert os.fsencode(ds.name(0)) == b"cl\xe4ss/" + name
    assert os.fsencode(ds.classes[0]) == b"cl\xe4ss"
    np.testing.assert_array_equal(ds.image(0), pixels())
    again = open_data(tmp_path / "s")
    assert again.name(0) == ds.name(0)
    assert again.fingerprint()["hash"] == ds.fingerprint()["hash"]


@pytest.mark.slow
def test_deep_nesting_ends_in_no_recursion_error(tmp_path):
    depth, here = 1100, os.getcwd()
    os.mkdir(tmp_path / "s")
    try:
        os.chdir(tmp_path / "s")
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
        with open("a.png", "wb") as file:
            file.write(encoded(pixels(), "PNG"))
        assert len(open_data(tmp_path / "s")) == 1
        os.unlink("a.png")
        for _ in range(depth):  # pytest itself would not get to the bottom of it
            os.chdir("..")
            os.rmdir("d")
    finally:
        os.chdir(here)


def test_nothing_to_use_says_what_to_do(write, tmp_path):
    (tmp_path / "empty").mkdir()
    write("broken/a.jpg", b"")
    with pytest.raises(UserError, match=r"holds no images; it needs \.jpg"):
        open_data(tmp_path / "empty")
    with pytest.raises(UserError, match=r"none of the 1 image files .* a\.jpg: empty file"):
        open_data(tmp_path / "broken")
    with pytest.raises(UserError, match="no such folder or file"):
        open_data(tmp_path / "missing")
    with pytest.raises(UserError, match=r"no such folder or file; did you mean .*/empty\?$"):
        open_data(tmp_path / "emty")
    with pytest.raises(UserError, match="single image"):
        open_data(write("one.jpg"))
    with pytest.raises(UserError, match="no image set given"):
        open_data([])


def test_a_file_that_vanishes_is_broken(write, tmp_path):
    path = write("s/a.jpg")
    ds = open_data(tmp_path / "s")
    path.unlink()
    with pytest.raises(BrokenImage, match="No such file"):
        ds.image(0)


@pytest.fixture
def walks(monkeypatch):
    """How often a folder was really listed."""
    count = []
    real = folder.walk

    def counting(*args):
        count.append(1)
        return real(*args)

    monkeypatch.setattr(folder, "walk", counting)
    return count


def test_the_list_is_made_once(write, tmp_path, walks):
    write("s/dog/a.jpg")
    write("s/dog/broken.jpg", b"")
    age(tmp_path / "s")
    first = open_data(tmp_path / "s")
    second = open_data(tmp_path / "s")
    assert len(walks) == 1
    assert first.fingerprint() == second.fingerprint()
    assert names(first) == names(second)
    np.testing.assert_array_equal(first.labels, second.labels)


@pytest.mark.parametrize("change", ["add", "remove", "rename", "new folder", "repair", "young"])
def test_the_list_is_made_anew_after_a_change(write, tmp_path, walks, change):
    write("s/dog/a.jpg")
    write("s/dog/b.jpg")
    broken = write("s/dog/broken.jpg", b"")
    age(tmp_path / "s", 1 if change == "young" else 60)
    before = open_data(tmp_path / "s")
    if change == "add":
        write("s/dog/c.jpg")
    elif change == "remove":
        (tmp_path / "s/dog/b.jpg").unlink()
    elif change == "rename":
        (tmp_path / "s/dog/b.jpg").rename(tmp_path / "s/dog/z.jpg")
    elif change == "new folder":
        write("s/cat/a.jpg")
    elif change == "repair":
        broken.write_bytes(encoded(pixels()))  # in place: the folder's time stays
    after = open_data(tmp_path / "s")
    assert len(walks) == 2
    assert (after.fingerprint() == before.fingerprint()) == (change == "young")


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_cache_is_made_anew(write, tmp_path, walks, own_cache, damage):
    write("s/dog/a.jpg")
    age(tmp_path / "s")
    before = open_data(tmp_path / "s")
    (entry,) = own_cache.glob("index-*.npz")
    good = entry.read_bytes()
    if damage is None:  # one bit in the names
        at = good.index(b"dog/a.jpg")
        damage = good[:at] + b"c" + good[at + 1 :]
    entry.write_bytes(damage)
    after = open_data(tmp_path / "s")
    assert len(walks) == 2
    assert names(after) == names(before) == ["dog/a.jpg"]
    assert entry.read_bytes() == good or len(entry.read_bytes()) == len(good)


def test_a_cache_that_cannot_be_written_costs_nothing(write, tmp_path, monkeypatch):
    write("s/dog/a.jpg")
    blocked = write("file", b"")
    monkeypatch.setenv("CUEWISE_CACHE", str(blocked / "below"))
    assert len(open_data(tmp_path / "s")) == 1


def test_the_hash_follows_the_list_not_the_place(write, tmp_path):
    for place in ("one", "two"):
        write(f"{place}/dog/a.jpg")
        write(f"{place}/cat/a.jpg")
    one, two = open_data(tmp_path / "one").fingerprint(), open_data(tmp_path / "two").fingerprint()
    assert one["hash"] == two["hash"]
    write("two/cat/b.jpg")
    assert open_data(tmp_path / "two").fingerprint()["hash"] != one["hash"]
