"""Members of a kind (methods, cues, audits, …): found in the files of a package, in installed packages, or by a typed path.

    METHODS = Registry[type[Method]]("method", "cuewise.methods", subclasses_of(Method))

    METHODS.all()                     every method by name, imported
    METHODS.get("moco")               the file that declares it is the only one imported
    METHODS.get("my.module:Mine")     a user's own, from the working folder or any installed package
    METHODS.summaries()               name → one line, read from the sources without importing them

A member is a class or a module-level object with a `name` and a `summary`, both written as literals, in one of these forms:

    class MoCo(Method):               # `name` in the class itself: an inherited name does not count
        name = "moco"
        summary = "a queue of negatives and a momentum encoder"

    STUDY = Study("ns-alpha", "the weight of texture negatives", …)       # or name=…, summary=…

    @cue("bilateral", "smooth fine texture, keep edges")                   # a decorator that returns the member
    def bilateral_cue(image, rng): …

A new member is a new file in the package: nothing else lists it. An installed package adds members by entry points:

    [project.entry-points."cuewise.methods"]
    mine = "my_package.module:Mine"   # under the member's own name
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from operator import is_
from types import ModuleType
from typing import Any, Generic, TypeVar

from cuewise.declarations import Declared, declared_at, declared_in, source_file
from cuewise.errors import UserError, unknown

T = TypeVar("T")
TYPED = re.compile(r"(?P<module>[A-Za-z_]\w*(\.\w+)*):(?P<name>[A-Za-z_]\w*)")


class Registry(Generic[T]):
    """All members of a kind; `is_member` says whether an object is one, `plural` is "KINDs" unless given."""

    def __init__(
        self, kind: str, package: str, is_member: Callable[[Any], bool], plural: str | None = None
    ) -> None:
        self.kind, self.package, self.is_member = kind, package, is_member
        self.plural = plural or f"{kind}s"
        # module → all that it holds, and its members
        self._found: dict[ModuleType, tuple[list[Any], list[Any]]] = {}

    def all(self) -> dict[str, T]:
        """Members by name, in alphabetical order; a broken entry point is left out with a warning."""
        found: dict[str, T] = {}
        for module in member_modules(self.package):
            for member in self.members(importlib.import_module(module)):
                other = found.setdefault(member.name, member)
                if other is not member:
                    raise ValueError(f"two {self.plural} are called {member.name!r}, one in {module}")
        for name, point in outside(self.plural, found).items():
            try:
                found[name] = self._load(point)
            except UserError as error:
                warnings.warn(str(error), stacklevel=2)
        return dict(sorted(found.items()))

    def get(self, name: str) -> T:
        """The member of that name, or the one that `package.module:Name` imports."""
        if TYPED.fullmatch(name):
            return self._checked(import_typed(name, self.kind), name)
        inside = declared_members(self.package)
        if name in inside:
            for member in self.members(importlib.import_module(inside[name].module)):
                if member.name == name:
                    return member
        points = outside(self.plural, inside)
        if name in points:
            return self._load(points[name])
        found = self.all()  # a member whose name is not a literal, or none
        if name not in found:
            raise unknown(f"no {self.kind}", name, found, "; your own is package.module:Name")
        return found[name]

    def summaries(self) -> dict[str, str]:
        """name → one line, without importing any member."""
        return summaries(self.plural, self.package)

    def members(self, module: ModuleType) -> list[Any]:
        """The members that a module defines."""
        values = list(vars(module).values())
        known, own = self._found.get(module, ([], []))
        if len(known) != len(values) or not all(map(is_, known, values)):  # new, or changed since
            named = [x for x in values if _named(x) and self.is_member(x)]
            own = [x for x in named if not inspect.isclass(x) or x.__module__ == module.__name__]
            self._found[module] = values, own
        return own

    def _load(self, point: EntryPoint) -> T:
        where = f"{point.value} (entry point {point.name!r} of {point.dist.name if point.dist else '?'})"
        try:
            member = point.load()
        except Exception as error:
            raise UserError(
                f"cannot import the {self.kind} {where}: {type(error).__name__}: {error}"
            ) from error
        found: Any = self._checked(member, where)
        if found.name != point.name:
            raise UserError(f"{where} calls itself {found.name!r}: the two names must be the same")
        return found

    def _checked(self, member: Any, where: str) -> T:
        if not self.is_member(member) or not _named(member):
            needs = f"`cuewise check {where}` says what a {self.kind} needs"
            raise UserError(f"{where} is not a {self.kind} with a name and a summary: {needs}")
        return member


def subclasses_of(base: type) -> Callable[[Any], bool]:
    """Members are the concrete classes below `base`."""
    return lambda x: (
        inspect.isclass(x) and issubclass(x, base) and x is not base and not inspect.isabstract(x)
    )


def instances_of(base: type) -> Callable[[Any], bool]:
    """Members are objects of the class `base`."""
    return lambda x: isinstance(x, base)


def summaries(plural: str, package: str) -> dict[str, str]:
    """name → one line of every member that the package's files and entry points declare; imports none of them."""
    found = {name: d.summary for name, d in declared_members(package).items()}
    for name, point in outside(plural, found).items():
        declared = declared_at(point.module, point.attr)
        found[name] = f"{declared.summary if declared else ''} ({point.value})".strip()
    return dict(sorted(found.items()))


