"""One file per method: its views, heads, state, loss, defaults and citation."""

from cuewise.methods.method import (
    FACTS,
    METHODS,
    Comm,
    Method,
    MethodSettings,
    Negatives,
    Setup,
    SingleProcess,
    Step,
    ViewSpec,
    method,
    methods,
)

__all__ = [
    "FACTS",
    "METHODS",
    "Comm",
    "Method",
    "MethodSettings",
    "Negatives",
    "Setup",
    "SingleProcess",
    "Step",
    "ViewSpec",
    "method",
    "methods",
]
