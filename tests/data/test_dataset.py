"""Joining and selecting sets, and the words that name them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_files import pixels

from cuewise.data import open_data
from cuewise.data.open import expand
from cuewise.errors import UserError


@pytest.fixture
def pets(write, tmp_path):
    for k, name in enumerate(
        ["one/dog/a.png", "one/ant/a.png", "two/dog/b.png", "two/bee/a.png", "flat/x.png"]
    ):
        write(name, seed=k)
    return tmp_path


def test_joined_sets_merge_their_classes_by_name(pets):
    ds = open_data([str(pets / "two"), pets / "one"])
    assert [ds.name(i) for i in range(4)] == ["bee/a.png", "dog/b.png", "ant/a.png", "dog/a.png"]
    assert ds.classes == ("ant", "bee", "dog")
    assert [ds.classes[k] for k in ds.labels] == ["bee", "dog", "ant", "dog"]
    np.testing.assert_array_equal(ds.image(3), pixels(seed=0))
    print_ = ds.fingerprint()
    assert print_["count"] == 4
    assert [source["count"] for source in print_["sources"]] == [2, 2]
    assert print_["hash"] != open_data([pets / "one", pets / "two"]).fingerprint()["hash"]


def test_a_set_without_labels_makes_the_join_unlabelled(pets):
    ds = open_data([pets / "one", pets / "flat"])
    assert len(ds) == 3
    assert ds.labels is None
    assert ds.classes == ()


def test_selecting(pets):
    ds = open_data([pets / "one", pets / "two"])
    some = ds.select([3, 0])
    assert [some.name(i) for i in range(2)] == ["dog/b.png", "ant/a.png"]
    assert some.classes == ds.classes
    np.testing.assert_array_equal(some.labels, ds.labels[[3, 0]])
    assert some.select([1]).name(0) == "ant/a.png"
    assert len(ds.select(ds.labels == ds.classes.index("dog"))) == 2
    assert some.fingerprint()["count"] == 2
    assert some.fingerprint()["hash"] != ds.fingerprint()["hash"]
    for bad in ([4], [-1], np.ones(3, bool)):
        with pytest.raises(IndexError):
            ds.select(bad)
    for bad in (4, -5):
        with pytest.raises(IndexError):
            ds.name(bad)


def test_sets_can_be_pickled(pets):
    ds = open_data([pets / "one", pets / "two", "shapes?n=3"]).select([0, 4])
    copy = pickle.loads(pickle.dumps(ds))
    for i in range(2):
        np.testing.assert_array_equal(copy.image(i), ds.image(i))
    assert copy.fingerprint() == ds.fingerprint()


def test_the_embedded_shapes():
    ds = open_data("shapes:conflict?n=6&size=32")
    assert len(ds) == 6
    assert ds.image(0).shape == (32, 32, 3)
    assert ds.read(0) is None
    assert {"shape", "texture"} <= set(ds.columns)
    assert len(ds.select([1, 2]).columns["shape"]) == 2
    assert ds.fingerprint()["sources"][0]["data"] == "shapes:conflict?n=6&size=32"
    with pytest.raises(UserError):
        open_data("shapes:nonsense")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.tar", ["a.tar"]),
        ("s-{008..011}.tar", ["s-008.tar", "s-009.tar", "s-010.tar", "s-011.tar"]),
        ("{2..0}", ["2", "1", "0"]),
        ("{9..11}", ["9", "10", "11"]),
        ("{a,b}/{0..1}", ["a/0", "a/1", "b/0", "b/1"]),
        ("{}", ["{}"]),
        ("{x}", ["{x}"]),
    ],
)
def test_braces(text, expected):
    assert expand(text) == expected


def test_a_folder_with_braces_in_its_name_is_itself(write, tmp_path):
    write("{0..1}/a.png")
    assert len(open_data(tmp_path / "{0..1}")) == 1


@given(st.integers(0, 500), st.integers(0, 40), st.integers(1, 5))
def test_brace_ranges_have_every_number_once(first, more, width):
    low, high = str(first).zfill(width), str(first + more).zfill(width)
    assert [int(name) for name in expand(f"{{{low}..{high}}}")] == list(range(first, first + more + 1))


def test_joined_paths_with_braces(pets):
    assert len(open_data(f"{pets}/{{one,two}}")) == 4
