"""A WordNet id and its names are the same class, in sets and in class maps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cuewise.errors import UserError
from cuewise.probes.class_map import match, read_class_map
from cuewise.probes.wordnet import other_names

TRAIN = ("n01440764", "n02123045", "n02504458", "n02124075")  # tench, tabby, African elephant, Egyptian cat


def test_names_and_ids() -> None:
    assert "n02123045" in other_names("Tabby")
    assert "tabby" in other_names("n02123045")
    assert other_names("African_elephant")[0] == "n02504458"
    assert other_names("crane") == ()  # a bird and a machine
    assert other_names("zeppelinfish") == ()


def test_sets_that_name_their_classes_differently() -> None:
    labels = np.array([0, 1, 1, 2])
    got = match(labels, ("african-elephant", "tabby", "toaster"), TRAIN)
    assert got.shared == ("african-elephant", "tabby")
    assert got.dropped == ("toaster",)
    np.testing.assert_array_equal(got.right.argmax(1)[:2], [2, 1])
    back = match(np.array([0]), ("n02123045",), ("dog", "tabby"))
    np.testing.assert_array_equal(back.right, [[False, True]])


def test_a_class_map_of_categories(tmp_path: Path) -> None:
    file = tmp_path / "map.json"
    file.write_text(json.dumps({"cat": ["n02123045", "Egyptian cat"], "elephant": ["African elephant"]}))
    mapping = read_class_map(file, [("cat", "elephant", "boat")], TRAIN)
    got = match(np.array([0, 1, 2]), ("cat", "elephant", "boat"), TRAIN, mapping)
    np.testing.assert_array_equal(got.right[0], [False, True, False, True])
    np.testing.assert_array_equal(got.right[1], [False, False, True, False])
    assert got.dropped == ("boat",)
    file.write_text(json.dumps({"cat": ["toaster"]}))
    with pytest.raises(UserError, match="the training set has no class 'toaster'"):
        read_class_map(file, [("cat",)], TRAIN)
