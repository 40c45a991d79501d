"""Numbers that an option cannot mean are refused in one line, from the shell and from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest

import cuewise
from cuewise.cli import main
from cuewise.config import resolve
from cuewise.errors import UserError
from cuewise.options import COUNT, SEEDS, Bounds, options_of, within_bounds
from cuewise.parser import Verb
from cuewise.verbs import VERBS

MODEL, IMAGES = "cuewise/resnet-tiny?width=8", "shapes:conflict?n=8&size=32"
RANGE = "must be from 0 to 9223372036854775807"


def verb(
    *, n: Annotated[int, "images", Bounds(2, 5)] = 3, side: Annotated[int | None, "", COUNT] = None
) -> Any:
    return n, side


def test_a_number_outside_its_bounds_is_refused() -> None:
    bounded: Any = within_bounds(verb)
    assert bounded() == (3, None)
    assert bounded(n=2, side=None) == (2, None)
    assert bounded(n="5", side=1) == (5, 1)
    for n in (1, 6):
        with pytest.raises(UserError, match=f"--n {n}: must be from 2 to 5$"):
            bounded(n=n)
    with pytest.raises(UserError, match=r"--side 0: must be 1 or more$"):
        bounded(side=0)
    with pytest.raises(UserError, match=r"--n must be a whole number, not 2\.5"):
        bounded(n=2.5)
    assert options_of(bounded) == options_of(verb)


@pytest.mark.parametrize("seed", [-1, 2**63, 10**22])
def test_the_seed_of_a_run_has_a_range(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    for words in (["pretrain", IMAGES], ["tune", MODEL, IMAGES]):
        assert main([*words, "--out", out, "--seed", str(seed)]) == 2
        assert capsys.readouterr().err == f"cuewise: --seed {seed}: {RANGE}\n"
    with pytest.raises(UserError, match=f"--seed {seed}: {RANGE}"):
        cuewise.pretrain(IMAGES, out=out, seed=seed)
    with pytest.raises(UserError, match=f"^seed {seed}: {RANGE}"):
        resolve({"seed": seed})  # as in a YAML file, and by --set
    with pytest.raises(UserError, match=rf"labels\.seed {seed}: {RANGE}"):
        resolve({"method": "supervised", "labels": {"seed": seed, "noise": 0.5}})
    assert not Path(out).exists()
    assert resolve({"seed": SEEDS.most}).seed == SEEDS.most


@pytest.mark.parametrize("size", [0, -4])
def test_embed_takes_one_image_at_a_time_or_more(
    size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "x.npz")
    assert main(["embed", MODEL, IMAGES, "--out", out, "--batch-size", str(size)]) == 2
    assert capsys.readouterr().err == f"cuewise: --batch-size {size}: must be 1 or more\n"
    with pytest.raises(UserError, match=f"--batch-size {size}: must be 1 or more"):
        cuewise.embed(MODEL, IMAGES, out=out, batch_size=size)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", ["0", "-5"])
@pytest.mark.parametrize(
    "words",
    [
        ["embed", MODEL, IMAGES, "--out", "x.npz"],
        ["cost", MODEL],
        ["probe", "knn", MODEL, "--train", IMAGES],
        ["audit", MODEL, "--out", "audit", "--only", "shape_bias"],
    ],
    ids=lambda words: words[0],
)
def test_a_side_is_one_pixel_or_more(
    words: list[str],
    size: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--size", size]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"cuewise: --size {size}: must be 1 or more"


@pytest.mark.parametrize("seed", [-1, 10**22])
def test_every_verb_with_a_seed_has_its_range(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    needed = {"audit": [MODEL], "compare": ["a", "b"], "inspect": [IMAGES], "make": ["shapes"], "transfer": [MODEL],
              "probe": ["linear", MODEL], "pretrain": [IMAGES], "tune": [MODEL, IMAGES]}  # fmt: skip
    assert {name for name, each in VERBS.items() if "seed" in Verb(name, each).options()} == set(needed)
    for name, words in needed.items():
        out = {"make": ["out"], "probe": ["--train", IMAGES]}.get(name, ["--out", "out"])
        assert main([name, *words, *out, "--seed", str(seed)]) == 2
        assert capsys.readouterr().err == f"cuewise: --seed {seed}: {RANGE}\n"
    with pytest.raises(UserError, match=f"--seed {seed}: {RANGE}"):
        cuewise.inspect(IMAGES, out="out", seed=seed)
    with pytest.raises(UserError, match=f"--seed {seed}: {RANGE}"):
        cuewise.make("gaussian", IMAGES, "out", seed=seed)
    with pytest.raises(UserError, match=f"seed must be 0 to {SEEDS.most}, not {seed}"):
        cuewise.open_data(f"shapes:conflict?seed={seed}")
    assert list(tmp_path.iterdir()) == []
