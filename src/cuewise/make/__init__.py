"""Image set → image set: filtered, synthesised, corrupted; resumable, on this machine or on a cluster.

The room has the name of its verb. Importing it binds `cuewise.make` to the room, which therefore is the verb, too.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> dict[str, Any]:
        from cuewise.verbs import make

        return make(*args, **options)


sys.modules[__name__].__class__ = _Room
