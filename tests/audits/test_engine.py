"""One decoding for all, the same with any number of workers, and after a kill -9 in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuewise import audit
from cuewise.audits import engine as engine_module
from cuewise.audits.answerer import Answerer
from cuewise.audits.change import CLEAN, Copies, change
from cuewise.audits.engine import Engine, Pass, Viewer, copies
from cuewise.audits.head import Head
from cuewise.audits.keys import data_key
from cuewise.audits.measured import Measured
from cuewise.audits.saved import FOLDER, Saved
from cuewise.cues.color import grey
from cuewise.cues.corruptions import corrupt, corruption_rng
from cuewise.cues.frequency import lowpass
from cuewise.data import Dataset, open_data
from cuewise.encoders import load_encoder
from cuewise.encoders.embed import CenterView, embed_dataset, evaluation_view
from cuewise.errors import Interrupted, UserError
from tests.audits.small_models import ENCODER, photos

pytestmark = pytest.mark.usefixtures("warm_start")

CHANGES = (
    CLEAN,
    change("grey"),
    change("corrupted", corruption="fog", severity=2),
    change("lowpass", keep=0.5),
)
ONLY = "accuracy,color,corruption"


def viewer(size: int = 32) -> Viewer:
    encoder = load_encoder(ENCODER, size=size)
    head = Head(_First(), {"a": [0], "b": [1]}, "test")
    return Viewer(encoder, Answerer(head, ("a", "b")), f"viewer {size}")


def _half(image: Any) -> Any:
    return lowpass(image, keep=0.5)


class _First:
    """Two of the features as logits."""

    def parameters(self) -> Any:
        return iter(())

    def __call__(self, x: Any) -> Any:
        return x[:, :2]


def test_copies_are_those_of_the_operators() -> None:
    image = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    taken = viewer().input
    made = Copies((taken,), CHANGES, 7).views(image, "x.png")[taken.key]
    view = evaluation_view(image, 32)
    assert np.array_equal(made[0], view)
    assert len(set(map(int, np.ptp(made[1].astype(int), axis=-1).ravel()))) == 1  # grey
    fog = corrupt(view, "fog", 2, corruption_rng(7, "x.png", "fog", 2), scale_to_image=True)
    assert np.array_equal(made[2], fog)


@pytest.mark.slow
def test_a_pass_gives_the_features_of_embed_whatever_the_workers(tmp_path: Path) -> None:
    data = open_data(str(photos(tmp_path / "set", 7)))
    one = viewer()
    results = [Engine(workers=w).run(copies("x", data, [one], CHANGES))[0] for w in (0, 2)]
    assert results[0].features == pytest.approx(
        embed_dataset(one.encoder, data, label=None).features, abs=1e-5
    )
    for c, operator in (
        (CHANGES[1], grey),
        (CHANGES[3], _half),
    ):  # the long way: one copy of the set after the other
        view = CenterView(32, operator)
        features = embed_dataset(one.encoder, data, transform=view, label=None).features
        assert one.answerer is not None
        assert results[0].answers[c].tolist() == one.answerer.say(features).tolist()
    for found in results:
        assert found.index.tolist() == list(range(21))
        assert all(np.array_equal(found.answers[c], results[0].answers[c]) for c in CHANGES[1:])


def test_a_view_of_a_set_is_embedded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append("one")
        return embed_dataset(*args, **kwargs)

    monkeypatch.setattr("cuewise.audits.measured.embed_dataset", counted)
    data, other = (open_data(str(photos(tmp_path / name, 2, seed=s))) for s, name in enumerate("ab"))
    model = Measured("one", load_encoder(ENCODER, size=32), engine=Engine(workers=0))
    view = CenterView(32, grey)
    found = [model.in_view(d, "grey", transform=view).features for d in (data, data, other)]
    assert len(calls) == 2
    assert np.array_equal(found[0], embed_dataset(model.encoder, data, transform=view, label=None).features)
    assert np.array_equal(found[0], found[1])
    half = model.in_view(data, "half", transform=CenterView(32, _half)).features
    assert not np.allclose(found[0], half)
    assert not np.allclose(found[0], model.features(data).features)


@pytest.mark.slow
def test_every_image_is_decoded_once_for_all_models_and_audits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, train = photos(tmp_path / "set", 5), photos(tmp_path / "train", 3, seed=4)
    seen: list[str] = []
    plain = Dataset.image

    def image(self: Dataset, i: int) -> Any:
        seen.append(f"{self.sources[0].path if hasattr(self.sources[0], 'path') else ''}/{self.name(i)}")
        return plain(self, i)

    monkeypatch.setattr(Dataset, "image", image)
    monkeypatch.setattr("cuewise.audits.one_cue.SHOWN", 0)
    models = [ENCODER, "cuewise/resnet-tiny?width=16"]
    result = audit(
        *models, out=str(tmp_path / "a"), train=[str(train)], test=[str(images)], only="accuracy,color,rotation,sketch",
        size=32, limit=6, workers="0",
    )  # fmt: skip
    counts = {name: seen.count(name) for name in seen if "/set" in name.split("//")[0] or "set" in name}
    assert set(counts.values()) == {1}
    assert [c[0] for c in result["comparison"]["rows"][:2]] == ["linear/set", "knn/set"]
    assert all(len(row) == 3 for row in result["comparison"]["rows"])
    assert "color/grey/accuracy" in {row[0] for row in result["comparison"]["rows"]}


def test_sets_of_the_same_names_are_distinguished(tmp_path: Path) -> None:
    one, two = (open_data(str(photos(tmp_path / n, 2, seed=s))) for n, s in (("one", 0), ("two", 1)))
    assert data_key(one) != data_key(two)
    assert data_key(one) != data_key(one.select([0, 1]))


def test_broken_images_are_left_out_and_counted(tmp_path: Path) -> None:
    root = photos(tmp_path / "set", 4)
    (root / "bee" / "bee1.jpg").write_bytes((root / "bee" / "bee1.jpg").read_bytes()[:300])
    found = Engine(workers=0).run(copies("x", open_data(str(root)), [viewer()], CHANGES))[0]
    assert len(found.index) == 11
    assert len(found.skipped) == 1


def test_rows_are_kept_and_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted after some rows: the rest is done, the result is the same, damaged rows are done again."""
    monkeypatch.setattr(engine_module, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(engine_module, "FORWARD", 8)
    data = open_data(str(photos(tmp_path / "set", 5)))
    one = viewer()
    work = copies("x", data, [one], CHANGES)
    whole = Engine(workers=0).run(work)[0]
    saved = Saved(tmp_path / "out")

    class Stops(Engine):
        def stream(self, work: Pass, start: int) -> Any:
            for k, rows in enumerate(super().stream(work, start)):
                if k == 3:
                    raise KeyboardInterrupt
                yield rows

    with pytest.raises(KeyboardInterrupt):
        Stops(saved, workers=0).run(work)
    done = Engine(saved).done(work)
    assert 0 < done < work.views
    files = sorted((tmp_path / "out" / FOLDER / work.key).glob("*.npz"))
    files[-1].write_bytes(b"torn")
    again = Engine(saved, workers=0).run(work)[0]
    assert np.array_equal(again.features, whole.features)
    assert all(np.array_equal(again.answers[c], whole.answers[c]) for c in CHANGES[1:])
    assert Engine(saved).done(work) == work.views
    assert copies("x", data, [one], CHANGES, seed=1).key != work.key


SCRIPT = """
import sys
from cuewise.audits import engine
engine.SAVE_SECONDS = 0.0
import cuewise
cuewise.audit({model!r}, out=sys.argv[1], train=[{train!r}], test=[{test!r}], only={only!r}, size=32, limit=30, workers="0")
"""


@pytest.mark.kill
def test_kill_9_in_the_middle_and_again(tmp_path: Path) -> None:
    """The second call resumes, and ends with the scores of an audit that was never interrupted."""
    train, test = str(photos(tmp_path / "train", 4)), str(photos(tmp_path / "set", 12, seed=1))
    code = SCRIPT.format(model=ENCODER, train=train, test=test, only=ONLY)
    out = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stderr=subprocess.DEVNULL, start_new_session=True
    )
    end = time.monotonic() + 120
    while len(list(out.glob(f"{FOLDER}/*/*.npz"))) < 4 and process.poll() is None:
        assert time.monotonic() < end, "nothing was kept"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert (out / FOLDER).is_dir(), "it was done before it could be killed"
    assert not (out / "audit.json").exists()
    kept = len(list(out.glob(f"{FOLDER}/*/*.npz")))
    err = subprocess.run(
        [sys.executable, "-c", code, str(out)], capture_output=True, text=True, check=True
    ).stderr
    assert "resuming an interrupted audit" in err
    assert kept >= 4
    assert not (out / FOLDER).exists()
    whole = audit(
        ENCODER, out=str(tmp_path / "whole"), train=[train], test=[test], only=ONLY, size=32, limit=30
    )
    again = json.loads((out / "audit.json").read_text())["scores"]
    assert again == whole["scores"]


