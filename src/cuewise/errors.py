"""Errors that a user can mend: what is wrong, where, and what to do, in one line."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend; the shell prints its one line and exits with 2."""


class Interrupted(Exception):
    """The user asked to stop, and everything worth keeping has been written; exits with 130."""
