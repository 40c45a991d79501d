"""Options: name, type, default and help stand in one place, which the shell, the Python verbs and the editors' stub read.

A declaration is a function with keyword-only parameters or a dataclass with fields. The help is part of the type:

    @dataclass(frozen=True)
    class KNN(ProbeKind):
        name = "knn"
        summary = "weighted votes of the k nearest training images"
        k: Annotated[int, "neighbours"] = 20
        temperature: Annotated[float, "of the votes"] = 0.07
        labels: Annotated[list[str] | None, "tables of labels [those of the folders]"] = None

    options_of(KNN)                      # {"k": Option("k", int, 20, "neighbours"), …}
    KNN(**checked(KNN, {"k": "5"}))      # values converted, unknown names refused with the nearest one

The shell shows `--k K   neighbours [20]`; a help that ends with [text] says its default itself. A second text is the group
that the option stands in under --help. COMMAS marks a list that may also be written a,b,c, Bounds say what a number may be.
Fields without a help are not options. A member that is an object names the function or class with its options as
`declares`. A verb takes the options of something else by the annotation of its `**options`:

    def pretrain(*data: str, **options: Annotated[Any, Of("cuewise.config.fields:Config")]) -> …
    def probe(kind: str, …, **options: Annotated[Any, OfKind("probes", "cuewise.probes", "cuewise.probes.kinds:PROBES.get")]) -> …
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from numbers import Integral, Real
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from cuewise.class_source import class_source
from cuewise.declarations import Declared
from cuewise.errors import UserError, nearest
from cuewise.registry import TYPED, declared_members, outside

One = str | Path  # a path, or a name
Several = str | Path | Sequence[str | Path]  # one or several of them
REQUIRED: Any = inspect.Parameter.empty
COMMAS = object()  # metadata of a list that may be written a,b,c
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Bounds:
    """What a number may be, both ends included; metadata of its type, or asked directly."""

    least: int
    most: int | None = None

    def __str__(self) -> str:
        return f"{self.least} or more" if self.most is None else f"from {self.least} to {self.most}"

    def check(self, value: Any, where: str) -> None:
        """An error that states the range; None is "not given"."""
        if value is None or (value >= self.least and (self.most is None or value <= self.most)):
            return
        raise UserError(f"{where} {value}: must be {self}")


SEEDS = Bounds(0, 2**63 - 1)  # what numpy's and torch's generators take
COUNT = Bounds(1)


def texts(value: Several | None) -> list[str]:
    """One, several or None as a list of texts."""
    if value is None:
        return []
    return [str(value)] if isinstance(value, str | Path) else [str(v) for v in value]


@dataclass(frozen=True)
class Option:
    """One option as it was declared."""

    name: str
    type: Any  # without Annotated; may be `X | None`
    default: Any
    help: str
    group: str = ""
    commas: bool = False
    settings: OfKind | None = None  # of an option that takes key=value: whose keys --help lists
    bounds: Bounds | None = None

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types a value may have, None left out."""
        return alternatives(self.type)

    @property
    def many(self) -> Any | None:
        """The type of the items of a list; None for one value."""
        found = _listed(self.kinds)
        return None if found is None else alternatives(get_args(found)[0])[0]

    @property
    def shown_default(self) -> str:
        """What --help adds: the default, where the help does not say it."""
        unsaid = self.default in (None, REQUIRED, "", [], {}) or isinstance(self.default, bool)
        silent = self.help.endswith("]") or unsaid
        value = ",".join(map(str, self.default)) if isinstance(self.default, list) else self.default
        return "" if silent else f" [{value}]"