def test_a_folder_that_is_the_users_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a" / FOLDER).mkdir(parents=True)
    (tmp_path / "a" / FOLDER / "thesis.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(UserError, match=r"not empty|did not write"):
            audit(ENCODER, out=str(tmp_path / "a"), only="similarity", overwrite=overwrite)
    assert (tmp_path / "a" / FOLDER / "thesis.txt").exists()


@pytest.mark.slow
def test_finished_audits_are_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuewise.audits import color as colour
    from cuewise.audits import rotation as turning

    train, test = str(photos(tmp_path / "train", 3)), str(photos(tmp_path / "set", 2, seed=1))
    asked: list[str] = []
    color, rotation = colour.color, turning.rotation

    def ask(subject: Any) -> Any:
        asked.append("color")
        if len(asked) > 1:
            raise KeyboardInterrupt
        return color.ask(subject)

    def stop(subject: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(colour, "color", replace(color, ask=ask))
    monkeypatch.setattr(turning, "rotation", replace(rotation, ask=stop))
    options: dict[str, Any] = {
        "train": [train],
        "test": [test],
        "only": "color,rotation",
        "size": 32,
        "workers": "0",
    }
    with pytest.raises(Interrupted, match="give the same command again to resume"):
        audit(ENCODER, out=str(tmp_path / "a"), **options)
    monkeypatch.setattr(turning, "rotation", rotation)
    result = audit(ENCODER, out=str(tmp_path / "a"), **options)
    assert asked == ["color"]
    assert {s["name"].split("/")[0] for s in result["scores"]} == {"color", "rotation"}
