"""Parquet files, Hugging Face sets and torchvision sets."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
import types

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torchvision
from image_files import age, encoded, pixels

import cuewise.data.parquet as parquet
import cuewise.data.torchvision_sets as torchvision_sets
from cuewise.data import open_data
from cuewise.errors import UserError


def picture(seed):
    return encoded(pixels(seed=seed), "PNG")


def hugging_face(path, labels=(2, 0, 2), names=("ant", "bee", "cat")):
    """A file as `Dataset.to_parquet` writes it."""
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list(names)}}
    table = pa.table(
        {
            "image": [{"bytes": picture(k), "path": f"{k}.png"} for k in range(len(labels))],
            "label": pa.array(labels, pa.int64()),
        }
    )
    meta = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    pq.write_table(table.replace_schema_metadata(meta), path, row_group_size=2)
    return path


def test_a_hugging_face_parquet_file(tmp_path):
    ds = open_data(hugging_face(tmp_path / "a.parquet"))
    assert len(ds) == 3
    assert ds.classes == ("ant", "bee", "cat")
    np.testing.assert_array_equal(ds.labels, [2, 0, 2])
    copy = pickle.loads(pickle.dumps(ds))
    for k in range(3):
        assert ds.read(k) == picture(k)
        np.testing.assert_array_equal(copy.image(k), pixels(seed=k))
    assert len({ds.name(k) for k in range(3)}) == 3


def test_parquet_is_unpacked_once(tmp_path, monkeypatch):
    path = hugging_face(tmp_path / "a.parquet")
    age(path)
    first = open_data(path)
    calls = []
    real = parquet._copy
    monkeypatch.setattr(parquet, "_copy", lambda *args: calls.append(1) or real(*args))
    assert open_data(path).fingerprint() == first.fingerprint()
    assert not calls
    age(hugging_face(path, labels=(1, 1, 1, 1)))
    assert len(open_data(path)) == 4
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("labels", "expected", "classes"),
    [
        (["b", "a", "b"], [1, 0, 1], ("a", "b")),
        ([1, 0, 2], [1, 0, 2], ("0", "1", "2")),
        ([1, None, 2], None, ()),
        ([-1, -1, -1], None, ()),
        ([0.5, 0.1, 0.2], None, ()),
    ],
)
def test_bare_columns(tmp_path, labels, expected, classes):
    table = pa.table({"id": [1, 2, 3], "img": [picture(k) for k in range(3)], "label": labels})
    pq.write_table(table, tmp_path / "a.parquet")
    ds = open_data(tmp_path / "a.parquet")
    assert ds.classes == classes
    assert (None if ds.labels is None else ds.labels.tolist()) == expected
    np.testing.assert_array_equal(ds.image(1), pixels(seed=1))


def test_odd_parquet_rows_and_files(tmp_path):
    rows = [picture(0), b"", None, b"<html>", picture(4)]
    pq.write_table(pa.table({"image": rows, "label": [0, 1, 2, 3, 4]}), tmp_path / "a.parquet")
    ds = open_data(tmp_path / "a.parquet")
    np.testing.assert_array_equal(ds.labels, [0, 4])
    np.testing.assert_array_equal(ds.image(1), pixels(seed=4))
    assert [s["path"] for s in ds.fingerprint()["skipped"]] == ["00000001", "00000002", "00000003"]
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b.parquet")
    with pytest.raises(UserError, match=r"no column of images .* among: x"):
        open_data(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:200])
    with pytest.raises(UserError, match="cannot be read as parquet"):
        open_data(tmp_path / "c.parquet")


def test_missing_packages_are_named(tmp_path, monkeypatch):
    path = hugging_face(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"pip install 'cuewise\[parquet\]'"):
        open_data(path)
    with pytest.raises(UserError, match=r"pip install 'cuewise\[hf\]'"):
        open_data("hf:cifar10")


class Image:
    def __init__(self, decode=True):
        self.decode = decode


class ClassLabel:
    names = ("ant", "bee")


class Rows:
    """As much of `datasets.Dataset` as is used."""

    def __init__(self, rows, features):
        self.rows, self.features = rows, features

    def cast_column(self, name, feature):
        assert not feature.decode
        return self

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, key):
        return [row[key] for row in self.rows] if isinstance(key, str) else self.rows[key]


@pytest.fixture
def hub(monkeypatch):
    rows = [{"image": {"bytes": picture(k), "path": None}, "label": k % 2} for k in range(4)]
    found = {"train": Rows(rows, {"image": Image(), "label": ClassLabel()}), "test": Rows([], {"text": 1})}

    def load_dataset(name, config):
        if name != "pets":
            raise FileNotFoundError(f"no {name}\nand a long story")
        return found

    module = types.SimpleNamespace(load_dataset=load_dataset, Image=Image)
    monkeypatch.setitem(sys.modules, "datasets", module)


def test_a_hugging_face_set(hub):
    ds = open_data("hf:pets")
    assert len(ds) == 4
    assert ds.classes == ("ant", "bee")
    np.testing.assert_array_equal(ds.labels, [0, 1, 0, 1])
    np.testing.assert_array_equal(ds.image(2), pixels(seed=2))


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("hf:pets?split=val", "no split 'val'; it has: train, test"),
        ("hf:pets?split=test", "no column of images among: text"),
        ("hf:other", r"cannot be opened \(no other\)"),
        ("hf:", "no name given"),
        ("hf:pets?color=red", "no option"),
    ],
)
def test_hugging_face_sets_that_cannot_be(hub, spec, word):
    with pytest.raises(UserError, match=word):
        open_data(spec)


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """Ten images in CIFAR-10's own files, whose checksums torchvision then expects."""
    kind = torchvision.datasets.CIFAR10
    base = tmp_path / "data" / kind.base_folder
    base.mkdir(parents=True)

    def put(name, content):
        (base / name).write_bytes(pickle.dumps(content))
        return [name, hashlib.md5((base / name).read_bytes()).hexdigest()]

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (10, 3072), dtype=np.uint8)
    train = [put("data_batch_1", {"data": images[:6], "labels": [0, 1, 2, 3, 4, 9]})]
    test = [put("test_batch", {"data": images[6:], "labels": [1, 1, 0, 0]})]
    names = [f"class{k}" for k in range(10)]
    meta = put("batches.meta", {"label_names": names})
    monkeypatch.setattr(kind, "train_list", train)
    monkeypatch.setattr(kind, "test_list", test)
    monkeypatch.setattr(kind, "meta", {"filename": meta[0], "key": "label_names", "md5": meta[1]})
    return tmp_path / "data", images


