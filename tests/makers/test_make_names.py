"""Output names: inside the folder, distinct on every file system, never too long."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuewise.makers.names import LONGEST, Stems, safe_stem, same

PART = st.one_of(
    st.sampled_from(["..", ".", "", "a", "A", "ä", "a\u0308", ".git", "x" * 300, "é" * 200]),
    st.text(max_size=6),
)
NAMES = st.builds(lambda parts, end: "/".join(parts) + end, st.lists(PART, min_size=1, max_size=4),
                  st.sampled_from([".jpg", ".JPG", ".png", ""]))  # fmt: skip


def distinct(names: list[str]) -> list[str]:
    stems = Stems(names.__getitem__, len(names), lambda stem, i: (stem + ".png",))
    return [stems[i] for i in range(len(names))]


@pytest.mark.slow
@given(st.lists(NAMES.filter(lambda n: not any("\ud800" <= c <= "\udfff" for c in n)), max_size=12))
def test_any_names_stay_inside_and_apart(names: list[str]) -> None:
    files = [stem + ".png" for stem in distinct(names)]
    assert len({same(file) for file in files}) == len(names)
    folders = {same(file.rsplit("/", 1)[0]) for file in files if "/" in file}
    assert folders.isdisjoint(same(file) for file in files)
    for file in files:
        parts = file.split("/")
        assert not file.startswith("/")
        assert all(part and not part.startswith(".") and "\0" not in part for part in parts)
        assert all(len(os.fsencode(part)) <= LONGEST for part in parts)


def test_the_first_keeps_its_name() -> None:
    names = ["a.jpg", "a.png", "A.jpg", "a-png.jpg", "b.jpg"]
    assert distinct(names) == ["a", "a-png", "A-jpg", "a-png-jpg", "b"]


def test_a_file_never_takes_the_name_of_a_folder() -> None:
    assert distinct(["dog.jpg", "dog.png/rex.jpg"]) == ["dog-jpg", "dog.png/rex"]


def test_names_that_lead_elsewhere() -> None:
    assert safe_stem("../../etc/passwd.png") == "_/_/etc/passwd"
    assert safe_stem("/etc/rex.jpg") == "etc/rex"
    assert safe_stem(".hidden/.rex.jpg") == "_.hidden/_.rex"


def test_long_names_are_cut_between_characters_and_stay_apart() -> None:
    one, two = "狗" * 84 + "1.jpg", "狗" * 84 + "2.jpg"
    first, second = distinct([one, two])
    assert first != second
    assert len(first.encode()) < LONGEST
    assert first.startswith("狗" * 50)
