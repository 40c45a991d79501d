"""Noisy labels: the split and the noise follow from the original alone, so that a copy never tells what its original hides."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuewise import UserError, make, open_data
from cuewise.data import Dataset, Noise, NoisyLabels, noisy
from cuewise.data.noisy_labels import originals

MANY = "shapes:aligned?n=4000&size=16"


def test_a_share_of_the_labels_is_drawn_anew_uniformly() -> None:
    data = open_data(MANY)
    found = noisy(data, Noise(0.6, 0.1, seed=1))
    silver = ~found.trusted
    assert found.trusted.sum() == pytest.approx(400, abs=8)
    assert set(found.clean[found.trusted]) == set(range(len(data.classes)))
    assert (found.labels == found.clean)[found.trusted].all()
    classes = len(data.classes)
    wrong = (found.labels != found.clean)[silver].mean()
    assert wrong == pytest.approx(0.6 * (1 - 1 / classes), abs=0.03)  # the right class is among those drawn
    counts = np.bincount(found.labels[silver & (found.labels != found.clean)], minlength=classes)
    assert counts.min() > 0.6 * counts.mean()


def test_every_class_has_a_trusted_image_however_small_the_share() -> None:
    found = noisy(open_data("shapes:aligned?n=60&size=16"), Noise(0.5, 0.01))
    assert set(found.clean[found.trusted]) == set(found.clean)


def test_seed_and_nothing_else_decides() -> None:
    data = open_data(MANY)
    one, same, other = (noisy(data, Noise(0.5, 0.1, seed=s)) for s in (0, 0, 1))
    assert (one.labels == same.labels).all()
    assert (one.trusted == same.trusted).all()
    assert (one.labels != other.labels).any()
    assert (one.trusted != other.trusted).any()
    turned = noisy(data.select(np.arange(len(data))[::-1]), Noise(0.5, seed=0))
    assert (turned.labels[::-1] == noisy(data, Noise(0.5, seed=0)).labels).all()


def test_facts_and_samples_carry_what_is_given() -> None:
    source = noisy(open_data("shapes:aligned?n=200&size=16"), Noise(0.8, 0.2))
    data = Dataset([pickle.loads(pickle.dumps(source))])
    for i in (0, 57, 199):
        sample = data[i]
        assert sample.facts.trusted == source.trusted[i]
        assert sample.label == source.labels[i]
    assert data.fingerprint()["hash"] != source.whole.fingerprint()["hash"]


@pytest.fixture(scope="module")
def doubled(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Original images and a filtered copy of each, as `cuewise make` writes it."""
    copy = tmp_path_factory.mktemp("copies") / "smooth"
    make("anisotropic", str(folder), str(copy), workers=0)
    return [str(folder), str(copy)]


def test_a_filtered_copy_has_the_label_and_the_side_of_its_original(
    doubled: list[str], tmp_path: Path
) -> None:
    together = tmp_path / "together"
    make("gaussian", doubled[0], str(together), workers=0, both=True)
    for specs in (doubled, doubled[::-1], [str(together)]):
        data = open_data(specs)
        found = noisy(data, Noise(0.9, 0.25, seed=3))
        names = originals(data)
        assert len(set(names)) == 48
        assert len(data) == 96
        seen: dict[str, tuple[int, bool]] = {}
        for i, name in enumerate(names):
            mine = int(found.labels[i]), bool(found.trusted[i])
            assert seen.setdefault(name, mine) == mine, name
        assert found.trusted.sum() == 2 * 12
        assert (found.labels != found.clean).any()
    alone = noisy(open_data(doubled[0]), Noise(0.9, 0.25, seed=3))  # adding copies changes no original
    assert (noisy(open_data(doubled), Noise(0.9, 0.25, seed=3)).labels[:48] == alone.labels).all()


def test_a_name_with_a_dot_is_no_copy(tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    (tmp_path / "bee").mkdir()
    for name in ("ant/a.jpg", "ant/a.2.jpg", "ant/b.front.jpg", "bee/a.jpg", "ant/a.jpg.png"):
        Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / name)
    data = open_data(str(tmp_path))
    found = dict(zip([data.name(i) for i in range(5)], originals(data)))
    assert found == {"ant/a.2.jpg": "ant/a.2", "ant/a.jpg": "ant/a", "ant/a.jpg.png": "ant/a",
                     "ant/b.front.jpg": "ant/b.front", "bee/a.jpg": "bee/a"}  # fmt: skip


def test_a_list_of_trusted_images(doubled: list[str], tmp_path: Path) -> None:
    data, file = open_data(doubled), tmp_path / "gold.txt"
    file.write_text("# checked by hand\nant/ant 3.jpg\n\nbee/bee 0\n")
    found: NoisyLabels = noisy(data, Noise(gold=str(file)))
    assert {data.name(i) for i in np.flatnonzero(found.trusted)} == {"ant/ant 3.jpg", "ant/ant 3.png", "bee/bee 0.jpg",
                                                                     "bee/bee 0.png"}  # fmt: skip
    file.write_text("ant/ant 3.jpg\nant/nobody.jpg\n")
    with pytest.raises(
        UserError, match=r"1 of its 2 images are not in DATA: ant/nobody\.jpg .*names there are like"
    ):
        noisy(data, Noise(gold=str(file)))
    file.write_text("\n")
    with pytest.raises(UserError, match="it names no image"):
        noisy(data, Noise(gold=str(file)))
    with pytest.raises(UserError, match="cannot be read"):
        noisy(data, Noise(gold=str(tmp_path / "nowhere.txt")))
