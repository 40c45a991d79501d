"""torch's compiler is imported when something is compiled, not along with libraries that only mention it.

torchvision asks it which devices it knows, timm which functions it must leave alone, Lightning Fabric whether a module is
compiled. To ask, they import it, which is a third of the time until a command begins. While one of the files below is imported,
it finds a stand-in that asks the compiler itself when the question comes up. A release that wants more of the compiler at its
import gets it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

COMPILER = "torch._dynamo"
ASKING = ("torchvision.ops.roi_align", "timm.layers.typing", "lightning_fabric.wrappers")


def put_off() -> None:
    """To be called before the libraries are imported; without effect on those that are."""
    if not any(isinstance(finder, CompilerFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, CompilerFinder())


class CompilerFinder(MetaPathFinder):
    """Finds the files that ask, and runs them with the stand-in."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in ASKING or COMPILER in sys.modules:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.exec_module = with_stand_in(loader.exec_module)
        return spec


def with_stand_in(run: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def run_it(module: ModuleType) -> None:
        try:
            with stand_in():
                run(module)
        except ImportError:
            run(module)

    return run_it


@contextmanager
def stand_in() -> Iterator[None]:
    """Inside, `torch._dynamo` is a module that knows what the files ask for, and nothing else."""
    import torch

    theirs: Any = torch
    compiler, utils = ModuleType(COMPILER), ModuleType(f"{COMPILER}.utils")
    compiler.__dict__.update(__path__=[], utils=utils, OptimizedModule=OptimizedModule)
    utils.__dict__.update(is_compile_supported=is_compile_supported)
    own = {m.__name__: m for m in (compiler, utils)}
    disable = theirs.compiler.disable
    sys.modules.update(own)
    # torch's own form, which imports the compiler at the first call of the function
    theirs.compiler.disable = getattr(theirs, "_disable_dynamo", disable)
    try:
        yield
    finally:
        theirs.compiler.disable = disable
        for name in own:
            if sys.modules.get(name) is own[name]:
                del sys.modules[name]


class _AsCompiler(type):
    def __instancecheck__(cls, x: Any) -> bool:
        compiler = sys.modules.get(COMPILER)  # nothing is compiled before it is imported
        return compiler is not None and isinstance(x, compiler.OptimizedModule)


class OptimizedModule(metaclass=_AsCompiler):
    """What the compiler makes of a module."""


def is_compile_supported(device: str) -> Any:
    from torch._dynamo.utils import is_compile_supported

    return is_compile_supported(device)
