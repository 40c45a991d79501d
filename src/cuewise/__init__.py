"""cuewise: choose which visual cues an encoder learns; see which cues any vision model relies on.

Names are imported when they are used: `import cuewise` and `cuewise --help` do not wait for torch. The stub beside this
file, written by `python -m cuewise.stub`, shows editors and type checkers every verb with all its options.
"""

from importlib import import_module
from typing import Any

from cuewise.compiled import keep_kernels
from cuewise.compiler import put_off
from cuewise.verbs import VERBS

keep_kernels()
put_off()

__version__ = "0.2.0"
_FROM = {
    **{name: (verb.__module__, verb.__name__) for name, verb in VERBS.items()},
    "Interrupted": ("cuewise.errors", "Interrupted"),
    "UserError": ("cuewise.errors", "UserError"),
    "Result": ("cuewise.results", "Result"),
    "Encoder": ("cuewise.encoders", "Encoder"),
    "Score": ("cuewise.scores", "Score"),
    "load_encoder": ("cuewise.encoders", "load_encoder"),
    "open_data": ("cuewise.data", "open_data"),
    "transforms": ("cuewise.transforms", ""),
}
__all__ = sorted(set(_FROM) - {"list"})  # `from cuewise import *` keeps Python's own list


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module 'cuewise' has no attribute {name!r}")
    module, attribute = _FROM[name]
    found = getattr(import_module(module), attribute) if attribute else import_module(module)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM})
