"""The public face: the same words and arguments in the shell and in Python.

A verb is a file here with a function of the file's name: `cuewise VERB … --some-option X` is `cuewise.VERB(…, some_option=X)`.
The help of an option and the bounds of a number are part of its type, the lines of the docstring that begin with "cuewise" are
the examples of --help, and TOPIC says where `cuewise --help` lists it. A new verb is a new file; heavy imports wait inside it
until it is called.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module

from cuewise.options import within_bounds
from cuewise.results import Result

TOPICS = ("start", "train", "measure", "images", "share")  # in the order of --help


def found() -> dict[str, Callable[..., Result]]:
    """Every verb by its name in the shell, in the order of topics; `list_` is "list"."""
    verbs = []
    for info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{info.name}")
        if hasattr(module, info.name):
            verb = within_bounds(getattr(module, info.name))
            setattr(module, info.name, verb)  # for the shell and for Python
            verbs.append((TOPICS.index(module.TOPIC), info.name.rstrip("_"), verb))
    return {name: verb for _, name, verb in sorted(verbs, key=lambda verb: verb[:2])}


VERBS = found()


def by_topic() -> dict[str, list[str]]:
    """topic → names of its verbs."""
    topics = {name: sys.modules[verb.__module__].TOPIC for name, verb in VERBS.items()}
    return {topic: [name for name in VERBS if topics[name] == topic] for topic in TOPICS}
