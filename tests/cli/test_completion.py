"""`cuewise completion`: the Tab key knows verbs, options and names."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from functools import cache

import pytest

import cuewise
from cuewise.cli import main
from cuewise.parser import Verb
from cuewise.shell_completion import SCRIPTS, _quoted, script
from cuewise.verbs import VERBS

bash = cache(lambda: script("bash", VERBS))


def completed(*words: str) -> list[str]:
    """What bash offers for the last of these words."""
    typed = " ".join(shlex.quote(w) for w in ("cuewise", *words))
    code = f"{bash()}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}; _cuewise; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=20)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.shell
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash() -> None:
    assert completed("pre") == ["pretrain"]
    assert set(completed("")) >= set(VERBS)
    assert completed("pretrain", "photos", "--neg") == ["--negatives"]
    assert completed("pretrain", "photos", "--negatives", "pa") == ["patch"]
    assert "moco" in completed("pretrain", "--method", "")
    assert completed("probe", "kn") == ["knn"]
    assert completed("make", "anis") == ["anisotropic"]
    assert completed("list", "meth") == ["methods"]
    assert completed("audit", "runs/pl") == []  # files: bash's own
    assert completed("export", "run", "--format", "sa") == ["safetensors"]
    assert completed("nothing", "--o") == []


@pytest.mark.parametrize("shell", SCRIPTS)
@pytest.mark.slow
def test_every_option_is_there(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, VERBS)
    flags = {o.flag for name, verb in VERBS.items() for o in Verb(name, verb).options().values()}
    for flag in flags:
        assert (f"-l {flag.removeprefix('--')} " if shell == "fish" else flag) in text
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == text + "\n"
    program = shutil.which(shell)
    if program:
        done = subprocess.run([program, "-n"], input=text, text=True, capture_output=True, timeout=20)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_quotes_and_unknown_shells(capsys: pytest.CaptureFixture[str]) -> None:
    assert _quoted("it's a \\") == "'it\\'s a \\\\'"
    assert main(["completion", "bsh"]) == 2
    assert "did you mean bash?" in capsys.readouterr().err
    assert cuewise.completion("bash") == {"script": script("bash", VERBS)}
