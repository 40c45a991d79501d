"""The cue dials of the negatives study, typed in a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cuewise.cli import main
from cuewise.train.log import read_metrics

SMALL = "--model cuewise/resnet-tiny?width=8 --size 16 --batch-size 8 --steps 2 --workers 0 --set loop.log_every=1"
HEADS = {
    "byol": "--method byol --set byol.hidden=16 --set byol.dim=8",
    "moco": "--method moco --set moco.queue=32 --set moco.dim=16",
    "simclr": "--method simclr --set simclr.hidden=16",
}


def cuewise(words: str, folder: Path, out: Path) -> int:
    return main(["pretrain", str(folder), "--out", str(out), *words.split(), *SMALL.split()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            f"{HEADS['byol']} --negatives regular",
            {"negatives": ["regular"], "alpha": [0.05]},
        ),
        (
            f"{HEADS['byol']} --negatives patch --negatives regular --alpha 0.05 --alpha 0.1",
            {"negatives": ["patch", "regular"], "alpha": [0.05, 0.1]},
        ),
        (
            f"{HEADS['moco']} --negatives patch --no-color-jitter --patch-size 3:5 --patch-augment hflip,rot90",
            {"color_jitter": False, "patch_size": "3:5", "patch_augment": ["hflip", "rot90"]},
        ),
        (
            f"{HEADS['simclr']} --negatives texture --negatives patch --alpha-mode out --num-negatives 2 "
            "--hard debiased --set hard.prior=0.2 --suppress gaussian",
            {
                "hard": {"name": "debiased", "prior": 0.2},
                "suppress": {"name": "gaussian", "pairing": "view", "share": 0.5, "copies": []},
                "alpha_mode": "out",
                "alpha": [2.0, 2.0],
            },
        ),
    ],
)
def test_dials(folder: Path, tmp_path: Path, words: str, expected: dict[str, object]) -> None:
    out = tmp_path / "run"
    assert cuewise(words, folder, out) == 0
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert {k: config[k] for k in expected} == expected
    rows = read_metrics(out / "metrics.jsonl")
    assert ("dials/negative_similarity" in rows[0]) == (config["negatives"] != ["regular"])
    cues = json.loads((out / "encoder.json").read_text())["cues"]
    assert cues["color_jitter"] is config["color_jitter"]
    assert cues["negatives"] == config["negatives"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{HEADS['byol']} --hard ifm", "--hard ifm has no meaning for byol"),
        (f"{HEADS['moco']} --hard ifm --set hard.epsilom=1", "did you mean hard.epsilon"),
        (f"{HEADS['moco']} --negatives texture --texture-data nowhere", "nowhere"),
        (f"{HEADS['moco']} --suppress everything", "there are: anisotropic"),
        (f"{HEADS['moco']} --negatives patch --patch-size 16:20", "give a low end below 16"),
    ],
)
def test_mistakes_end_with_one_line_and_exit_2(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert cuewise(words, folder, tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
