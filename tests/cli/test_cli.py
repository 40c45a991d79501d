"""The shell as a user meets it, in a process of its own."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cuewise import verbs
from cuewise.catalogue import KINDS
from cuewise.cli import main, overview
from cuewise.parser import Verb, build_parser, parse
from cuewise.train import tune
from cuewise.verbs import TOPICS, VERBS

pytestmark = pytest.mark.usefixtures("warm_start")


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
    assert [line for line in text.splitlines() if line in TOPICS] == list(TOPICS)
    assert main([]) == 2
    assert main(["--version"]) == 0


def test_a_verb_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {file.stem.rstrip("_") for file in Path(verbs.__file__).parent.glob("[!_]*.py")}
    assert set(VERBS) == files - {"arguments"}
    (tmp_path / "greet.py").write_text('TOPIC = "start"\n\n\ndef greet():\n    """Say hello."""\n')
    monkeypatch.setattr(verbs, "__path__", [*verbs.__path__, str(tmp_path)])
    assert list(verbs.found())[:3] == ["demo", "greet", "list"]
    del sys.modules["cuewise.verbs.greet"], verbs.greet  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_option_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help is complete: each argument and option of the function stands there with a help text and two examples."""
    verb = Verb(name, VERBS[name])
    with pytest.raises(SystemExit) as stop:
        build_parser(name, VERBS[name]).parse_args(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    unwrapped = " ".join(text.split())
    declared = set(inspect.signature(VERBS[name]).parameters) - {"options"}
    assert declared == {p.name for p in verb.positionals} | set(verb.own)
    for p in verb.positionals:
        assert f"  {p.name.upper()} " in text
        assert p.help in unwrapped
    for option in verb.options().values():
        assert f"  {option.flag}" in text
        assert option.help in unwrapped
    assert len(verb.examples) >= 2
    assert all(example in text for example in verb.examples)
    assert all(words_fit(example) for example in verb.examples)


def test_options_stand_in_groups() -> None:
    text = build_parser("pretrain", VERBS["pretrain"]).format_help()
    own, *groups = re.split(r"\n(?=[a-z ]+:\n)", text)
    by_name = {group.partition(":")[0]: group for group in groups}
    assert {"training", "cue dials", "watching", "machine"} <= set(by_name)
    for group, flag in (
        ("training", "--epochs"),
        ("cue dials", "--alpha"),
        ("watching", "--watch"),
        ("machine", "--devices"),
    ):
        assert f"  {flag} " in by_name[group]
        assert sum(f"  {flag} " in part for part in (own, *groups)) == 1


def words_fit(example: str) -> bool:
    name, *words = shlex.split(example)[1:]
    parse(name, VERBS[name], words)
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("pretrian", "no verb 'pretrian'; did you mean pretrain?"),
        ("pretrain nowhere --out run", "nowhere"),
        ("pretrain nowhere", "--out is missing"),
        ("pretrain x --out run --sise 3", "no option --sise; did you mean --size?"),
        ("pretrain x --out run --size wide", "invalid int value: 'wide'"),
        ("pretrain x --out run --method moko", "no method 'moko'; did you mean moco?"),
        ("--versoin", "no option --versoin without a verb; did you mean --version?"),
        ("--limit 3 audit x", "no option --limit without a verb; options stand after the verb"),
        ("make texture", "SRC is missing (see cuewise make --help)"),
        ("make texture a", "make texture needs images and a folder to write: cuewise make texture SRC DST"),
        ("list wonders", "cannot list 'wonders'"),
        ("list metods", "did you mean methods?"),
        (
            "probe knn --train a b run",
            "MODEL is missing: an option with several values takes all words after it",
        ),
        ("make textur a b", "cannot make 'textur'; did you mean texture?"),
        ("score a.csv b.csv", "one argument too many: b.csv"),
        ("export nothing-here --format onnx --out x.onnx", "no model 'nothing-here'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    words: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert what in said
    assert said.startswith("cuewise: ")
    assert len(said.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.shell
def test_a_mistake_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = shell("list", "wonders", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot list 'wonders'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.shell
def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = shell("list", "wonders", "--debug", cwd=tmp_path)
    assert "Traceback" in done.stderr


@pytest.mark.shell
def test_pretrain_embed_probe_export_from_the_shell(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Training in a process of its own; the others run here, where torch is loaded."""
    small = "--model cuewise/resnet-tiny?width=8 --size 16 --batch-size 16 --epochs 1 --negatives patch --alpha 1.5"
    done = shell(
        "pretrain", str(folder), *small.split(), "--out", "run", "--set", "moco.queue=64", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)

    def printed(*words: str) -> str:
        assert main(list(words)) == 0
        return capsys.readouterr().out

    assert json.loads(printed("embed", "run", str(folder), "--out", "e.npz", "--json", "-"))["images"] == 48
    words = ("probe", "knn", "run", "--train", str(folder), "--k", "3", "--json", "scores.json")
    assert "top1/held-out" in printed(*words)
    scores = json.loads((tmp_path / "scores.json").read_text())["scores"]
    assert set(scores[0]) == {"name", "value", "low", "high", "n", "protocol"}
    printed("export", "run", "--format", "timm", "--out", "t.pth")
    assert (tmp_path / "t.pth").exists()


@pytest.mark.parametrize(
    "what",
    [
        "methods",
        "models",
        "negatives",
        "filters",
        "cues",
        "augmentations",
        "audits",
        "makers",
        "probes",
        "recipes",
        "studies",
        "settings",
    ],
)
def test_list(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", what]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines
    if what == "methods":
        assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
        assert {"moco", "simclr", "byol", "supervised"} <= {line.split()[0] for line in lines}


def test_list_without_a_kind_says_what_the_kinds_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(KINDS)
    assert all(len(line.split()) > 1 for line in lines)


def test_usage_shows_which_arguments_may_be_left_out() -> None:
    usages = {name: build_parser(name, VERBS[name]).usage or "" for name in VERBS}
    assert usages["clean"].startswith("cuewise clean [CACHE…] ")
    assert usages["reproduce"].startswith("cuewise reproduce [NAME…] --out ")
    assert usages["audit"].startswith("cuewise audit MODEL… --out ")
    assert usages["list"].startswith("cuewise list [WHAT] ")


def test_help_of_tune_has_the_defaults_of_tune() -> None:
    """They are not those of pretrain, whose options it takes."""
    shown = {name: o.help + o.shown_default for name, o in Verb("tune", VERBS["tune"]).options().items()}
    preset = tune.preset("texture")
    assert shown["epochs"].endswith(f"[{tune.EPOCHS}]")
    assert shown["batch_size"].endswith(f"[{tune.BATCH}]")
    assert "half the model's own" in shown["size"]
    assert f"[{preset['negatives'][0]};" in shown["negatives"]
    assert shown["alpha"].endswith(f"[{preset['alpha'][0]:g}]")
    assert f"[{preset['suppress']['name']}, a third of them;" in shown["suppress"]
    assert preset["suppress"]["share"] == 1 / 3
    assert not {"negatives", "suppress"} & set(tune.preset("color"))
    pretrain = Verb("pretrain", VERBS["pretrain"]).options()
    assert (pretrain["epochs"].help + pretrain["epochs"].shown_default).endswith("[200]")


@pytest.mark.shell
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
    args, options, target = parse("pretrain", VERBS["pretrain"], words)
    assert (args, options["set"], target) == (["a", "b"], ["k=1", "j=2"], None)


def test_help_of_a_kind_lists_its_own_options(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in (
        ("probe knn --help", "--temperature TEMPERATURE"),
        ("make anisotropic --help", "settings of anisotropic, as --set key=value"),
        ("make texture --help", "neighbours"),
        ("audit --help", "--reference-errors"),
    ):
        with pytest.raises(SystemExit):
            main(words.split())
        assert expected in capsys.readouterr().out
    assert main(["probe", "knn", "run", "--train", "a", "--shots", "3"]) == 2
    assert "--shots has no meaning for the probe knn" in capsys.readouterr().err


def test_results_for_programs_appear_whole_and_are_checked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("cuewise.catalogue.catalogue", lambda what: asked.append(what) or {"methods": "1"})
    file = tmp_path / "out.json"
    file.write_text("old")
    assert main(["list", "methods", "--json", str(tmp_path / "nowhere" / "x.json")]) == 2
    assert main(["list", "methods", "--json", str(tmp_path)]) == 2
    assert asked == []
    assert "there is no such folder" in capsys.readouterr().err
    monkeypatch.setattr(
        os, "replace", lambda *names: (_ for _ in ()).throw(OSError(errno.EFBIG, "File too large"))
    )
    assert main(["list", "methods", "--json", str(file)]) == 2
    assert (
        capsys.readouterr().err == "cuewise: File too large; free some space and run the same command again\n"
    )
    assert file.read_text() == "old"
    monkeypatch.undo()
    assert main(["list", "methods", "--json", str(file)]) == 0
    assert "moco" in json.loads(file.read_text())


def test_an_option_that_took_the_model_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["--train", "shapes", "runs/a", "--out", str(tmp_path / "o")]
    assert main(["audit", *words]) == 2
    assert "so write cuewise audit MODEL… first" in capsys.readouterr().err
    assert main(["audit", *words[:2], *words[3:]]) == 2
    assert "takes all words after it" not in capsys.readouterr().err
