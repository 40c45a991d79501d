"""One file a method: its views, heads, state, loss, defaults and citation."""

from cuewise.methods.method import (
    Alone,
    Comm,
    Method,
    MethodSettings,
    Negatives,
    Shown,
    Step,
    method,
    methods,
    negative_role,
)

__all__ = [
    "Alone",
    "Comm",
    "Method",
    "MethodSettings",
    "Negatives",
    "Shown",
    "Step",
    "method",
    "methods",
    "negative_role",
]
