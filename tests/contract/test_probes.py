"""Every kind of probe keeps the same promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import cuewise
from cuewise.catalogue import catalogue
from cuewise.data import open_data
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.encoder import Card
from cuewise.errors import UserError
from cuewise.probes import (
    FewShotProbe,
    FinetuneProbe,
    KNNProbe,
    LinearProbe,
    MultiLabelProbe,
    RotationProbe,
    SGDProbe,
)
from cuewise.probes.kinds import PROBES
from cuewise.probes.sgd import PRESETS
from cuewise.probes.tunings import Tuning

CLASSES, DIM = 4, 12
MAKE: dict[str, Any] = {
    "linear": lambda seed: LinearProbe(seed=seed),
    **{f"linear-{name}": lambda seed, name=name: SGDProbe(name, seed) for name in PRESETS},
    "knn": lambda seed: KNNProbe(k=3),
    "fewshot": lambda seed: FewShotProbe(shots=3, trials=3, iterations=100, seed=seed),
    "rotation": lambda seed: RotationProbe(seed=seed),
    "multilabel": lambda seed: MultiLabelProbe(seed=seed),
}
ON_FEATURES = [pytest.param(make, id=name) for name, make in MAKE.items()]


def blobs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Separable: centres far apart, every class equally often."""
    centres = np.random.default_rng(0).normal(size=(CLASSES, DIM)) * 3
    y = np.arange(n) % CLASSES
    return (centres[y] + np.random.default_rng(seed).normal(size=(n, DIM)) * 0.3).astype(np.float32), y


def as_targets(probe: Any, y: np.ndarray) -> np.ndarray:
    return np.eye(int(y.max()) + 1, dtype=np.int8)[y] if isinstance(probe, MultiLabelProbe) else y


def test_every_kind_is_here() -> None:
    kinds = PROBES.all()
    assert (
        {name.partition("-")[0] for name in MAKE} | {"finetune", "detect", "segment"}
        == set(kinds)
        == set(catalogue("probes"))
    )
    for name, kind in kinds.items():
        assert kind.name == name
        assert kind().summary == kind.summary != ""  # every option has a default
        assert kind.estimator.__doc__
        assert PROBES.get(name) is kind


@pytest.mark.parametrize("make", ON_FEATURES)
def test_separable_features_are_separated(make) -> None:  # type: ignore[no-untyped-def]
    probe = make(0)
    before = dict(vars(probe))
    assert probe.get_params() == before  # an inert constructor: it stores, and nothing else
    X, y = blobs(80, 1)
    assert probe.fit(X, as_targets(probe, y)) is probe
    test, truth = blobs(40, 2)
    p = probe.predict_proba(test)
    assert p.shape == (40, CLASSES)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_array_equal(p.argmax(1), truth)
    score = probe.score(test, as_targets(probe, truth), "s")
    assert score.value > 0.99
    assert not score.low > score.value
    assert score.protocol.startswith(probe.protocol)
    assert score.name == "s"
    assert type(probe)(**probe.get_params()).protocol == probe.protocol


