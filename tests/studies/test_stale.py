"""Stored numbers are those of these weights and these images; options that could not act are refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cuewise import UserError, make, reproduce
from cuewise.data.overlap import identity
from cuewise.studies.claims import HELD, LEANING, Claim, above
from cuewise.studies.jobs import digest_of_start, images_read, job_of
from cuewise.studies.labs import SHAPES, TUNING, lab_of
from cuewise.studies.measures.measure import find_measure
from cuewise.studies.run import with_method
from cuewise.studies.table import Table
from tests.audits.small_models import photos


def test_other_images_at_the_same_place_are_measured_again(tmp_path: Path) -> None:
    train, val = photos(tmp_path / "train", 2), photos(tmp_path / "val", 2, seed=1)
    lab = lab_of([str(train)], [str(val)], [])
    before = find_measure("clean").protocol(lab)
    assert find_measure("clean").protocol(lab) == before
    (val / "ant" / "ant0.jpg").write_bytes((val / "ant" / "ant1.jpg").read_bytes())
    identity.cache_clear()  # as in a later call
    assert find_measure("clean").protocol(lab) != before


def test_embedded_sets_are_known_by_their_names() -> None:
    assert identity(("shapes:aligned?n=4",)) == []


def test_other_weights_at_the_same_place_make_other_arms(tmp_path: Path) -> None:
    file = tmp_path / "w.pth"
    file.write_bytes(b"one")
    before = [digest_of_start(spec) for spec in (str(file), f"timm/resnet18:{file}")]
    assert before[0] == before[1] != []
    file.write_bytes(b"two")
    assert digest_of_start(str(file)) != before[0]
    assert digest_of_start("cuewise/resnet-tiny?width=8") == digest_of_start("") == []


def test_weights_are_found_wherever_a_model_names_them(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"one")
    specs = (
        str(folder),
        f"hf:{folder}",
        f"{folder}#space",
        f"own.module:factory:{folder / 'model.safetensors'}",
    )
    before = [digest_of_start(spec) for spec in specs]
    assert before[0]
    assert all(digest == before[0] for digest in before)
    (folder / "model.safetensors").write_bytes(b"two")
    assert all(digest_of_start(spec) != before[0] for spec in specs)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert digest_of_start(f"hf:{folder}") != []


def test_other_images_at_the_same_place_make_other_arms(tmp_path: Path) -> None:
    """Training images and copies made beforehand are known by content; embedded ones by their name."""
    train, copies = photos(tmp_path / "shapes-train", 2), photos(tmp_path / "copies", 2, seed=1)
    plain = {"data": [str(train)], "method": "moco", "batch_size": 2, "epochs": 1}
    copied = {**plain, "suppress": {"name": "anisotropic", "copies": [str(copies)]}}
    assert (
        images_read(copied)
        == images_read({**copied, "suppress": {"copies": str(copies)}})
        == (str(train), str(copies))
    )

    def places() -> list[str]:
        identity.cache_clear()  # as in a later call
        return [job_of(config, tmp_path, ()).folder for config in (plain, copied)]

    before = places()
    assert places() == before
    (copies / "ant" / "ant0.jpg").write_bytes((copies / "ant" / "ant1.jpg").read_bytes())
    assert [a == b for a, b in zip(places(), before)] == [True, False]
    (train / "ant" / "ant0.jpg").write_bytes((train / "ant" / "ant1.jpg").read_bytes())
    assert [a == b for a, b in zip(places(), before)] == [False, False]


def test_every_file_of_a_set_counts(tmp_path: Path) -> None:
    train = photos(tmp_path / "many", 100, size=8)
    before = identity((str(train),))
    (train / "ant" / "ant50.jpg").write_bytes((train / "ant" / "ant51.jpg").read_bytes())
    identity.cache_clear()
    assert identity((str(train),)) != before


def test_a_second_call_sees_changed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`reproduce` and `transfer` in one process: what was known of files is forgotten."""
    images = photos(tmp_path / "images", 2)
    before = identity((str(images),))
    (images / "ant" / "ant0.jpg").write_bytes((images / "ant" / "ant1.jpg").read_bytes())
    with pytest.raises(UserError, match="no study"):
        reproduce("nothing", out=tmp_path / "o")
    assert identity((str(images),)) != before


def test_options_that_could_not_act(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give --data too"):
        lab_of([], ["val"], [])
    with pytest.raises(UserError, match="two domains or more"):
        lab_of(["photos"], [], ["a"])
    with pytest.raises(UserError, match="two domains are called val"):
        lab_of(["photos"], [], ["a/val", "b/val", "c/val"])
    with pytest.raises(UserError, match="--budget or --epochs"):
        reproduce("ns-alpha", out=tmp_path / "o", budget=10, epochs=100)
    with pytest.raises(UserError, match="--epochs 0"):
        reproduce("ns-alpha", out=tmp_path / "o", epochs=0)
    with pytest.raises(UserError, match="one method, which it chooses itself"):
        with_method(TUNING, "moco")


@pytest.mark.parametrize(("seeds", "word"), [(2, LEANING), (4, LEANING), (5, HELD)])
def test_equal_numbers_of_a_few_seeds_are_no_certainty(seeds: int, word: str) -> None:
    claim = Claim("1", "", "A", lambda _: [above("A", "B", "q")])
    values = {arm: {k: {"q": q} for k in range(seeds)} for arm, q in (("A", 0.82), ("B", 0.80))}
    found = claim.judge(Table(values), SHAPES)
    assert found.word == word
    assert math.isnan(found.outcomes[0].low) == (word == LEANING)


def test_what_a_shard_lacks_is_named_again(tmp_path: Path) -> None:
    source = photos(tmp_path / "s", 2)
    whole = (source / "ant" / "ant0.jpg").read_bytes()
    (source / "ant" / "ant0.jpg").write_bytes(whole[:200])
    first = make("gaussian", str(source), str(tmp_path / "out"), shards=2, workers=0)
    (source / "ant" / "ant0.jpg").write_bytes(whole)
    again = make("gaussian", str(source), str(tmp_path / "out"), shards=2, workers=0)
    for result in (first, again):
        assert result["images"] == 5
        assert [b["path"] for b in result["broken"]] == ["ant/ant0.jpg"]
