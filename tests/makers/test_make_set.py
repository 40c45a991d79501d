"""Whole sets from real files: the tree, the manifest, and everything odd that a source may hold."""

from __future__ import annotations

import inspect
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from make_files import as_bytes, photo, put, rows, tree

import cuewise
from cuewise.cli import main
from cuewise.cues.registry import cue
from cuewise.data import open_data
from cuewise.errors import UserError
from cuewise.makers.maker import item_seed

Photos = Callable[..., Path]


def test_mirrors_the_tree_with_a_true_manifest(photos: Photos, tmp_path: Path) -> None:
    result = cuewise.make("gaussian", photos(3), tmp_path / "out", workers=1, seed=7)
    assert (result["made"], result["skipped"], result["broken"]) == (6, 0, [])
    made, source = open_data(str(tmp_path / "out")), open_data(str(tmp_path / "photos"))
    assert made.classes == ("cat", "dog")
    assert [made.name(i) for i in range(6)] == [f"{c}/{i:03d}.png" for c in ("cat", "dog") for i in range(3)]
    listed = rows(tmp_path / "out")
    for i, row in enumerate(listed):
        assert (row["index"], row["source"], row["class"]) == (i, source.name(i), source.name(i)[:3])
        assert row["seed"] == item_seed(7, "gaussian", source.name(i))
        parameters = {k: row["parameters"][k] for k in ("sigma",)}
        again = cue("gaussian")(source.image(i), np.random.default_rng(0), **parameters)
        np.testing.assert_array_equal(made.image(i), again)  # sigma is the one that was drawn
        drawn = cue("gaussian")(source.image(i), np.random.default_rng(row["seed"]))
        np.testing.assert_array_equal(made.image(i), drawn)
    assert len({row["parameters"]["sigma"] for row in listed}) == 6
    assert (tmp_path / "out" / "preview.png").stat().st_size > 1000


def test_the_verb_stays_a_verb(photos: Photos, tmp_path: Path) -> None:
    """The package is imported under the verb's own name."""
    source, out = str(photos(1)), str(tmp_path / "out")
    assert cuewise.make("gaussian", source, out)["made"] == 2
    assert cuewise.make("gaussian", source, out)["skipped"] == 2
    assert "dry_run" in inspect.signature(cuewise.make).parameters


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(photos: Photos, tmp_path: Path) -> None:
    source = photos(6)
    for workers in (0, 1, 3):
        cuewise.make("patch", source, tmp_path / f"w{workers}", workers=workers)
    assert tree(tmp_path / "w0") == tree(tmp_path / "w1") == tree(tmp_path / "w3")


