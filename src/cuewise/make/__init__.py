"""Image set → image set: filtered, synthesised, corrupted; resumable, on this machine or on a cluster.

The room has the name of its verb, and importing it binds `cuewise.make` to the room; so the room answers as the verb.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

_verb: Any = sys.modules["cuewise"].make  # what the name meant before this import


class _Room(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> dict[str, Any]:
        result: dict[str, Any] = _verb(*args, **options)
        return result


sys.modules[__name__].__class__ = _Room
__signature__ = inspect.signature(_verb)
