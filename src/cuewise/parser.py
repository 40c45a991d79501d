"""The shell's words → a verb's arguments: parsers built from what verbs and members declare."""

from __future__ import annotations

import argparse
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from cuewise.errors import UserError, nearest
from cuewise.options import REQUIRED, Of, OfKind, Option, no_option, options_of
from cuewise.registry import TYPED, declared_members

WIDTH = 110  # of --help
EXAMPLE = "photos, sketches and runs/plain stand for your own"


@dataclass(frozen=True)
class Positional:
    """An argument without a flag; `many` takes all that are left."""

    name: str
    help: str
    many: bool
    optional: bool

    @property
    def shown(self) -> str:
        return self.name.upper() + "…" * self.many


class Verb:
    """A function of cuewise.verbs as the shell sees it."""

    def __init__(self, name: str, function: Callable[..., dict[str, Any]]) -> None:
        self.name, self.function = name, function
        self.summary, _, rest = (inspect.getdoc(function) or "").partition("\n")
        self.examples = [line for line in rest.splitlines() if line.startswith("cuewise ")]
        self.own = options_of(function)
        hints = get_type_hints(function, include_extras=True)
        self.positionals: list[Positional] = []
        self.source: Of | OfKind | None = None  # of options that the function takes as **options
        for p in inspect.signature(function).parameters.values():
            metadata: tuple[Any, ...] = getattr(hints[p.name], "__metadata__", ())
            if p.kind is inspect.Parameter.VAR_KEYWORD:
                self.source = next(m for m in metadata if isinstance(m, Of | OfKind))
            elif p.kind is not inspect.Parameter.KEYWORD_ONLY:
                many = p.kind is inspect.Parameter.VAR_POSITIONAL
                optional = p.default is not REQUIRED or (many and metadata[0].endswith("]"))
                self.positionals.append(Positional(p.name, metadata[0], many, optional))

    def options(self, words: Sequence[str] = ()) -> dict[str, Option]:
        """The verb's own options and those of what the words name."""
        found = dict(self.own)
        if self.source is not None:
            found |= {n: o for n, o in self.source.options(self._named(words)).items() if n not in found}
        return found

    def settings(self, words: Sequence[str]) -> dict[str, Option]:
        """Keys that `--set` takes for the member that the first word names."""
        kind = next((o.settings for o in self.own.values() if o.settings), None)
        return kind.options([words[0]]) if kind is not None and words and kind.knows(words[0]) else {}

    def _named(self, words: Sequence[str]) -> list[str]:
        """The members whose options there are: the first word names one; of an option of names, all and those typed."""
        if not isinstance(self.source, OfKind):
            return []
        argument = self.source.argument
        if argument not in self.own:
            return [words[0]] if words and not words[0].startswith("-") else []
        after = words[words.index(self.own[argument].flag) + 1 :] if self.own[argument].flag in words else []
        typed = [name for name in (after[0].split(",") if after else []) if TYPED.fullmatch(name)]
        return [*declared_members(self.source.package), *typed] if typed else []


class Parser(argparse.ArgumentParser):
    """Errors are one line and exit with 2, as everywhere in cuewise."""

    verb: Verb
    words: Sequence[str]
    flags: list[str]

    def error(self, message: str) -> Any:
        unknown = re.match(r"unrecognized arguments: (.*)", message)
        if unknown:
            message = self._unknown(unknown[1].split())
        elif message.startswith("the following arguments are required"):
            message = self._missing(message)
        raise UserError(f"{message} (see {self.prog} --help)")

    def _unknown(self, words: list[str]) -> str:
        flag = next((w.partition("=")[0] for w in words if w.startswith("-")), None)
        if flag is None:
            return f"one argument too many: {' '.join(words)}"
        other = next((o for o in self.verb.options().values() if o.flag == flag), None)
        source = self.verb.source
        if other is not None and source is not None:  # of another member than the one that was named
            (kind,) = self.verb._named(self.words)
            return str(no_option(other.name, source.options([kind]), f"the {self.verb.name} {kind}"))
        near = nearest(flag, self.flags)
        return f"no option {flag}{f'; did you mean {near}?' if near else ''}"

    def _missing(self, message: str) -> str:
        """A list option may have taken what was meant as a positional argument: show the order that works."""
        names = [p.name.upper() for p in self.verb.positionals]
        missing = re.sub(r".*required: ", "", message)
        lists = [o.flag for o in self.verb.options(self.words).values() if o.many is not None]
        if not any(m in names for m in missing.split(", ")) or not any(w in lists for w in self.words):
            return f"{missing} is missing"
        return f"{missing} is missing: {self.order()}"

    def order(self) -> str:
        """The order in which no list option takes a positional argument."""
        names = " ".join(p.shown for p in self.verb.positionals)
        return f"an option with several values takes all words after it, so write {self.prog} {names} first"