def test_again_does_nothing_and_more_resumes(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(4), tmp_path / "out"
    assert cuewise.make("gaussian", source, out, workers=0, limit=3)["made"] == 3
    before = {name: (out / name).stat().st_mtime_ns for name in tree(out)}
    again = cuewise.make("gaussian", source, out, workers=0, limit=3)
    assert (again["made"], again["skipped"]) == (0, 3)
    assert before == {name: (out / name).stat().st_mtime_ns for name in tree(out)}
    more = cuewise.make("gaussian", source, out, workers=0)
    assert (more["made"], more["skipped"]) == (5, 3)
    assert all((out / n).stat().st_mtime_ns == t for n, t in before.items() if n.startswith("cat"))
    cuewise.make("gaussian", source, tmp_path / "once", workers=0)
    assert tree(out) == tree(tmp_path / "once")


def test_a_lost_or_cut_file_is_made_again(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(3), tmp_path / "out"
    cuewise.make("gaussian", source, out, workers=0)
    whole = tree(out)
    (out / "cat" / "001.png").unlink()
    (out / "dog" / "002.png").write_bytes(b"")
    assert cuewise.make("gaussian", source, out, workers=0)["made"] == 2
    assert tree(out) == whole


def test_changed_settings_are_refused_by_name(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(2), tmp_path / "out"
    cuewise.make("gaussian", source, out, workers=0, set=["sigma=2"])
    before = tree(out)
    with pytest.raises(UserError, match=r"settings\.sigma = 2, now it is 3"):
        cuewise.make("gaussian", source, out, workers=0, set=["sigma=3"])
    with pytest.raises(UserError, match=r'kind = "gaussian", now it is "patch"'):
        cuewise.make("patch", source, out, workers=0)
    put(source / "cat" / "new.jpg")
    with pytest.raises(UserError, match=r"source.count = 4, now it is 5"):
        cuewise.make("gaussian", source, out, workers=0, set=["sigma=2"])
    assert tree(out) == before


def test_overwrite_with_settings_that_are_refused_removes_nothing(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(2), tmp_path / "out"
    cuewise.make("patch", source, out, workers=0)
    before = tree(out)
    with pytest.raises(UserError):
        cuewise.make("patch", source, out, workers=0, overwrite=True, set=["patch_size=9:3"])
    assert tree(out) == before


def test_overwrite_removes_what_was_made_and_nothing_else(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(2), tmp_path / "out"
    cuewise.make("gaussian", source, out, workers=0, format="jpeg")
    (out / "cat" / "notes.txt").write_text("mine")
    cuewise.make("patch", source, out, workers=0, overwrite=True)
    assert (out / "cat" / "notes.txt").read_text() == "mine"
    assert not list(out.rglob("*.jpg"))
    assert len(list(out.rglob("cat/*.png"))) == 2


def test_folders_that_are_not_ours_are_left_alone(photos: Photos, tmp_path: Path) -> None:
    source = photos(2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("dear")
    for overwrite in (False, True):
        with pytest.raises(UserError, match="not empty"):
            cuewise.make("gaussian", source, tmp_path / "full", overwrite=overwrite)
    for place in (source, source / "cat", source / "new", tmp_path):
        with pytest.raises(UserError, match=r"contains the other|not empty"):
            cuewise.make("gaussian", source, place)
    assert len(open_data(str(source))) == 4


def test_odd_names_collisions_and_broken_files(tmp_path: Path) -> None:
    source, out = tmp_path / "src", tmp_path / "out"
    odd = [
        "a.jpg",
        "a.png",
        "A.jpg",
        "with space.jpg",
        "new\nline.jpg",
        "狗 é.jpg",
        "x" * 251 + ".jpg",
        "tab\t.JPEG",
    ]
    for k, name in enumerate(odd):
        put(source / "cl ass" / name, seed=k)
    raw = os.fsencode(source / "cl ass") + b"/\xff\xfe.jpg"
    with open(raw, "wb") as file:
        file.write(as_bytes(photo(9)))
    (source / "cl ass" / "cut.jpg").write_bytes(as_bytes(photo(1))[:300])
    (source / "cl ass" / "empty.jpg").write_bytes(b"")
    (source / "cl ass" / "text.png").write_bytes(b"no image at all")
    result = cuewise.make("gaussian", source, out, workers=1, format="webp")
    assert result["made"] == len(odd) + 1
    assert {Path(b["path"]).name for b in result["broken"]} == {"cut.jpg", "empty.jpg", "text.png"}
    listed = rows(out)
    assert {Path(r["source"]).name for r in listed if "broken" in r} == {"cut.jpg", "empty.jpg", "text.png"}
    good = [r for r in listed if r["name"]]
    assert len({r["name"].casefold() for r in good}) == len(odd) + 1
    original = open_data(str(source))
    by_name = {original.name(i): i for i in range(len(original))}
    made = open_data(str(out))
    assert len(made) == len(odd) + 1
    for row in good:  # every file is made of the source that the manifest says
        assert (out / row["name"]).stat().st_size == row["bytes"]
        image = original.image(by_name[row["source"]])
        assert image.shape[:2] == (row["height"], row["width"])


def test_nothing_is_written_outside_whatever_an_archive_says(tmp_path: Path) -> None:
    names = ["../evil.jpg", "/abs/evil.jpg", "a/../../up.jpg", "a/good.jpg", "..\\win.jpg"]
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        for k, name in enumerate(names):
            archive.writestr(name, as_bytes(photo(k)))
    box = tmp_path / "box"
    box.mkdir()
    result = cuewise.make("gaussian", tmp_path / "evil.zip", box / "out", workers=1)
    assert [path.name for path in box.iterdir()] == ["out"]
    assert not Path("/abs/evil.png").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["box", "evil.zip"]
    assert result["made"] + len(result["broken"]) == len(names)


def test_broken_sources_are_tried_again_when_repaired(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(2), tmp_path / "out"
    whole = (source / "cat" / "000.jpg").read_bytes()
    (source / "cat" / "000.jpg").write_bytes(whole[:200])
    assert cuewise.make("gaussian", source, out, workers=0)["made"] == 3
    (source / "cat" / "000.jpg").write_bytes(whole)
    again = cuewise.make("gaussian", source, out, workers=0)
    assert (again["made"], again["skipped"], again["broken"]) == (1, 3, [])


def test_nothing_but_broken_files_is_an_error(photos: Photos, tmp_path: Path) -> None:
    source = photos(2)
    for path in source.rglob("*.jpg"):
        path.write_bytes(path.read_bytes()[:250])
    with pytest.raises(UserError, match=r"none of the 4 images.*cat/000.jpg.*[Tt]runcated"):
        cuewise.make("gaussian", source, tmp_path / "out", workers=1)


def test_both_is_one_set_of_originals_and_results(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(2), tmp_path / "out"
    put(source / "cat" / "000.anisotropic.png")  # would be the result of 000.jpg
    cuewise.make("anisotropic", source, out, workers=1, both=True)
    union = open_data(str(out))
    assert len(union) == 10
    assert union.classes == ("cat", "dog")
    kinds = {r["name"]: (r["kind"], r["source"]) for r in rows(out)}
    assert len(kinds) == 10
    assert sum(kind == "original" for kind, _ in kinds.values()) == 5
    for name, (kind, origin) in kinds.items():
        if kind == "original":
            assert (out / name).read_bytes() == (source / origin).read_bytes()
    with pytest.raises(UserError, match="--both"):
        cuewise.make("corrupted", source, tmp_path / "other", both=True)


def test_dry_run_measures_and_writes_nothing(
    photos: Photos, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = photos(5)
    result = cuewise.make("anisotropic", source, tmp_path / "out", dry_run=True, workers=4)
    assert not (tmp_path / "out").exists()
    assert result["images"] == result["files"] == 10
    assert result["seconds"] == pytest.approx(10 * result["seconds_per_image"] / 4)
    cuewise.make("anisotropic", source, tmp_path / "out", workers=0)
    written = sum(p.stat().st_size for p in (tmp_path / "out").rglob("*/*.png"))
    assert result["bytes"] == pytest.approx(written, rel=0.02)
    assert "ms per image" in capsys.readouterr().err


@pytest.mark.slow
def test_corrupted_is_laid_out_like_imagenet_c(photos: Photos, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ["corruption=fog,noise", "severity=1,5"]
    cuewise.make("corrupted", photos(2), out, workers=1, set=given)
    folders = sorted(str(p.relative_to(out)) for p in out.glob("*/*/*") if p.is_dir())
    names = ("fog", "gaussian_noise", "impulse_noise", "shot_noise")
    assert folders == [f"{n}/{s}/{c}" for n in names for s in (1, 5) for c in ("cat", "dog")]
    assert len(open_data(str(out / "fog" / "5"))) == 4
    from cuewise.cues.corruptions import corrupt, corruption_rng

    source = open_data(str(tmp_path / "photos"))
    expected = corrupt(source.image(0), "shot_noise", 5, corruption_rng(0, "cat/000.jpg", "shot_noise", 5))
    np.testing.assert_array_equal(open_data(str(out / "shot_noise" / "5")).image(0), expected)
    with pytest.raises(UserError, match="no corruption 'rain'"):
        cuewise.make("corrupted", photos(2), tmp_path / "o2", set=["corruption=rain"])


def test_cue_conflict_pairs_classes(photos: Photos, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cuewise.make("cue-conflict", photos(3), out, workers=1, set=["n=6"])
    listed = rows(out)
    assert sorted((r["shape"], r["texture"]) for r in listed) == [("cat", "dog")] * 3 + [("dog", "cat")] * 3
    for row in listed:
        assert row["source"].startswith(row["shape"])
        assert row["texture_source"].startswith(row["texture"])
        assert row["name"].startswith(f"{row['shape']}/{row['shape']}")
        assert f"-{row['texture']}" in row["name"]


def test_a_broken_texture_source_is_named(photos: Photos, tmp_path: Path) -> None:
    source = photos(1)
    path = source / "dog" / "000.jpg"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match=r"dog/000\.jpg"):
        cuewise.make("cue-conflict", source, tmp_path / "out", workers=0)
    row = json.loads(next((tmp_path / "out" / ".cuewise" / "journal").iterdir()).read_bytes().splitlines()[0])
    found = {r["source"]: r["broken"] for r in row["rows"]}
    assert all("dog/000.jpg" in why or name == "dog/000.jpg" for name, why in found.items())


def test_texture_records_its_patches(photos: Photos, tmp_path: Path) -> None:
    from cuewise.data import decode

    out = tmp_path / "out"
    given = ["patch=20", "neighbours=6", "random=4"]
    cuewise.make("texture", photos(1, height=32, width=44), out, workers=0, set=[*given, "size=24"])
    source = open_data(str(tmp_path / "photos"))
    for row in rows(out):
        assert row["parameters"]["side"] == 20
        image = source.image(row["index"])
        boxes = row["parameters"]["boxes"]
        assert boxes[0] == [6, 12, 20, 20]
        patches = np.concatenate([image[t : t + h, l : l + w].reshape(-1, 3) for t, l, h, w in boxes])
        texture = decode((out / row["name"]).read_bytes(), row["name"])
        assert texture.shape == (24, 24, 3)
        assert {tuple(p) for p in texture.reshape(-1, 3)} <= {tuple(p) for p in patches}


def test_subset_by_list(photos: Photos, tmp_path: Path) -> None:
    source = photos(2)
    (tmp_path / "list.txt").write_text("# one class\ndog the friend\n")
    cuewise.make("gaussian", source, tmp_path / "out", workers=0, subset=tmp_path / "list.txt")
    assert open_data(str(tmp_path / "out")).classes == ("dog",)
    (tmp_path / "list.json").write_text(json.dumps(["dog", "n01440764"]))
    with pytest.raises(UserError, match="1 of 2 classes are not there: n01440764"):
        cuewise.make("gaussian", source, tmp_path / "o2", subset=tmp_path / "list.json")


def test_grid_makes_one_folder_a_setting(photos: Photos, tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text("- {steps: 2}\n- {steps: 5}\n- {kind: robust, name: tukey}\n")
    result = cuewise.make("anisotropic", photos(1), tmp_path / "out", workers=0, grid=tmp_path / "grid.yaml")
    folders = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert folders == ["anisotropic-steps=2", "anisotropic-steps=5", "tukey"]
    assert [r["made"] for r in result["sets"]] == [2, 2, 2]
    assert rows(tmp_path / "out" / "anisotropic-steps=5")[0]["parameters"]["steps"] == 5


def test_all_of_a_grid_is_checked_before_any_of_it_is_made(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(1), tmp_path / "out"
    mistakes = {
        "{steqs: 3}": "entry 3: make anisotropic: no setting 'steqs'",
        "{kind: background, masks: nowhere}": "entry 3: nowhere: there is no such",
        "{kind: gauss}": "entry 3: cannot make 'gauss'",
        "{kappa: -1}": "entry 3: ",
    }
    for entry, words in mistakes.items():
        (tmp_path / "grid.yaml").write_text(f"- {{steps: 2}}\n- {{steps: 5}}\n- {entry}\n")
        with pytest.raises(UserError, match=words):
            cuewise.make("anisotropic", source, out, workers=0, grid=tmp_path / "grid.yaml")
        assert not out.exists()
    (tmp_path / "grid.yaml").write_text("- {steps: 2, name: a}\n- {steps: 5, name: b}\n")
    cuewise.make("anisotropic", source, out / "b", workers=0, set=["steps=4"])
    with pytest.raises(UserError, match=r"entry 2: .* was started with settings\.steps = 4, now it is 5"):
        cuewise.make("anisotropic", source, out, workers=0, grid=tmp_path / "grid.yaml")
    assert not (out / "a").exists()


def test_shapes_take_no_source(photos: Photos, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="make shapes takes no SRC: cuewise make shapes DST"):
        cuewise.make("shapes", photos(1), tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()


def test_the_terminal_names_what_cannot_be_used_and_counts_it(
    photos: Photos, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = photos(3), tmp_path / "out"
    (source / "cat" / "000.jpg").write_bytes((source / "cat" / "000.jpg").read_bytes()[:200])
    (source / "cat" / "001.jpg").write_bytes(b"")
    (source / "dog" / "text.png").write_bytes(b"no image at all")
    for again in (False, True):
        assert main(["make", "gaussian", str(source), str(out), "--workers", "0"]) == 0
        shown = capsys.readouterr()
        counts = dict(line.rsplit(" ", 1) for line in shown.out.splitlines())
        found = {key.strip(): value for key, value in counts.items()}
        assert (found["made"], found["already there"], found["broken"]) == (
            ("0", "4") if again else ("4", "0")
        ) + ("3",)
        assert "skipped" not in found
        (line,) = [line for line in shown.err.splitlines() if "could not be used" in line]
        assert line.startswith("3 files could not be used: cat/000.jpg (")
        assert "cat/001.jpg (empty file)" in line
        assert "dog/text.png (not an image" in line


@pytest.mark.parametrize(
    ("form", "magic"), [("jpeg:80", b"\xff\xd8"), ("webp", b"RIFF"), ("png", b"\x89PNG")]
)
def test_formats(photos: Photos, tmp_path: Path, form: str, magic: bytes) -> None:
    cuewise.make("gaussian", photos(1), tmp_path / "out", workers=0, format=form)
    file = next((tmp_path / "out" / "cat").iterdir())
    assert file.read_bytes().startswith(magic)


@pytest.mark.slow
def test_parquet_manifest_holds_the_same(photos: Photos, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    source, out = photos(3), tmp_path / "out"
    cuewise.make("gaussian", source, out, workers=0, manifest="parquet", limit=4)
    cuewise.make("gaussian", source, out, workers=0, manifest="parquet")
    cuewise.make("gaussian", source, tmp_path / "json", workers=0)
    found = parquet.read_table(out / "manifest.parquet").to_pylist()
    listed = rows(tmp_path / "json")
    for mine, other in zip(found, listed, strict=True):
        assert json.loads(mine["parameters"]) == other["parameters"]
        assert {k: mine[k] for k in other if k != "parameters"} == {
            k: v for k, v in other.items() if k != "parameters"
        }
    cuewise.make("gaussian", source, tmp_path / "once", workers=0, manifest="parquet")
    assert tree(out) == tree(tmp_path / "once")


def test_a_flat_set_is_not_joined_by_its_own_preview(tmp_path: Path) -> None:
    for k, name in enumerate(("preview.jpg", "b.jpg", "manifest.jpg")):
        put(tmp_path / "flat" / name, seed=k)
    result = cuewise.make("gaussian", tmp_path / "flat", tmp_path / "out", workers=0)
    made = open_data(str(tmp_path / "out"))
    assert [made.name(i) for i in range(len(made))] == ["b.png", "manifest.png", "preview.png"]
    assert made.image(2).shape == (40, 48, 3)
    assert Path(result["preview"]).exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"set": ["sigmo=3"]}, "no setting 'sigmo'; it has: sigma, form"),
        ({"set": ["sigma"]}, "write key=value"),
        ({"set": ["form=cubist"]}, "no form 'cubist'"),
        ({"format": "tiff"}, "png, jpeg and webp"),
        ({"format": "png:90"}, "a quality is"),
        ({"manifest": "csv"}, "jsonl and parquet"),
        ({"workers": "many"}, "auto or a number"),
        ({"engine": "spark"}, "local and ray"),
        ({"address": "auto"}, "--address is for"),
        ({"limit": 0}, "1 or more"),
        ({"shards": 0}, "images per tar"),
    ],
)
def test_mistakes_are_reported_before_anything_is_written(
    photos: Photos, tmp_path: Path, options: dict[str, object], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        cuewise.make("gaussian", photos(1), tmp_path / "out", **options)  # type: ignore[arg-type]
    assert not list((tmp_path / "out").rglob("*.png"))


def test_ranges_are_not_minutes_and_seconds(photos: Photos, tmp_path: Path) -> None:
    cuewise.make("anisotropic", photos(6), tmp_path / "out", workers=0, set=["steps=10:20"])
    steps = {row["parameters"]["steps"] for row in rows(tmp_path / "out")}
    assert steps <= set(range(10, 21))
    assert len(steps) > 1


def test_cue_conflict_through_a_network(photos: Photos, tmp_path: Path) -> None:
    from cuewise.encoders import load_encoder
    from cuewise.encoders.load import save_encoder

    save_encoder(load_encoder("cuewise/resnet-tiny?width=8", size=32), tmp_path / "encoder.safetensors")
    source, file = photos(2), str(tmp_path / "encoder.safetensors")
    with pytest.raises(UserError, match="style=gram needs model="):
        cuewise.make("cue-conflict", source, tmp_path / "a", set=["style=gram"])
    with pytest.raises(UserError, match="model= has no meaning for style=quilt"):
        cuewise.make("cue-conflict", source, tmp_path / "a", set=[f"model={file}"])
    with pytest.raises(UserError, match="block= has no meaning for style=gram"):
        cuewise.make("cue-conflict", source, tmp_path / "a", set=["style=gram", f"model={file}", "block=0.5"])
    with pytest.raises(UserError, match="no style 'vgg'"):
        cuewise.make("cue-conflict", source, tmp_path / "a", set=["style=vgg"])
    assert not (tmp_path / "a").exists()
