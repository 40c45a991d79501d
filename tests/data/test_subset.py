"""Some classes of a set: the shipped list, lists in files, every kind of DATA, and STL-10 as the papers split it."""

from __future__ import annotations

import hashlib
import json
import pickle
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torchvision
from image_files import age, pixels
from timm.data import ImageNetInfo

import cuewise
from cuewise.audits.sets import short_names
from cuewise.data import open_data
from cuewise.data.subset import read_list, split_classes
from cuewise.encoders.cached import content_stamp
from cuewise.errors import UserError

Write = Callable[..., Path]


@pytest.fixture
def animals(write: Write, tmp_path: Path) -> Path:
    for k, name in enumerate(("ant/a", "ant/b", "bee/c", "cat/d", "cat/old/e", "dog/f")):
        write(f"animals/{name}.png", seed=k)
    write("animals/bee/broken.png", b"")
    write("animals/cat/broken.png", b"")
    (tmp_path / "ids.txt").write_text("# mine\ndog the friend\ncat  # and her kittens\n\ndog\n")
    return tmp_path / "animals"


def test_the_list_of_imagenet_100() -> None:
    """The classes as the papers count them: 19 dogs, and those of the 16 categories with one class or more."""
    ids = read_list("imagenet100")
    assert len(ids) == len(set(ids)) == 100
    number = {name: i for i, name in enumerate(ImageNetInfo().label_names())}
    found = {number[name] for name in ids}
    assert sum(151 <= i <= 268 for i in found) == 19
    assert {15, 90, 99, 131, 137, 281, 765, 857, 508, 766, 717} <= found
    assert {155, 157, 158, 166, 167, 169, 176, 180, 209, 211, 222, 228, 234, 236, 246, 267, 268} <= found


def test_imagenet_100_of_a_larger_folder(write: Write, tmp_path: Path) -> None:
    for name in [*read_list("imagenet100"), "n01440764", "n15075141"]:
        write(f"train/{name}/x.png")
    ds = open_data(f"{tmp_path}/train?classes=imagenet100")
    assert len(ds) == 100
    assert ds.classes == tuple(sorted(read_list("imagenet100")))
    np.testing.assert_array_equal(ds.labels, np.arange(100))


def test_some_classes_of_a_folder(animals: Path) -> None:
    ds = open_data(f"{animals}?classes={animals.parent / 'ids.txt'}")
    assert ds.classes == ("cat", "dog")
    assert [ds.name(i) for i in range(len(ds))] == ["cat/d.png", "cat/old/e.png", "dog/f.png"]
    np.testing.assert_array_equal(ds.labels, [0, 0, 1])
    copy = pickle.loads(pickle.dumps(ds))
    for i in range(3):
        np.testing.assert_array_equal(copy.image(i), pixels(seed=3 + i))
    assert ds.read(2) == (animals / "dog/f.png").read_bytes()
    facts = ds.fingerprint()
    assert facts["count"] == 3
    assert [s["path"] for s in facts["skipped"]] == ["cat/broken.png"]  # those of bees are no part of it
    assert facts["hash"] != open_data(animals).fingerprint()["hash"]
    assert facts["sources"][0]["data"] == str(animals)
    assert facts["sources"][0]["classes"].endswith("ids.txt")
    joined = open_data([f"{animals}?classes={animals.parent / 'ids.txt'}", str(animals)])
    assert joined.classes == ("ant", "bee", "cat", "dog")
    np.testing.assert_array_equal(joined.labels, [2, 2, 3, 0, 0, 1, 2, 2, 3])


