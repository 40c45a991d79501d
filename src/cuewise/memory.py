"""Memory that a step has freed is kept for the next one, where the C library allows it; work without the garbage collector.

By default glibc gives every large block back to the system and takes a new one, whose pages fault one by one when they are
first written: with 1.6 GB of activations per step that is a seventh of a step's processor time.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterator

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of mallopt's parameters in malloc.h
SETTINGS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without the cyclic garbage collector, for work that makes many small objects and no cycles.

    Every few thousand of them it would walk through all that was imported: a fifth of a second with torch.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def keep_freed() -> bool:
    """Tell glibc to keep freed blocks, unless the user's environment says what it should do; whether it will."""
    if not sys.platform.startswith("linux") or any(name in os.environ for name in SETTINGS):
        return False
    with contextlib.suppress(OSError, AttributeError):  # another C library has no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(MMAP_THRESHOLD, 1 << 30) and mallopt(TRIM_THRESHOLD, (1 << 31) - 1))
    return False
