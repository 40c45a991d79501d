"""How kernels of views and of the embedded shapes are compiled: fast code, and few seconds until the first image.

Wrappers cost a third of the time that a small function takes to compile: none is made for first-class use, and parts, which
only other kernels call, get none for Python either.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_COMMON: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
kernel: Any = njit(**_COMMON)  # Python may call it
part: Any = njit(**{**_COMMON, "no_cpython_wrapper": True})  # only kernels call it