@pytest.mark.parametrize("make", ON_FEATURES)
def test_same_seed_same_answers(make) -> None:  # type: ignore[no-untyped-def]
    X, y = blobs(40, 1)
    one, two = (make(3).fit(X, as_targets(make(3), y)).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("make", ON_FEATURES)
def test_nan_is_refused(make) -> None:  # type: ignore[no-untyped-def]
    probe = make(0)
    X, y = blobs(40, 1)
    broken = X.copy()
    broken[3, 2] = np.nan
    with pytest.raises(UserError, match="NaN"):
        probe.fit(broken, as_targets(probe, y))
    probe.fit(X, as_targets(probe, y))
    with pytest.raises(UserError, match="NaN"):
        probe.predict_proba(broken)


@pytest.mark.parametrize("make", ON_FEATURES)
def test_garbage_is_refused(make) -> None:  # type: ignore[no-untyped-def]
    X, y = blobs(40, 1)
    probe = make(0)
    with pytest.raises(UserError):
        probe.fit(X, as_targets(probe, y)[:3])
    with pytest.raises(UserError):
        probe.fit(X, as_targets(probe, y) * 0)


@pytest.mark.parametrize("make", ON_FEATURES)
@pytest.mark.parametrize("value", [0.0, 7.3])
def test_constant_features_do_no_harm(make, value: float) -> None:  # type: ignore[no-untyped-def]
    probe = make(0)
    y = np.arange(40) % CLASSES
    X = np.full((40, DIM), value, np.float32)
    p = probe.fit(X, as_targets(probe, y)).predict_proba(X)
    assert np.isfinite(p).all()
    assert np.ptp(p, axis=0).max() < 1e-4  # equal images, equal answers


@pytest.mark.parametrize("make", ON_FEATURES)
def test_one_image_a_class(make) -> None:  # type: ignore[no-untyped-def]
    probe = make(0)
    X, y = blobs(CLASSES, 1)
    if isinstance(probe, FewShotProbe):
        with pytest.raises(UserError, match="1 images, fewer than --shots 3"):
            probe.fit(X, y)
        return
    p = probe.fit(X, as_targets(probe, y)).predict_proba(blobs(20, 2)[0])
    np.testing.assert_array_equal(p.argmax(1), blobs(20, 2)[1])


@pytest.mark.parametrize("make", ON_FEATURES)
def test_labels_with_gaps(make) -> None:  # type: ignore[no-untyped-def]
    """Classes 0, 3, 6, 9: those between have no images, and are never the answer."""
    probe = make(0)
    X, y = blobs(80, 1)
    p = probe.fit(X, as_targets(probe, y * 3)).predict_proba(blobs(40, 2)[0])
    assert p.shape == (40, 10)
    np.testing.assert_array_equal(p.argmax(1), blobs(40, 2)[1] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("make", ON_FEATURES)
def test_the_contract_of_scikit_learn(make) -> None:  # type: ignore[no-untyped-def]
    base = pytest.importorskip("sklearn.base")
    probe = make(5)
    twin = base.clone(probe)
    assert twin is not probe
    assert repr(twin) == repr(probe)
    assert base.is_classifier(probe)
    for name, value in probe.get_params(deep=True).items():
        assert probe.set_params(**{name: value}) is probe
        other = object()
        assert twin.set_params(**{name: other}).get_params()[name] is other
    with pytest.raises(UserError, match=f"{type(probe).__name__} has no parameter 'sede'"):
        probe.set_params(sede=1)
    X, y = blobs(80, 1)
    probe.fit(X, as_targets(probe, y))
    np.testing.assert_array_equal(probe.classes_, np.arange(CLASSES))
    if not isinstance(probe, MultiLabelProbe):
        np.testing.assert_array_equal(probe.predict(X), probe.classes_[probe.predict_proba(X).argmax(1)])
        assert probe.score(X, y).item() == (probe.predict(X) == y).mean()


@pytest.mark.parametrize("make", [p for p in ON_FEATURES if p.id not in ("rotation", "multilabel")])
def test_labels_that_are_words(make) -> None:  # type: ignore[no-untyped-def]
    X, y = blobs(80, 1)
    words = np.array(["wren", "ant", "cat", "dog"])[y]
    probe = make(0).fit(X, words)
    assert probe.classes_.tolist() == ["ant", "cat", "dog", "wren"]
    np.testing.assert_array_equal(probe.predict(X), words)
    assert probe.score(X, words).value == 1
    assert probe.score(X, np.full(80, "eel")).value == 0


@pytest.mark.slow
def test_searches_and_pipelines_of_scikit_learn() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    centres = np.random.default_rng(0).normal(size=(CLASSES, DIM))
    y = np.arange(120) % CLASSES
    X = (centres[y] + np.random.default_rng(1).normal(size=(120, DIM)) * 0.8).astype(np.float32)
    search = selection.GridSearchCV(LinearProbe(), {"l2": [[1e-2], [1e3]]}, cv=3).fit(X, y)
    assert search.best_params_ == {"l2": [1e-2]}
    assert search.best_score_ > 0.7
    np.testing.assert_array_equal(search.classes_, np.arange(CLASSES))
    assert (
        selection.GridSearchCV(KNNProbe(), {"k": [1, 5]}, cv=3, scoring="accuracy").fit(X, y).best_score_
        > 0.6
    )
    scores = selection.cross_val_score(make_pipeline(StandardScaler(), KNNProbe(k=5)), X, y, cv=3)
    assert scores.min() > 0.5


# the same battery for fine-tuning, which is given images


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of one colour each."""
    root = tmp_path_factory.mktemp("colours")
    rng = np.random.default_rng(0)
    for name, colour in (("blue", (20, 40, 220)), ("green", (30, 200, 40)), ("red", (220, 30, 30))):
        (root / name).mkdir()
        for i in range(8):
            noise = rng.integers(-15, 16, (16, 16, 3))
            Image.fromarray((np.array(colour) + noise).clip(0, 255).astype(np.uint8)).save(
                root / name / f"{i}.png"
            )
    return root


def tuned(seed: int = 0, **changes: Any) -> FinetuneProbe:
    torch.manual_seed(0)
    encoder = load_encoder("cuewise/resnet-tiny?width=8&norm=group", size=16)
    return FinetuneProbe(encoder, Tuning((0.05,), 12, 12), seed=seed, workers=0, **changes)


@pytest.mark.slow
def test_finetune_separates_and_is_deterministic(colours: Path) -> None:
    data = open_data([str(colours)])
    probe = tuned()
    assert probe.get_params() == dict(vars(probe))
    before = {k: v.clone() for k, v in probe.encoder.state_dict().items()}
    p = probe.fit(data, data.labels).predict_proba(data)  # type: ignore[arg-type]
    np.testing.assert_array_equal(p.argmax(1), data.labels)
    np.testing.assert_array_equal(tuned().fit(data, data.labels).predict_proba(data), p)  # type: ignore[arg-type]
    assert (tuned(seed=1).fit(data, data.labels).predict_proba(data) != p).any()  # type: ignore[arg-type]
    for k, v in probe.encoder.state_dict().items():
        torch.testing.assert_close(v, before[k], rtol=0, atol=0)  # the encoder that was given stays as it is


@pytest.mark.slow
def test_finetune_takes_gaps_and_single_images(colours: Path) -> None:
    data = open_data([str(colours)])
    assert data.labels is not None
    p = tuned().fit(data, data.labels * 2).predict_proba(data)
    np.testing.assert_array_equal(p.argmax(1), data.labels * 2)
    three = data.select([0, 8, 16])
    probe = tuned()
    probe.tuning = Tuning((0.01, 0.05), 12, 3)  # nothing can be held out: still an answer
    assert probe.fit(three, np.arange(3)).predict_proba(three).shape == (3, 3)
    with pytest.raises(UserError, match="two classes"):
        tuned().fit(data, data.labels * 0)


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))[:, :1] * self.w * float("nan")


def test_finetune_of_a_network_that_gives_nan(colours: Path) -> None:
    data = open_data([str(colours)])
    probe = FinetuneProbe(Encoder(Broken(), Card("broken", 16)), Tuning((0.05,), 12, 2), workers=0)
    with pytest.raises(UserError, match=r"diverges with lr 0\.05 at step 0"):
        probe.fit(data, data.labels)  # type: ignore[arg-type]


OUTSIDE = """
from dataclasses import dataclass
from typing import Annotated

from cuewise.probes import LinearProbe
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.task import classify


@dataclass(frozen=True)
class Stiff(ProbeKind):
    name = "stiff"
    summary = "a linear probe of one regularisation"
    estimator = LinearProbe
    l2: Annotated[float, "the regularisation"] = 1.0

    def run(self, task):
        return classify(task, LinearProbe([self.l2], task.seed))
"""


def test_a_kind_from_outside(colours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "probes_of_mine.py").write_text(OUTSIDE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    result = cuewise.probe("probes_of_mine:Stiff", "cuewise/resnet-tiny?width=8", train=colours, l2="0.01")
    assert result["probe"] == "stiff"
    assert "l2_0.01/" in result["scores"][0]["protocol"]
    with pytest.raises(UserError, match="--k has no meaning for the probe stiff"):
        cuewise.probe("probes_of_mine:Stiff", "cuewise/resnet-tiny", train=colours, k=3)
