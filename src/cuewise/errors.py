"""Errors that a user can fix: what is wrong, where, and what to do, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can fix; the shell prints its one line and exits with 2."""


class Interrupted(Exception):
    """The user asked to stop, and everything worth keeping has been written; exits with 130."""


def unknown(what: str, name: str, known: Iterable[str], more: str = "") -> UserError:
    """The error for a name that is not one of `known`: the nearest name, then all of them.

    what: how the error begins, e.g. "no method"; more: a sentence at its end
    """
    names = list(known)
    near = nearest(name, names)
    hint = f"did you mean {near}? " if near else ""
    return UserError(f"{what} {name!r}; {hint}there are: {', '.join(names) or 'none'}{more}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, whatever its case."""
    by_lower = {k.lower(): k for k in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.66)
    return by_lower[found[0]] if found else None
