"""The flat name table: order, duplicates, and what a million names cost."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuewise.data.index import Builder

parts = st.binary(min_size=1, max_size=5).filter(lambda b: b"/" not in b and b"\0" not in b)
paths = st.lists(parts, min_size=1, max_size=3).map(b"/".join)


@given(st.lists(paths, unique=True, max_size=40))
@pytest.mark.slow
def test_order_labels_and_columns_hold_together(names):
    builder = Builder("at")
    for k, name in enumerate(names):
        builder.add(name, k)
    index = builder.finish()
    nested = sorted(n for n in names if b"/" in n)
    labelled = bool(nested) and 2 * (len(names) - len(nested)) <= len(names)
    expected = nested if labelled else sorted(names)
    assert [index.raw(i) for i in range(len(index))] == expected
    assert [names[k] for k in index.where["at"]] == expected
    assert (index.labels is not None) == labelled
    if labelled:
        folders = [n.split(b"/")[0].decode("utf-8", "surrogateescape") for n in expected]
        assert [index.classes[k] for k in index.labels] == folders
        assert len(index.skipped) == len(names) - len(nested)


@given(st.lists(paths, unique=True, min_size=1, max_size=20), st.randoms())
@pytest.mark.slow
def test_the_hash_does_not_depend_on_the_order_of_adding(names, random):
    def build(order):
        builder = Builder()
        for name in order:
            builder.add(name)
        return builder.finish().hash

    mixed = list(names)
    random.shuffle(mixed)
    assert build(names) == build(mixed)
    assert build(names) != build([*names, b"one/more"])


def test_the_boundaries_are_part_of_the_hash():
    one, two = Builder(), Builder()
    for name in (b"ab", b"c"):
        one.add(name)
    for name in (b"a", b"bc"):
        two.add(name)
    assert one.finish().hash != two.finish().hash


def test_of_equal_names_the_last_counts():
    builder = Builder("at")
    for at, name in enumerate([b"d/x.jpg", b"d/y.jpg", b"d/x.jpg", b"d/x.jpg"]):
        builder.add(name, at)
    index = builder.finish()
    np.testing.assert_array_equal(index.where["at"], [3, 1])
    assert [s.path for s in index.skipped] == ["d/x.jpg", "d/x.jpg"]


MILLION = """
    import os, resource, sys
    os.environ["CUEWISE_CACHE"] = sys.argv[1]
    import numpy, cuewise.data.folder as folder
    from cuewise.data import open_data

    class Entry:  # what os.scandir gives, one at a time
        def __init__(self, name): self.name = name
        def is_dir(self, **_): return False

    class Flat:
        def __enter__(self): return (Entry(b"n%08d_%d.JPEG" % ((k * 7919) % 1000003, k)) for k in range(1_000_000))
        def __exit__(self, *_): pass

    folder.os.scandir = lambda path: Flat()
    folder.check_file = lambda path: None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ds = open_data(sys.argv[1])
    again = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(ds) == 1_000_000 and ds.name(0) == "n00000000_0.JPEG", ds.name(0)
    print((again - before) / 1024)
"""


@pytest.mark.shell
def test_a_million_names_in_one_folder_cost_less_than_200_mb(tmp_path):
    """Peak of the whole process while listing, sorting, hashing and storing, above what the imports take."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MILLION), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 200