class Lines(argparse.HelpFormatter):
    """Examples keep their lines."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=WIDTH)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return textwrap.indent(text, indent)


def build_parser(name: str, function: Callable[..., dict[str, Any]], words: Sequence[str] = ()) -> Parser:
    """A parser for the words of one verb; what is not given stays out of its result."""
    verb = Verb(name, function)
    examples = "\n".join(f"  {line}" for line in verb.examples)
    helping = any(w in ("-h", "--help") for w in words)
    keys = verb.settings(words) if helping else {}
    settings = "".join(f"  {o.name:<21} {o.help}{o.shown_default}\n" for o in keys.values())
    settings = f"settings of {words[0]}, as --set key=value:\n{settings}\n" if settings else ""
    options = verb.options(words)
    shape = [f"[{p.shown}]" if p.optional else p.shown for p in verb.positionals]
    shape += [f"{o.flag} {o.name.upper()}" for o in options.values() if o.required] + ["[options]"]
    parser = Parser(
        prog=f"cuewise {name}",
        usage=f"cuewise {name} {' '.join(shape)}",
        description=verb.summary,
        epilog=escape(f"{settings}examples ({EXAMPLE}):\n{examples}"),
        formatter_class=Lines,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.verb, parser.words = verb, words
    for p in verb.positionals:
        nargs: Any = "*" if p.many else "?" if p.optional else None
        parser.add_argument(p.name, nargs=nargs, help=escape(p.help), metavar=p.name.upper())
    groups: dict[str, Any] = {"": parser}
    for option in options.values():
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        add_option(groups[option.group], option)
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON (- for standard output)")
    parser.flags = [*parser._option_string_actions]
    return parser


def add_option(parser: Any, option: Option) -> None:
    """One declared option as argparse knows it."""
    text = escape(option.help + option.shown_default)
    common: dict[str, Any] = {"dest": option.name, "help": text}
    kind = option.kinds[0]
    if kind is bool and option.default is False:
        parser.add_argument(option.flag, action="store_true", **common)
    elif kind is bool:
        parser.add_argument(option.flag, action=argparse.BooleanOptionalAction, **common)
    elif option.many is not None:
        item = option.many if option.many in (int, float) and not option.commas else str
        parser.add_argument(
            option.flag,
            nargs="+",
            action=Joined,
            type=item,
            required=option.required,
            metavar="X",
            **common,
        )
    else:
        read = kind if kind in (int, float) else str
        name = option.name.upper()
        parser.add_argument(option.flag, type=read, required=option.required, metavar=name, **common)


class Joined(argparse.Action):
    """A list that may be given in several pieces."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest, None) or []), *values])


def parse(
    name: str, function: Callable[..., dict[str, Any]], words: list[str]
) -> tuple[list[Any], dict[str, Any], str | None]:
    """Positional arguments, options and the target of --json."""
    parser = build_parser(name, function, words)
    found = vars(parser.parse_intermixed_args(words))
    target = found.pop("json", None)
    args: list[Any] = []
    for p in parser.verb.positionals:
        value = found.pop(p.name, [] if p.many else None)
        args += value if p.many else [value]
    return args, found, target


def taken_by_an_option(name: str, function: Callable[..., dict[str, Any]], words: list[str]) -> str:
    """What to say where positional arguments are missing and a list option took several words; else nothing."""
    parser = build_parser(name, function, words)
    found = vars(parser.parse_intermixed_args(words))
    several = [
        v
        for k, v in found.items()
        if isinstance(v, list) and len(v) > 1 and f"--{k.replace('_', '-')}" in words
    ]
    return f"; {parser.order()}" if several else ""


def escape(text: str) -> str:
    return text.replace("%", "%%")
