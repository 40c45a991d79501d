"""What a run is made of: options from the shell, Python and YAML, checked, completed and written down.

Reading the fields imports neither torch nor the methods: `cuewise pretrain --help` answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuewise.config.fields import Config, Labels, Loop, Optim, ViewSettings
from cuewise.config.layers import FREE_TO_CHANGE, difference, dotted, merge, read_yaml, refuse_code

if TYPE_CHECKING:
    from cuewise.config.resolving import complete, resolve

__all__ = [
    "FREE_TO_CHANGE",
    "Config",
    "Labels",
    "Loop",
    "Optim",
    "ViewSettings",
    "complete",
    "difference",
    "dotted",
    "merge",
    "read_yaml",
    "refuse_code",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name in ("complete", "resolve"):
        import importlib

        return getattr(importlib.import_module("cuewise.config.resolving"), name)
    raise AttributeError(name)
