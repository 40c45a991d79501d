"""One file per method: its views, heads, state, loss, defaults and citation."""

from cuewise.methods.method import (
    FACTS,
    METHODS,
    Alone,
    Comm,
    Method,
    MethodSettings,
    Negatives,
    Setup,
    Step,
    ViewSpec,
    method,
    methods,
)

__all__ = [
    "FACTS",
    "METHODS",
    "Alone",
    "Comm",
    "Method",
    "MethodSettings",
    "Negatives",
    "Setup",
    "Step",
    "ViewSpec",
    "method",
    "methods",
]