@dataclass(frozen=True)
class Of:
    """`**options` of a verb are those of one declaration, named `package.module:Name`, `without` some.

    defaults: name and text for --help, where the verb has a default of its own
    """

    where: str
    without: tuple[str, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    def options(self, named: Sequence[str]) -> dict[str, Option]:
        declared = options_of(attribute(self.where))
        found = {n: o for n, o in declared.items() if n not in self.without}
        for name, text in self.defaults:
            help = re.sub(r" \[[^]]*\]$", "", found[name].help)
            found[name] = dataclasses.replace(found[name], help=f"{help} [{text}]")
        return found


@dataclass(frozen=True)
class OfKind:
    """`**options` of a verb are those of the members that an argument names; without a name, those of all members.

    plural, package: of the registry, whose sources are read; find: `package.module:NAME` of what finds a member by its name
    argument: the positional argument or the option with the name, or names separated by commas
    """

    plural: str
    package: str
    find: str
    argument: str = "kind"
    also: str = ""  # another package whose members are accepted, as cue operators do for makers

    def knows(self, name: str) -> bool:
        """Whether a member of that name is declared, or could be imported."""
        inside = self._inside()
        return name in inside or bool(TYPED.fullmatch(name)) or name in self._outside(inside)

    def options(self, named: Sequence[str]) -> dict[str, Option]:
        """Those of the named members; without a name, those of all, entry points included."""
        inside = self._inside()
        found: dict[str, Option] = {}
        for name in named or [*inside, *self._outside(inside)]:
            own = _declared_options(inside[name], self.plural) if name in inside else {}
            found |= own
            if not own and (self.also or name not in inside):
                found |= options_of(attribute(self.find)(name))
        return found

    def _inside(self) -> dict[str, Declared]:
        """What the files declare; a member of `package` replaces one of `also`."""
        others = declared_members(self.also) if self.also else {}
        return {**others, **declared_members(self.package)}

    def _outside(self, inside: Mapping[str, Declared]) -> set[str]:
        """The names of entry points."""
        plurals = [self.plural, *([self.also.rpartition(".")[2]] if self.also else [])]
        return {name for plural in plurals for name in outside(plural, inside)}


def _declared_options(member: Declared, plural: str) -> dict[str, Option]:
    """The options of a member of cuewise's own, from its source."""
    if member.options:
        return {n: Option(n, str | None, None, text, f"single {plural}") for n, text in member.options}
    source = class_source(member.module, member.attribute)
    found = {}
    for f in source.options().values() if source else ():
        found[f.name] = Option(f.name, _type(f.type), _literal(f.default), f.help)
    return found


def _type(text: str) -> Any:
    """A type as cuewise's own source writes it; text where it has a name of its own: the member converts it again."""
    try:
        return eval(text, {"Sequence": Sequence, "Path": Path, "Any": Any})
    except NameError:
        return str


def _literal(text: str | None) -> Any:
    if text is None:
        return REQUIRED
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text


def attribute(where: str) -> Any:
    """What `package.module:Name` of cuewise itself names."""
    module, _, name = where.partition(":")
    return attrgetter(name)(importlib.import_module(module))


def options_of(declaration: Any) -> dict[str, Option]:
    """The options of a function (its keyword-only parameters), of a class (its fields), or of what an object `declares`.

    An object may also have `options`, things with a `name` and a `help`; their values are text.
    """
    listed = getattr(declaration, "options", None)
    if isinstance(listed, tuple):
        return {o.name: Option(o.name, str | None, None, o.help) for o in listed}
    declares = getattr(declaration, "declares", declaration)
    if isinstance(declares, property):
        declares = declaration().declares
    return _options_of(
        type(declares) if dataclasses.is_dataclass(declares) and not inspect.isclass(declares) else declares
    )


@cache
def _options_of(declaration: Any) -> dict[str, Option]:
    hints = get_type_hints(declaration, include_extras=True)
    found: dict[str, Option] = {}
    for name, default in _defaults(declaration).items():
        hint = hints[name]
        texts = [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, str)]
        if texts:
            kind, commas = bare(hint), COMMAS in hint.__metadata__
            settings = next((m for m in hint.__metadata__ if isinstance(m, OfKind)), None)
            found[name] = Option(
                name, kind, default, texts[0], "".join(texts[1:2]), commas, settings, _bounds(hint)
            )
    return found


def _defaults(declaration: Any) -> dict[str, Any]:
    if inspect.isclass(declaration) and dataclasses.is_dataclass(declaration):
        return {f.name: _default(f) for f in dataclasses.fields(declaration)}
    if inspect.isclass(declaration):
        hints = get_type_hints(declaration)
        return {name: getattr(declaration, name, REQUIRED) for name in hints}
    parameters = inspect.signature(declaration).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return REQUIRED if field.default is dataclasses.MISSING else field.default


