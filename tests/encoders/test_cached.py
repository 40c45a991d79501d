"""Features on disk: found again when nothing changed, made anew when anything did."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from cuewise.data import Dataset, open_data
from cuewise.encoders import Encoder, cached, load_encoder
from cuewise.encoders.cached import cached_features, content_stamp, feature_key
from cuewise.encoders.embed import embed_dataset
from cuewise.encoders.encoder import Card
from cuewise.errors import UserError

pytestmark = pytest.mark.usefixtures("warm_start")


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUEWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


@pytest.fixture
def photos(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "photos"))


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    torch.manual_seed(0)
    return load_encoder("cuewise/resnet-tiny?width=8", size=24)


@pytest.fixture
def extractions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that images were really pushed through."""
    calls: list[int] = []

    def counted(*args, **kwargs):  # type: ignore[no-untyped-def]
        calls.append(1)
        return embed_dataset(*args, **kwargs)

    monkeypatch.setattr(cached, "embed_dataset", counted)
    return calls


def key_of(encoder: Encoder, data: Dataset, view: str) -> str | None:
    return feature_key(encoder, content_stamp(data), view)


def test_the_second_time_nothing_is_extracted(
    encoder: Encoder, photos: Path, extractions: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "ant" / "broken.jpg").write_bytes((photos / "ant" / "ant 1.jpg").read_bytes()[:200])
    first = cached_features(encoder, open_data(str(photos)), label="embedding train")
    assert "from the cache" not in capsys.readouterr().err
    again = cached_features(encoder, open_data(str(photos)), label="embedding train")
    assert "embedding train: 48 images, features from the cache" in capsys.readouterr().err
    assert len(extractions) == 1
    np.testing.assert_array_equal(first.features, again.features)
    np.testing.assert_array_equal(first.index, again.index)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert again.skipped == first.skipped != []


def test_a_changed_file_misses(encoder: Encoder, photos: Path) -> None:
    data = open_data(str(photos))
    key = key_of(encoder, data, "center")
    file = photos / "bee" / "bee 3.jpg"
    facts = file.stat()
    content = bytearray(file.read_bytes())
    content[-40] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # same size, same time: the inode still tells
    assert open_data(str(photos)).fingerprint()["hash"] == data.fingerprint()["hash"]
    assert key_of(encoder, open_data(str(photos)), "center") != key


def test_only_the_chosen_files_matter(encoder: Encoder, photos: Path) -> None:
    key = key_of(encoder, open_data(str(photos)).select([0, 1]), "center")
    os.utime(photos / "cat" / "cat 3.jpg")
    assert key_of(encoder, open_data(str(photos)).select([0, 1]), "center") == key
    assert key_of(encoder, open_data(str(photos)).select([1, 0]), "center") != key
    os.utime(photos / "ant" / "ant 0.jpg")
    assert key_of(encoder, open_data(str(photos)).select([0, 1]), "center") != key


def test_a_changed_member_of_a_zip_misses(encoder: Encoder, photos: Path, tmp_path: Path) -> None:
    def packed(name: str) -> Path:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for file in sorted(photos.rglob("*.jpg")):
                archive.write(file, file.relative_to(photos).as_posix())
        return tmp_path / name

    key = key_of(encoder, open_data(str(packed("one.zip"))), "center")
    assert key_of(encoder, open_data(str(packed("two.zip"))), "center") == key  # same bytes elsewhere
    shutil.copy(photos / "ant" / "ant 1.jpg", photos / "ant" / "ant 0.jpg")
    assert key_of(encoder, open_data(str(packed("three.zip"))), "center") != key


def test_changed_weights_size_view_or_settings_miss(photos: Path) -> None:
    data = open_data(str(photos))
    torch.manual_seed(0)
    one = load_encoder("cuewise/resnet-tiny?width=8", size=24)
    key = key_of(one, data, "center")
    assert key == key_of(one, data, "center")
    assert key_of(one, data, "turned") != key
    with torch.no_grad():
        weight = next(one.backbone.parameters())
        weight[0, 0, 0, 0] = torch.nextafter(weight[0, 0, 0, 0], torch.tensor(9.0))
    assert key_of(one, data, "center") != key
    torch.manual_seed(0)
    assert key_of(load_encoder("cuewise/resnet-tiny?width=8", size=32), data, "center") != key
    torch.manual_seed(0)
    same = load_encoder("cuewise/resnet-tiny?width=8", size=24)
    assert key_of(same, data, "center") == key
    same.space = "color"  # what an encoder says of itself counts
    assert key_of(same, data, "center") != key


