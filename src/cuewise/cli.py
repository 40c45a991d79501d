"""The shell: every verb of cuewise.verbs as a subcommand, its options read off the function's signature."""

from __future__ import annotations

import argparse
import errno
import inspect
import json
import math
import os
import sys
import types
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin, get_type_hints

from cuewise.errors import Interrupted, UserError
from cuewise.verbs import VERBS

PROMISE = (
    "Choose which visual cues a self-supervised encoder learns; see which cues any vision model relies on."
)


def main(argv: list[str] | None = None) -> int:
    """0 done; 2 the user can mend it; 130 interrupted."""
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
    except BrokenPipeError:  # the reader of our output has gone, e.g. `cuewise list models | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if debug or (error.filename is None and error.errno != errno.ENOSPC):
            raise
        if error.errno == errno.ENOSPC:
            return complain(f"{error.strerror}; free some space and give the same command again", 2)
        return complain(f"{error.strerror}: {error.filename}", 2)


def run(words: list[str]) -> int:
    """Find the verb, read its options, call it, print what it gives."""
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        from cuewise import __version__

        print(f"cuewise {__version__}")
        return 0
    name, *rest = words
    if name not in VERBS:
        raise UserError(f"no verb {name!r}; there are: {', '.join(VERBS)} (cuewise --help)")
    verb = VERBS[name]
    parser = build_parser(name, verb)
    options = vars(parser.parse_intermixed_args(rest))
    target = options.pop("json")
    positional = [
        p for p in inspect.signature(verb).parameters.values() if p.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    args: list[Any] = []
    for p in positional:
        value = options.pop(p.name)
        args += value if p.kind is inspect.Parameter.VAR_POSITIONAL else [value]
    result = verb(*args, **options)
    show(name, result, target)
    return 0


def overview() -> str:
    """What `cuewise --help` prints."""
    width = max(map(len, VERBS))
    lines = [PROMISE, "", "usage: cuewise VERB … (cuewise VERB --help tells the options)", ""]
    lines += [f"  {name:<{width}}  {summary(verb)}" for name, verb in VERBS.items()]
    lines += ["", "  --json FILE   write the results for programs (- for standard output)"]
    lines += ["  --debug       show the traceback of an error", "  --version     print the version"]
    return "\n".join(lines)


def summary(verb: Callable[..., Any]) -> str:
    return (inspect.getdoc(verb) or "").splitlines()[0]


def option_help(verb: Callable[..., Any]) -> dict[str, str]:
    """name → help, from the "name: help" lines of the docstring."""
    pairs = (line.partition(":") for line in (inspect.getdoc(verb) or "").splitlines()[1:])
    return {name.strip(): text.strip() for name, _, text in pairs if text}


class Parser(argparse.ArgumentParser):
    """Errors are one line and exit with 2, as everywhere in cuewise."""

    def error(self, message: str) -> Any:
        raise UserError(f"{message} (see {self.prog} --help)")


def build_parser(name: str, verb: Callable[..., Any]) -> Parser:
    """An argparse parser from a verb's signature, types and docstring."""
    parser = Parser(prog=f"cuewise {name}", description=summary(verb), allow_abbrev=False)
    hints, helps = get_type_hints(verb), option_help(verb)
    for p in inspect.signature(verb).parameters.values():
        text = helps.get(p.name, "").replace("%", "%%")
        if p.kind is inspect.Parameter.KEYWORD_ONLY:
            add_option(parser, p, hints[p.name], text)
        else:
            many, optional = p.kind is inspect.Parameter.VAR_POSITIONAL, p.default is None
            nargs: Any = "*" if many else "?" if optional else None
            parser.add_argument(p.name, nargs=nargs, help=text, metavar=p.name.upper())
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON (- for standard output)")
    return parser


def add_option(parser: Parser, p: inspect.Parameter, hint: Any, text: str) -> None:
    flag = "--" + p.name.replace("_", "-")
    optional = get_origin(hint) in (Union, types.UnionType)
    kinds = [k for k in get_args(hint) if k is not type(None)] if optional else [hint]
    kind, required = kinds[0], p.default is inspect.Parameter.empty
    shown = "" if p.default in (None, False, inspect.Parameter.empty) else f" [{p.default}]"
    if kind is bool and optional:
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text, dest=p.name)
    elif kind is bool:
        parser.add_argument(flag, action="store_true", help=text, dest=p.name)
    elif get_origin(kind) is list:
        item = get_args(kind)[0]
        parser.add_argument(
            flag,
            nargs="+",
            action="extend",
            type=item,
            required=required,
            help=text,
            dest=p.name,
            metavar="X",
        )
    else:
        parser.add_argument(
            flag,
            type=kind,
            default=None if required else p.default,
            required=required,
            help=text + shown,
            dest=p.name,
            metavar=p.name.upper(),
        )


def show(name: str, result: dict[str, Any], target: str | None) -> None:
    """Print a result for a person, and as JSON where asked."""
    if target:
        text = json.dumps(plain(result), indent=2, ensure_ascii=False)
        if target == "-":
            print(text)
            return
        with open(target, "w", encoding="utf-8") as handle:
            handle.write(text + "\n")
    if "comparison" in result:
        print(side_by_side(**result["comparison"]))
    for score in [] if "comparison" in result else result.get("scores", []):
        line = f"{score['name']:<34} {number(score['value'])}"
        if score.get("low") is not None:
            line += f"  [{number(score['low'])}, {number(score['high'])}]"
        print(f"{line}  n={score['n']}  {score['protocol']}")
    for key, value in result.items():
        if isinstance(value, str | int | float):
            print(f"{key:<14} {value}")


def side_by_side(columns: list[str], rows: list[list[Any]]) -> str:
    """A table: a line a score, a column a model."""
    cells = [columns] + [[row[0], *map(number, row[1:])] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in cells)


def number(value: float | None) -> str:
    return "   –  " if value is None or not math.isfinite(value) else f"{value:.4f}"


def plain(value: Any) -> Any:
    """Only what JSON has: no NaN, no paths, no tuples."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def complain(text: str, code: int) -> int:
    print(f"cuewise: {' '.join(text.split())}", file=sys.stderr)
    return code
