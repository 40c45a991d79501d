"""A copy of the template is a process like any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.shell, pytest.mark.usefixtures("warm_start")]


def python(code: str, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


def test_arguments_folder_environment_streams_and_code(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.argv, os.getcwd(), os.environ['CUEWISE_CACHE'], sys.stdin.read()); sys.exit('bad é')"
    env = {**os.environ, "CUEWISE_CACHE": "elsewhere"}
    done = python(code, "a b", cwd=tmp_path, env=env, input="given")
    assert done.stdout == f"['-c', 'a b'] {tmp_path} elsewhere given\n"
    assert (done.returncode, done.stderr) == (1, "bad é\n")
    assert python("raise SystemExit(7)").returncode == 7
    assert "ZeroDivisionError" in python("1 / 0").stderr


def test_it_has_imported_torch_and_an_interpreter_of_other_threads_has_not() -> None:
    code = "import sys; print('torch' in sys.modules)"
    assert python(code).stdout == "True\n"
    other = {**os.environ, "OMP_NUM_THREADS": "3"}
    assert python(code, env=other).stdout == "False\n"


def test_it_is_a_child_that_can_be_killed() -> None:
    sleeping = subprocess.Popen([sys.executable, "-c", "import time; print('x', flush=True); time.sleep(60)"],
                                stdout=subprocess.PIPE, start_new_session=True)  # fmt: skip
    assert sleeping.stdout is not None
    assert sleeping.stdout.readline() == b"x\n"
    assert os.getpgid(sleeping.pid) == sleeping.pid
    assert int(Path(f"/proc/{sleeping.pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) == os.getpid()
    os.killpg(sleeping.pid, signal.SIGKILL)
    assert sleeping.wait(10) == -signal.SIGKILL


def test_ctrl_c_and_what_is_left_at_the_end() -> None:
    code = "import atexit, time\natexit.register(print, 'end')\n"
    code += "try: print('x', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: print('stopped')"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "x\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[0] == "stopped\nend\n"
    assert process.returncode == 0


def test_a_module(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    done = subprocess.run([sys.executable, "-m", "own", "1"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "__main__ ['1']\n"
    began = time.monotonic()
    assert (
        "cuewise"
        in subprocess.run(
            [sys.executable, "-m", "cuewise", "--version"], capture_output=True, text=True
        ).stdout
    )
    assert time.monotonic() - began < 20
