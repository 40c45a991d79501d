"""Lightning Fabric, imported without torchmetrics.

Fabric asks at its import which version of torchmetrics is installed, and imports it to ask; torchmetrics imports scipy and
transformers where they are installed. That is a quarter of the time until a command of cuewise begins.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType


@contextmanager
def only_its_version(package: str) -> Iterator[None]:
    """Inside, an import of the package gives a module that knows its version and nothing else; after it, the package."""
    try:
        found = version(package)
    except PackageNotFoundError:
        yield
        return
    stand_in = ModuleType(package)
    stand_in.__dict__["__version__"] = found
    present = sys.modules.setdefault(package, stand_in)
    try:
        yield
    finally:
        if present is stand_in:
            del sys.modules[package]


with only_its_version("torchmetrics"):
    from lightning_fabric import Fabric
    from lightning_fabric.strategies.ddp import DDPStrategy

__all__ = ["DDPStrategy", "Fabric"]
