"""All 75 ImageNet-C variants of a 224-pixel image: cuewise against the imagecorruptions package, one thread.

    NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/corruptions.py [rounds]

Both run in turn in one process, severity by severity; ratios are medians over rounds. imagecorruptions 1.1.2 does not run
with today's numpy, scipy and scikit-image: what they removed is put back in memory, its own code is left as it is.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

from cuewise.cues.corruptions import CORRUPTIONS, SEVERITIES, corrupt, corruption_rng, variants
from row import row

warnings.filterwarnings("ignore")


def peer() -> Any:
    """The package, with the names that newer libraries removed."""
    found = importlib.util.find_spec("imagecorruptions")
    if found is None or found.origin is None:
        sys.exit("pip install imagecorruptions, then run this again")
    root = os.path.dirname(found.origin)
    resources = types.ModuleType("pkg_resources")
    resources.resource_filename = lambda _, path: os.path.join(root, path)  # type: ignore[attr-defined]
    sys.modules.setdefault("pkg_resources", resources)
    if not hasattr(np, "float_"):
        np.float_ = np.float64  # type: ignore[attr-defined]  # noqa: NPY201
    import scipy.ndimage

    interpolation = types.ModuleType("scipy.ndimage.interpolation")
    interpolation.map_coordinates = scipy.ndimage.map_coordinates  # type: ignore[attr-defined]
    sys.modules.setdefault("scipy.ndimage.interpolation", interpolation)
    import imagecorruptions
    from skimage.filters import gaussian

    def blurred(image: Any, sigma: Any = 1, multichannel: bool = False, **rest: Any) -> Any:
        return gaussian(image, sigma, channel_axis=-1 if multichannel else None, **rest)

    imagecorruptions.corruptions.gaussian = blurred
    return imagecorruptions


def picture(side: int, rng: np.random.Generator) -> Any:
    """A natural-looking image: coloured 1/f noise with some hard edges."""
    scales = (4, 8, 16, 32, 64, 128)
    layers = [cv2.resize(rng.random((n, n, 3), dtype=np.float32), (side, side)) * 256 / n for n in scales]
    image = sum(layers[1:], layers[0])
    image = (image - image.min()) / np.ptp(image) * 255
    for _ in range(12):
        y, x = rng.integers(0, side, 2)
        cv2.rectangle(
            image, (int(x), int(y)), (int(x) + 40, int(y) + 30), rng.uniform(0, 255, 3).tolist(), -1
        )
    return image.astype(np.uint8)


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()  # processor time: other work on the machine does not count
    call()
    return time.process_time() - start


def all_variants(image: Any, seed: int) -> None:
    for _ in variants(image, seed=seed, name="image"):
        pass


def main(rounds: int) -> None:
    cv2.setNumThreads(1)
    package = peer()
    rng = np.random.default_rng(0)
    image = picture(224, rng)
    names = [c.name for c in CORRUPTIONS.values()]
    for name in names:  # compile, fill the tables
        for severity in SEVERITIES:
            corrupt(image, name, severity, rng)
    theirs: dict[str, list[float]] = {name: [] for name in names}
    ours: dict[str, list[float]] = {name: [] for name in names}
    together: list[float] = []
    for turn in range(rounds):
        for name in names:
            a = b = 0.0
            for severity in SEVERITIES:
                key = corruption_rng(turn, "image", name, severity)
                b += sum(seconds(lambda: corrupt(image, name, severity, key)) for _ in range(5)) / 5  # noqa: B023
                a += seconds(lambda: package.corrupt(image, severity, name))  # noqa: B023
            theirs[name].append(a)
            ours[name].append(b)
        together.append(float(np.median([seconds(lambda: all_variants(image, turn)) for _ in range(5)])))  # noqa: B023
    report(theirs, ours, together)


def report(theirs: dict[str, list[float]], ours: dict[str, list[float]], together: list[float]) -> None:
    print("| type | imagecorruptions ms | cuewise ms | ratio |\n| --- | --- | --- | --- |")
    for name in theirs:
        a, b = np.array(theirs[name]) / 5e-3, np.array(ours[name]) / 5e-3
        mark = "" if CORRUPTIONS[name].in_mce else " (extra)"
        print(f"| {name}{mark} | {np.median(a):.2f} | {np.median(b):.3f} | {np.median(a / b):.1f} |")
    counted = [name for name in theirs if CORRUPTIONS[name].in_mce]
    total = np.sum([theirs[name] for name in counted], axis=0)
    mine = np.array(together)
    print(
        f"| all 75 variants of an image | {np.median(total) * 1e3:.0f} | {np.median(mine) * 1e3:.1f} "
        f"| {np.median(total / mine):.0f} |"
    )
    row(
        "all 75 corruption variants of a 224 px image",
        "imagecorruptions",
        total / mine,
        goal="≥ 180",
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
