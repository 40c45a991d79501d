"""Processes that start from one which has imported torch: the fixture `warm_start`.

A new interpreter spends seconds on imports before the first line of a test's own. Here one process imports them once, and each
`[sys.executable, "-m" or "-c", …]` is a fork of it with the arguments, environment, folder, pipes and session that it was given.
It is a child of the test like any other: `subprocess` waits for it, signals reach it, and its exit code is its own. A command
whose environment would change an import (threads, numba, …) gets an interpreter of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Mapping
from functools import cached_property
from typing import Any

IMPORTED = (
    "cuewise.train.pretrain",
    "cuewise.verbs.pretrain",
    "cuewise.audits.watch",
    "cuewise.studies.jobs",
)
FREE = {"CUEWISE_CACHE", "PYTHONPATH", "PYTEST_CURRENT_TEST"}  # read when they are used, not at an import
# threads of libraries that compute with one here anyway
FREE |= {"NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
SUBREAPER = 36  # of prctl: orphans below this process become its children
FORM = (
    "preexec_fn",
    "executable",
    "shell",
    "startupinfo",
    "pass_fds",
    "umask",
    "user",
    "group",
)  # not served


class Template:
    """The process that is copied; started when it is first needed."""

    def __init__(self) -> None:
        self.environment = dict(os.environ)

    @cached_property
    def line(self) -> socket.socket:
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from tests.warm import serve; serve({other.fileno()})"
        )
        subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL,
            env=self.environment,
        )
        other.close()
        return own

    def serves(self, args: Any, env: Mapping[str, str]) -> bool:
        """Whether a copy does what an interpreter of its own would do."""
        if not isinstance(args, list) or args[0] != sys.executable or args[1] not in ("-c", "-m"):
            return False
        names = (self.environment.keys() | env.keys()) - FREE
        return all(self.environment.get(n) == env.get(n) for n in names)

    def copy(self, asked: dict[str, Any], pipes: list[int]) -> int:
        """The number of a new process, which is a child of this one."""
        prctl = ctypes.CDLL(None).prctl
        prctl(SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(self.line, [json.dumps(asked).encode()], pipes)
            return int(self.line.recv(64))
        finally:
            prctl(SUBREAPER, 0, 0, 0, 0)


def warm_popen(template: Template) -> type[subprocess.Popen[Any]]:
    """`subprocess.Popen` whose interpreters are copies of the template."""

    class WarmPopen(subprocess.Popen[Any]):
        def __init__(self, args: Any, *rest: Any, **options: Any) -> None:
            env = options.get("env") or dict(os.environ)
            self.asked: dict[str, Any] | None = None
            if template.serves(args, env) and not rest and not any(options.get(n) for n in FORM):
                own = bool(options.get("start_new_session"))
                self.asked = {"args": args[1:], "env": dict(env), "session": own}
                self.asked["cwd"] = os.fspath(options.get("cwd") or os.getcwd())
            super().__init__(args, *rest, **options)

        def _execute_child(self, *given: Any) -> None:
            if self.asked is None:
                super()._execute_child(*given)  # type: ignore[misc]
                return
            read_in, _, _, write_out, _, write_err = ends = given[10:16]
            pipes = [
                own if own != -1 else stream for stream, own in enumerate((read_in, write_out, write_err))
            ]
            self.pid = template.copy(self.asked, pipes)
            self._child_created = True
            self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    return WarmPopen


def serve(number: int) -> None:
    """In the template: import, then fork for each message until the tests end."""
    for name in IMPORTED:
        __import__(name)
    sys.modules["cuewise.data.workers"].YIELDING = 0  # type: ignore[attr-defined]  # see conftest.py
    assert len(os.listdir("/proc/self/task")) == 1, "a fork would lose the other threads"
    requests = socket.socket(fileno=number)
    while True:
        message, pipes, *_ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            return
        told, tell = os.pipe()
        middle = os.fork()
        if middle == 0:  # its child is an orphan when it ends, and then a child of the tests
            me = os.getpid()
            child = os.fork()
            if child == 0:
                for end in (told, tell, requests.detach()):
                    os.close(end)
                while os.getppid() == me:
                    time.sleep(0.001)
                become(json.loads(message), pipes)
            os.write(tell, str(child).encode())
            os._exit(0)
        os.waitpid(middle, 0)
        requests.send(os.read(told, 64))
        for end in (told, tell, *pipes):
            os.close(end)


def become(asked: dict[str, Any], pipes: list[int]) -> None:
    """In the copy: what the interpreter does before its first line, then that line; does not return."""
    if asked["session"]:
        os.setsid()
    for stream, pipe in enumerate(pipes):
        os.dup2(pipe, stream)
        os.close(pipe)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    paths = [p for p in asked["env"].get("PYTHONPATH", "").split(os.pathsep) if p]
    kind, what, *rest = asked["args"]
    sys.path[:0] = [asked["cwd"] if kind == "-m" else "", *paths]
    sys.argv = ["-c", *rest] if kind == "-c" else [what, *rest]
    code = 0
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), main.__dict__)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    leave(code)


def leave(code: int) -> None:
    """As at the end of an interpreter: threads are waited for, what was registered is called, streams are written out."""
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 120
    os._exit(code)
