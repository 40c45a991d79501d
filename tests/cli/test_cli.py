"""The shell as a user meets it, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuewise.cli import build_parser, main, option_help, overview
from cuewise.verbs import VERBS


def shell(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUEWISE_CACHE": str(cwd / "cache")}
    return subprocess.run(
        [sys.executable, "-m", "cuewise", *words],
        cwd=cwd,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
    )


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in VERBS:
        assert f"  {name} " in text
    assert overview() == text.rstrip("\n")
    assert main([]) == 2
    assert main(["--version"]) == 0


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_option_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help is true: each parameter of the function has its line, and there is no line without a parameter."""
    import inspect

    verb = VERBS[name]
    parameters = set(inspect.signature(verb).parameters)
    assert set(option_help(verb)) == parameters
    with pytest.raises(SystemExit) as stop:
        build_parser(name, verb).parse_args(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for p in inspect.signature(verb).parameters.values():
        word = "--" + p.name.replace("_", "-") if p.kind is inspect.Parameter.KEYWORD_ONLY else p.name.upper()
        assert word in text


def test_a_mistake_is_one_line_and_exit_2(tmp_path: Path) -> None:
    for words, what in (
        (["pretrian"], "no verb 'pretrian'"),
        (["pretrain", "nowhere", "--out", "run"], "nowhere"),
        (["pretrain", "nowhere"], "--out"),
        (["pretrain", "x", "--out", "run", "--sise", "3"], "--sise"),
        (["list", "wonders"], "cannot list 'wonders'"),
        (["export", "nothing-here", "--format", "onnx", "--out", "x"], "no model 'nothing-here'"),
    ):
        done = shell(*words, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert what in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = shell("list", "wonders", "--debug", cwd=tmp_path)
    assert "Traceback" in done.stderr


def test_pretrain_embed_probe_export_from_the_shell(folder: Path, tmp_path: Path) -> None:
    small = "--model cuewise/resnet-tiny?width=8 --size 16 --batch-size 16 --epochs 1 --negatives patch --alpha 1.5"
    done = shell(
        "pretrain", str(folder), *small.split(), "--out", "run", "--set", "moco.queue=64", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    done = shell("embed", "run", str(folder), "--out", "e.npz", "--json", "-", cwd=tmp_path)
    assert json.loads(done.stdout)["images"] == 48
    done = shell(
        "probe", "knn", "run", "--train", str(folder), "--k", "3", "--json", "scores.json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "top1/held-out" in done.stdout
    scores = json.loads((tmp_path / "scores.json").read_text())["scores"]
    assert set(scores[0]) == {"name", "value", "low", "high", "n", "protocol"}
    done = shell("export", "run", "--format", "timm", "--out", "t.pth", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t.pth").exists()


@pytest.mark.parametrize(
    "what", ["methods", "models", "negatives", "filters", "audits", "makers", "probes", "recipes"]
)
def test_list(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", what]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines
    if what == "methods":
        assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
        assert {"moco", "simclr", "byol", "supervised"} <= {line.split()[0] for line in lines}


def test_output_can_be_cut_off(tmp_path: Path) -> None:
    command = f"{sys.executable} -m cuewise list models | head -n 1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("cuewise/resnet-tiny")


def test_options_may_stand_anywhere_and_lists_may_be_repeated_or_joined() -> None:
    parser = build_parser("pretrain", VERBS["pretrain"])
    words = ["a", "--out", "x", "b", "--set", "k=1", "j=2", "--negatives", "patch", "--negatives", "regular"]
    found = parser.parse_intermixed_args([*words, "--no-color-jitter"])
    assert found.data == ["a", "b"]
    assert found.set == ["k=1", "j=2"]
    assert found.negatives == ["patch", "regular"]
    assert found.color_jitter is False