def test_archives_shards_and_generated_sets(animals: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.json").write_text(json.dumps(["bee", "dog"]))
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for file in sorted(animals.rglob("*.png")):
            archive.write(file, file.relative_to(tmp_path))
    for number, name in enumerate(("bee", "dog")):  # each shard has one of the two
        with tarfile.open(tmp_path / f"s-{number}.tar", "w") as tar:
            tar.add(animals / name, name)
    for place in ("set.zip", "set.zip/animals", "s-{0..1}.tar", "{s-0,s-1}.tar"):
        ds = open_data(f"{tmp_path}/{place}?classes={tmp_path}/ids.json")
        assert ds.classes == ("bee", "dog"), place
        assert [ds.name(i) for i in range(len(ds))] == ["bee/c.png", "dog/f.png"]
        np.testing.assert_array_equal(ds.image(1), pixels(seed=5))
    (tmp_path / "two.txt").write_text("\n".join(open_data("shapes?n=8").classes[2:4]))
    shapes = open_data(f"shapes?n=40&classes={tmp_path}/two.txt&size=32")
    assert shapes.image(0).shape == (32, 32, 3)
    assert 0 < len(shapes) < 40
    assert set(np.unique(shapes.labels)) == {0, 1}
    whole = open_data("shapes?n=40&size=32")
    np.testing.assert_array_equal(
        shapes.columns["texture"], whole.columns["texture"][np.isin(whole.labels, [2, 3])]
    )


def test_a_changed_file_changes_the_stamp(animals: Path) -> None:
    """Features of a subset are kept on disk: they must not outlive its images, and need not heed others."""
    age(animals)
    spec = f"{animals}?classes={animals.parent / 'ids.txt'}"
    first = content_stamp(open_data(spec))
    (animals / "ant/a.png").write_bytes((animals / "dog/f.png").read_bytes())
    assert content_stamp(open_data(spec)) == first
    (animals / "dog/f.png").write_bytes((animals / "ant/b.png").read_bytes())
    assert content_stamp(open_data(spec)) != first


def test_make_writes_the_subset_out(animals: Path, tmp_path: Path) -> None:
    cuewise.make("gaussian", f"{animals}?classes={tmp_path}/ids.txt", str(tmp_path / "out"), workers="0")
    made = open_data(tmp_path / "out")
    assert made.classes == ("cat", "dog")
    assert len(made) == 3
    with pytest.raises(UserError, match="contains the other"):
        cuewise.make("gaussian", f"{animals}?classes={tmp_path}/ids.txt", str(animals / "out"), workers="0")


def test_missing_classes_are_counted_and_named(animals: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"100 of 100 classes are not there: n01558993, n01692333.* and 80 more"
    ):
        open_data(f"{animals}?classes=imagenet100")
    (tmp_path / "ids.txt").write_text("dog\nemu\nfox\n")
    with pytest.raises(
        UserError, match=r"animals: of the list .*ids.txt, 2 of 3 classes .*: emu, fox \(.*'ant'"
    ):
        open_data(f"{animals}?classes={tmp_path}/ids.txt")


@pytest.mark.parametrize(
    ("place", "classes", "word"),
    [
        ("animals", "nothing.txt", r"'nothing.txt' cannot be read .* comes with cuewise: imagenet100"),
        ("animals", "", "cannot be read"),
        ("animals", "{}/empty.txt", "is empty; give one class per line"),
        ("animals/ant", "{}/ids.txt", "has no labels; give one folder per class"),
        ("nowhere", "imagenet100", "nowhere: there is no such folder"),
    ],
)
def test_lists_that_cannot_be(animals: Path, tmp_path: Path, place: str, classes: str, word: str) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n")
    with pytest.raises(UserError, match=word):
        open_data(f"{tmp_path}/{place}?classes={classes.format(tmp_path)}")


def test_options_in_any_order(tmp_path: Path) -> None:
    assert split_classes("a?classes=x") == ("a", "x")
    assert split_classes("hf:a?classes=x&split=b") == ("hf:a?split=b", "x")
    assert split_classes("hf:a?split=b&classes=x") == ("hf:a?split=b", "x")
    assert split_classes("hf:a?split=b&classes=x&config=c") == ("hf:a?split=b&config=c", "x")
    assert split_classes("hf:a?split=b") == ("hf:a?split=b", None)
    odd = tmp_path / "why?classes=me"  # a folder that is called so
    odd.mkdir()
    assert split_classes(str(odd)) == (str(odd), None)


def test_names_in_an_audit_leave_the_list_out() -> None:
    assert short_names(["imagenet/val?classes=lists/mine.txt", "sketch?classes=imagenet100"]) == [
        "imagenet/val",
        "sketch",
    ]


def test_every_list_is_packed() -> None:
    """What is not Python must be named in pyproject.toml, or an installed cuewise lacks it."""
    root = Path(__file__).parents[2]
    globs = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"][
        "cuewise"
    ]
    package = root / "src" / "cuewise"
    packed = {file for pattern in globs for file in package.glob(pattern)}
    others = {
        f for f in package.rglob("*") if f.is_file() and f.suffix != ".py" and "__pycache__" not in f.parts
    }
    assert others == packed


@pytest.fixture
def stl10(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """4 training, 6 unlabelled and 3 test images in STL-10's own files."""
    kind = torchvision.datasets.STL10
    base = tmp_path / kind.base_folder
    base.mkdir()
    rng = np.random.default_rng(0)

    def put(name: str, data: bytes) -> list[str]:
        (base / name).write_bytes(data)
        return [name, hashlib.md5(data).hexdigest()]

    def images(n: int) -> bytes:
        return rng.integers(0, 256, (n, 3, 96, 96), dtype=np.uint8).tobytes()

    train = [put("train_X.bin", images(4)), put("train_y.bin", bytes([1, 10, 3, 3]))]
    monkeypatch.setattr(kind, "train_list", [*train, put("unlabeled_X.bin", images(6))])
    monkeypatch.setattr(
        kind, "test_list", [put("test_X.bin", images(3)), put("test_y.bin", bytes([2, 1, 10]))]
    )
    names = ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"]
    put(kind.class_names_file, "\n".join(names).encode())
    return tmp_path


def test_stl10_as_the_papers_split_it(stl10: Path) -> None:
    spec = f"torchvision:STL10:{stl10}?split="
    unlabelled = open_data(spec + "train+unlabeled")
    assert len(unlabelled) == 10
    assert unlabelled.labels is None
    train, test = open_data(spec + "train"), open_data(spec + "test")
    np.testing.assert_array_equal(train.labels, [0, 9, 2, 2])
    np.testing.assert_array_equal(test.labels, [1, 0, 9])
    assert train.classes == test.classes
    assert train.classes[9] == "truck"
    np.testing.assert_array_equal(unlabelled.image(1), train.image(1))
    np.testing.assert_array_equal(unlabelled.image(4), open_data(spec + "unlabeled").image(0))
    (stl10 / "some.txt").write_text("truck\ncar\n")
    some = open_data(f"{spec}train&classes={stl10}/some.txt")
    np.testing.assert_array_equal(some.labels, [1, 0, 0])


@pytest.mark.slow
def test_stl10_is_pretrained_and_probed(stl10: Path) -> None:
    """The commands of docs/data.md."""
    spec, run = f"torchvision:STL10:{stl10}?split=", str(stl10 / "run")
    small = {"model": "cuewise/resnet-tiny?width=8", "size": 32, "batch_size": 4, "steps": 2, "workers": "0"}
    done = cuewise.pretrain(spec + "train+unlabeled", out=run, set=["moco.queue=16"], **small)  # type: ignore[arg-type]
    assert done["images"] == 10
    found = cuewise.probe("knn", run, train=[spec + "train"], test=[spec + "test"], k=1)
    assert found["scores"][0]["n"] == 3
