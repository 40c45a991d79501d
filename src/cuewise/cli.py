"""The shell: every verb of cuewise.verbs as a subcommand."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from cuewise.errors import Interrupted, UserError, nearest, unknown
from cuewise.files import (
    AGAIN,
    FULL,
    refuse_unwritable,
    refuses,
    system_error,
    write_error,
    write_text,
)
from cuewise.memory import keep_freed
from cuewise.parser import parse, taken_by_an_option
from cuewise.results import Result, as_text
from cuewise.verbs import VERBS, by_topic

PROMISE = (
    "Choose which visual cues a self-supervised encoder learns; see which cues any vision model relies on."
)


def main(argv: list[str] | None = None) -> int:
    """0 done; 2 an error the user can fix; 130 interrupted."""
    words = sys.argv[1:] if argv is None else argv
    debug = "--debug" in words
    words = [w for w in words if w != "--debug"]
    try:
        return run(words)
    except UserError as error:
        if debug:
            raise
        return complain(str(error), 2)
    except (Interrupted, KeyboardInterrupt) as error:
        return complain(str(error) or "interrupted", 130)
    except BrokenPipeError:  # the reader has closed, e.g. `cuewise list models | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, RuntimeError) as error:
        cause = system_error(error)
        if not debug and cause is not None and cause.errno in FULL:
            return complain(f"{cause.strerror}; free some space and run the same command again", 2)
        if debug or not isinstance(error, OSError) or error.filename is None:
            raise
        return complain(f"{error.strerror}: {error.filename}", 2)


def run(words: list[str]) -> int:
    """Find the verb, read its options, call it, print its result."""
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        from cuewise import __version__

        print(f"cuewise {__version__}")
        return 0
    name, *rest = words
    if name.startswith("-"):
        near = nearest(name, ("--help", "--version"))
        hint = f"did you mean {near}?" if near else "options stand after the verb: cuewise VERB … --option"
        raise UserError(f"no option {name} without a verb; {hint} (cuewise --help)")
    if name not in VERBS:
        raise unknown("no verb", name, VERBS, " (cuewise --help)")
    args, options, target = parse(name, VERBS[name], rest)
    check_target(target)
    keep_freed()
    try:
        result = VERBS[name](*args, **options)
    except UserError as error:
        if not args and re.match(r"no [A-Z]+ given", str(error)):
            raise UserError(f"{error}{taken_by_an_option(name, VERBS[name], rest)}") from error
        raise
    except OSError as error:
        raise_unwritable(error, options.get("out"))
        raise
    try:
        show(result, target)
    except OSError as error:
        raise_unwritable(error, target)
        raise
    return 0


def raise_unwritable(error: OSError, place: str | None) -> None:
    """One line where the system refused the place that the user named for the results; other errors pass."""
    if place and refuses(error, Path(place)):
        raise write_error(error, Path(place), AGAIN) from error


def overview() -> str:
    """What `cuewise --help` prints."""
    width = max(map(len, VERBS))
    lines = [PROMISE, "", "usage: cuewise VERB … (cuewise VERB --help shows its options)", ""]
    for topic, names in by_topic().items():
        lines += [topic, *(f"  {n:<{width}}  {(VERBS[n].__doc__ or '').splitlines()[0]}" for n in names)]
    lines += ["", "  --json FILE   write the results for programs (- for standard output)"]
    lines += ["  --debug       show the traceback of an error", "  --version     print the version"]
    return "\n".join(lines)


def show(result: Result, target: str | None) -> None:
    """Print a result for a person, and as JSON where asked."""
    if not result.shown:
        return
    if target:
        text = json.dumps(result, indent=2, ensure_ascii=False)
        if target == "-":
            print(text)
            return
        save(text + "\n", Path(os.path.realpath(target)))
    text = as_text(result)
    if text:
        print(text)


def check_target(target: str | None) -> None:
    """An error where --json cannot be written, before the work and not after it."""
    if target in (None, "-"):
        return
    if os.path.isdir(target):
        raise UserError(f"--json {target} is a folder; name a file")
    file = Path(os.path.realpath(target))
    if not file.parent.is_dir():
        raise UserError(f"--json {target}: there is no such folder; make it first")
    if file.is_file() or not file.exists():  # pipes and devices are written to directly
        refuse_unwritable(file, Path(target))


def save(text: str, file: Path) -> None:
    """Write a file whole or not at all; pipes and devices are written to directly."""
    if file.exists() and not file.is_file():
        file.write_text(text, encoding="utf-8")
    else:
        write_text(file, text)


def complain(text: str, code: int) -> int:
    print(f"cuewise: {' '.join(text.split())}", file=sys.stderr)
    return code
