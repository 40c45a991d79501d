"""Kernels are compiled ahead: beside the import of torch in a first run, or all of them by `python -m cuewise.ahead`.

The work is done in a process of its own, which imports numba but not torch and leaves its result in the cache of kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from cuewise.compiled import mark


def views() -> None:
    """What the published recipes of views need: crop, flip, colour, blur, solarise."""
    import numpy as np

    from cuewise.views import blur_kernel, color_kernel, resize_kernel, rotate_kernel

    image, out = np.zeros((32, 32, 3), np.uint8), np.zeros((16, 16, 3), np.uint8)
    scratch = np.empty(1 << 14, np.uint8)
    one = np.float32(1)
    resize_kernel.resize(image, (0, 0, 32, 32), (16, 16), (0, 0), True, scratch, out)
    color_kernel.color(out.reshape(16, 48), (1, 2, 3, 4), (one, one, one), 1, True)
    blur_kernel.blur(out.reshape(16, 48), 1.0, scratch)
    color_kernel.solarize(out.reshape(-1), 128)
    rotate_kernel.turned(out, 1)


def shapes() -> None:
    """The embedded images."""
    from cuewise.data.shapes import ShapeSet

    ShapeSet("scenes", n=2, size=16).batch([0, 1])


GROUPS: dict[str, Callable[[], None]] = {"views": views, "shapes": shapes}


def skip_init(*packages: str) -> None:
    """Let modules of these packages be imported without the packages' __init__, which imports torch."""
    for name in packages:
        module = ModuleType(name)
        module.__path__ = [str(Path(__file__).parent.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module


def main(groups: Sequence[str]) -> None:
    skip_init("cuewise.data", "cuewise.views")
    for group in groups or GROUPS:
        GROUPS[group]()
        mark(group).touch()


if __name__ == "__main__":
    main(sys.argv[1:])