def test_a_torchvision_set(cifar):
    root, images = cifar
    ds = open_data(f"torchvision:CIFAR10:{root}")
    assert len(ds) == 6
    np.testing.assert_array_equal(ds.labels, [0, 1, 2, 3, 4, 9])
    assert ds.classes[9] == "class9"
    np.testing.assert_array_equal(ds.image(2), images[2].reshape(3, 32, 32).transpose(1, 2, 0))
    assert ds.read(0) is None
    test = open_data(f"torchvision:CIFAR10:{root}?split=test")
    assert len(test) == 4
    assert test.name(0) == "test/000000"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(test)).image(3), test.image(3))
    assert ds.fingerprint()["hash"] != test.fingerprint()["hash"]


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("torchvision:CIFAR10:{}/nowhere", "nothing is downloaded"),
        ("torchvision:STL10:{}", "nothing is downloaded"),
        ("torchvision:CIFAR11:{}", "no set 'CIFAR11'; it has: .*CIFAR10"),
        ("torchvision:CIFAR10", "write torchvision:NAME:ROOT"),
        ("torchvision:CIFAR10:{}?split=val", "it has: train, test"),
    ],
)
def test_torchvision_sets_that_cannot_be(tmp_path, spec, word):
    with pytest.raises(UserError, match=word):
        open_data(spec.format(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["_labels", "_samples"])  # Aircraft, DTD, Flowers, Pets; Cars
def test_fine_grained_sets_of_torchvision_have_labels(where):
    class Fine:
        classes = ["a", "b", "c"]

        def __init__(self):
            labels = [2, 0, 1]
            setattr(self, where, labels if where == "_labels" else [(f"{k}.jpg", k) for k in labels])

        def __len__(self):
            return 3

    labels, classes = torchvision_sets.labels_of(Fine())
    np.testing.assert_array_equal(labels, [2, 0, 1])
    assert classes == ("a", "b", "c")