def bare(hint: Any) -> Any:
    """A type without the help around it."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def alternatives(hint: Any) -> tuple[Any, ...]:
    """`int | None` → (int,); None is left out."""
    hint = bare(hint)
    union = get_origin(hint) in (Union, types.UnionType)
    return tuple(k for k in get_args(hint) if k is not type(None)) if union else (hint,)


def checked(declaration: Any, given: Mapping[str, Any], what: str = "") -> dict[str, Any]:
    """The given values, converted; None is "not given". Unknown names are errors.

    what: who takes them, for the error, e.g. "probe linear"
    """
    known = options_of(declaration)
    found = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in known:
            raise no_option(name, known, what or getattr(declaration, "name", ""))
        found[name] = _given(known[name], value)
    return found


def _given(option: Option, value: Any) -> Any:
    found = convert(option.type, value, option.flag, commas=option.commas)
    if option.bounds is not None:
        option.bounds.check(found, option.flag)
    return found


def within_bounds(verb: Callable[P, R]) -> Callable[P, R]:
    """The verb, which refuses a number outside the bounds of its option, from the shell and from Python."""

    @wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, option in options_of(verb).items():
            if option.bounds is not None and kwargs.get(name) is not None:
                kwargs[name] = _given(option, kwargs[name])
        return verb(*args, **kwargs)

    return call


def no_option(name: str, known: Mapping[str, Any], what: str) -> UserError:
    """The error for an option that nothing reads."""
    flags = {n: flag_of(n) for n in known}
    near = nearest(name, known)
    hint = f"did you mean {flags[near]}?" if near else f"it takes {', '.join(flags.values()) or 'none'}"
    return UserError(f"{flag_of(name)} has no meaning for {what}: {hint}")


def flag_of(name: str) -> str:
    """ "dry_run" → "--dry-run"; "with_" → "--with", which Python keeps for itself."""
    return "--" + name.rstrip("_").replace("_", "-")


def _bounds(hint: Any) -> Bounds | None:
    return next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Bounds)), None)


def convert(hint: Any, value: Any, where: str, *, commas: bool = False) -> Any:
    """A value from YAML, Python or the shell as the declared type; `where` is what the error names."""
    found = _converted(hint, value, where, commas)
    if (bounds := _bounds(hint)) is not None:
        bounds.check(found, where)
    return found


def _converted(hint: Any, value: Any, where: str, commas: bool) -> Any:
    if value is None and type(None) in get_args(bare(hint)):
        return None
    kinds = alternatives(hint)
    listed = _listed(kinds)
    if listed is not None:
        items = value if isinstance(value, list | tuple) else [value]
        if commas:
            items = [
                part for v in items for part in (v.split(",") if isinstance(v, str) else [v]) if part != ""
            ]
        return [convert(get_args(listed)[0], v, where) for v in items]
    if any(isinstance(value, k) for k in kinds if isinstance(k, type)) and (
        not isinstance(value, bool) or bool in kinds
    ):
        return _finite(value, where)
    if any(get_origin(k) is dict for k in kinds):
        return value
    for kind in kinds:
        found = _simple(kind, value)
        if found is not None:
            return _finite(found, where)
    if kinds and all(k in (int, float, str, bool) for k in kinds):
        raise UserError(f"{where} must be {' or '.join(_WORDS[k] for k in kinds)}, not {value!r}")
    return value


def _listed(kinds: tuple[Any, ...]) -> Any | None:
    return next((k for k in kinds if get_origin(k) in (list, tuple, Sequence)), None)


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _finite(value: Any, where: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{where} {value}: give a finite number")
    return value


def _simple(kind: Any, value: Any) -> Any | None:
    """The value as that type where nothing is lost: 1 → 1.0, "1e-4" → 1e-4 (YAML reads it as text), 2 → "2", a path → text."""
    if isinstance(value, bool):
        return None
    if kind is float and isinstance(value, Real | str):
        return _number(float, value)
    if kind is int and isinstance(value, Integral | str):
        return _number(int, value)
    if kind is str and isinstance(value, Real | PathLike):
        return str(value)
    return None


def _number(kind: Callable[[Any], Any], value: Any) -> Any | None:
    try:
        return kind(value)
    except ValueError:
        return None


def workers_asked(given: str | int) -> int | None:
    """--workers as a number, None for auto."""
    if given == "auto":
        return None
    if not str(given).isdigit():
        raise UserError(f"--workers {given}: auto, or a number from 0 on")
    return int(given)