def test_a_model_from_elsewhere_is_not_cached(photos: Path, fresh_cache: Path) -> None:
    """Its code may change under the same weights."""
    torch.manual_seed(0)
    backbone = load_encoder("cuewise/resnet-tiny?width=8", size=24).backbone
    data = open_data(str(photos))
    assert key_of(Encoder(backbone, Card("my.module:factory", 24)), data, "center") is None
    cached_features(Encoder(backbone, Card("my.module:factory", 24)), data, label=None)
    assert not fresh_cache.exists()


def test_a_damaged_entry_is_as_good_as_none(
    encoder: Encoder, photos: Path, fresh_cache: Path, extractions: list[int]
) -> None:
    data = open_data(str(photos))
    first = cached_features(encoder, data, label=None)
    (entry,) = fresh_cache.glob("*.npz")
    whole = entry.read_bytes()
    flipped = bytearray(whole)
    flipped[len(flipped) // 2] ^= 0xFF
    for content in (b"", b"nonsense", whole[: len(whole) // 2], bytes(flipped)):
        entry.write_bytes(content)
        np.testing.assert_array_equal(cached_features(encoder, data, label=None).features, first.features)
    assert len(extractions) == 5


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    encoder: Encoder, photos: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*args, **kwargs):  # type: ignore[no-untyped-def]
        found = embed_dataset(*args, **kwargs)
        os.utime(photos / "ant" / "ant 0.jpg")
        return found

    monkeypatch.setattr(cached, "embed_dataset", slow)
    cached_features(encoder, open_data(str(photos)), label=None)
    assert not list(fresh_cache.glob("*"))


def test_the_bound_keeps_what_was_used_last(
    encoder: Encoder, photos: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = open_data(str(photos))
    parts = [data.select(range(i, i + 16)) for i in range(3)]
    for part in parts[:2]:
        cached_features(encoder, part, label=None)
    size = max(f.stat().st_size for f in fresh_cache.glob("*.npz"))
    os.utime(fresh_cache / f"{key_of(encoder, parts[1], 'center')}.npz", (1, 1))
    (fresh_cache / "left.tmp").write_bytes(b"half")
    os.utime(fresh_cache / "left.tmp", (time.time() - 2e5, time.time() - 2e5))
    monkeypatch.setenv("CUEWISE_FEATURES_GB", str(2.5 * size / 1e9))
    cached_features(encoder, parts[2], label=None)
    left = {f.name for f in fresh_cache.iterdir()}
    assert left == {f"{key_of(encoder, parts[i], 'center')}.npz" for i in (0, 2)}
    monkeypatch.setenv("CUEWISE_FEATURES_GB", "0")
    shutil.rmtree(fresh_cache)
    cached_features(encoder, parts[0], label=None)
    assert not fresh_cache.exists()
    monkeypatch.setenv("CUEWISE_FEATURES_GB", "much")
    with pytest.raises(UserError, match="CUEWISE_FEATURES_GB='much'"):
        cached_features(encoder, parts[0], label=None)


def test_a_way_of_its_own_needs_a_name(encoder: Encoder, photos: Path) -> None:
    with pytest.raises(ValueError, match="needs a name"):
        cached_features(encoder, open_data(str(photos)), forward=encoder, label=None)


@pytest.mark.kill
def test_a_kill_while_writing_leaves_no_entry(photos: Path, fresh_cache: Path) -> None:
    """The process dies in the middle of the write; the next one extracts anew and is right."""
    code = (
        "import os, sys, numpy as np, torch\n"
        "from cuewise.data import open_data\n"
        "from cuewise.encoders import cached, load_encoder\n"
        "torch.manual_seed(0)\n"
        "e = load_encoder('cuewise/resnet-tiny?width=8', size=24)\n"
        f"data = open_data({str(photos)!r})\n"
        "real = np.savez\n"
        "def dying(file, **arrays):\n"
        "    real(file, **arrays); file.flush(); file.truncate(500); os.kill(os.getpid(), 9)\n"
        "cached.np.savez = dying\n"
        "cached.cached_features(e, data, label=None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=120)
    assert done.returncode == -9
    assert [f.suffix for f in fresh_cache.iterdir()] == [".tmp"]
    torch.manual_seed(0)
    encoder = load_encoder("cuewise/resnet-tiny?width=8", size=24)
    data = open_data(str(photos))
    found = cached_features(encoder, data, label=None)
    np.testing.assert_array_equal(found.features, embed_dataset(encoder, data, label=None).features)
    assert len(list(fresh_cache.glob("*.npz"))) == 1