def outside(plural: str, taken: Any = ()) -> dict[str, EntryPoint]:
    """Entry points of `cuewise.PLURAL` by name; a name of cuewise's own cannot be taken."""
    found: dict[str, EntryPoint] = {}
    for point in installed(f"cuewise.{plural}", places()):
        if point.name in taken or found.setdefault(point.name, point).value != point.value:
            warnings.warn(f"entry point {point.name} = {point.value}: the name is taken", stacklevel=3)
    return found


def places() -> tuple[tuple[str, int], ...]:
    """Where packages are looked for, each with the time of its last change; "" is the working folder."""
    folders = map(os.path.abspath, sys.path)
    return tuple((folder, os.stat(folder).st_mtime_ns) for folder in folders if os.path.isdir(folder))


@lru_cache(maxsize=32)
def installed(group: str, places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """The entry points of a group. Reading those of every package takes as long as a training step: once is enough while
    nothing is installed or removed."""
    return tuple(entry_points(group=group))


def import_typed(spec: str, what: str) -> Any:
    """What `package.module:Name` names, also in the working folder."""
    match = TYPED.fullmatch(spec)
    if match is None:
        raise UserError(f"{what} {spec!r}: write package.module:Name")
    module = import_users_module(match["module"], f"the {what} {spec}")
    if not hasattr(module, match["name"]):
        raise unknown(
            f"{match['module']} has no", match["name"], [n for n in vars(module) if not n.startswith("_")]
        )
    return getattr(module, match["name"])


def import_users_module(name: str, purpose: str) -> ModuleType:
    """A module that the user named, also one in the working folder."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)  # it stays, so that worker processes find the module too
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise UserError(f"cannot import {name} for {purpose}: {type(error).__name__}: {error}") from error


def _named(x: Any) -> bool:
    own = vars(x) if inspect.isclass(x) else {n: getattr(x, n, None) for n in ("name", "summary")}
    return isinstance(own.get("name"), str) and isinstance(own.get("summary"), str)


def member_modules(package: str) -> list[str]:
    """The modules of a package, none of them imported."""
    file = source_file(package)
    assert file is not None, package
    return [f"{package}.{info.name}" for info in pkgutil.iter_modules([str(file.parent)])]


@cache
def declared_members(package: str) -> dict[str, Declared]:
    """What the files of a package declare, by name; none of them is imported."""
    return {d.name: d for module in member_modules(package) for d in declared_in(module)}
