"""--dry-run: time and space of a set, measured on a sample of it; nothing is written."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

from cuewise.errors import UserError
from cuewise.makers.engine import WorkOrder
from cuewise.makers.preview import spread
from cuewise.makers.render import Renderer
from cuewise.progress import clock

SAMPLE = 24
ENOUGH_SECONDS = 10.0


def estimate(order: WorkOrder, wanted: int, workers: int) -> dict[str, Any]:
    """Make some images, spread over the set, in one process; scale up to all of them and all workers."""
    renderer = Renderer(order.spec)
    times, sizes, broken = [], [], []
    for i in spread(wanted, SAMPLE):
        began = time.perf_counter()
        made = order.make(renderer, i)
        if made.broken is None:
            times.append(time.perf_counter() - began)
            sizes.append(sum(len(data) for _, data in made.files))
        else:
            broken.append(f"{order.layout.names(i)[0]}: {made.broken}")
        if sum(times) > ENOUGH_SECONDS and len(times) >= 3:
            break
    if not times:
        raise UserError(f"none of a sample of {len(broken)} images could be made; the first is {broken[0]}")
    each, size = sum(times) / len(times), sum(sizes) / len(sizes)
    return {
        "dry_run": True,
        "folder": str(order.store.folder),
        "kind": order.spec.kind,
        "images": wanted,
        "files": wanted * order.layout.outputs,
        "sample": len(times),
        "seconds_per_image": each,
        "workers": workers,
        "seconds": wanted * each / max(workers, 1),
        "bytes": round(wanted * size),
        "free_bytes": free_bytes(order.store.folder),
    }


def say(result: dict[str, Any]) -> None:
    """The estimate for a person."""
    each = result["seconds_per_image"]
    lines = [
        f"{result['kind']}: {result['images']} images → {result['files']} files in {result['folder']}",
        f"  time   {clock(result['seconds'])} with {result['workers']} workers "
        f"({1000 * each:.1f} ms per image on one, measured on {result['sample']})",
        f"  space  {human(result['bytes'])} ({human(result['bytes'] / max(result['files'], 1))} per file), "
        f"free {human(result['free_bytes'])}",
    ]
    if result["bytes"] > result["free_bytes"]:
        lines.append("  the disk is too small for it: choose another, --format jpeg or --limit")
    print("\n".join(lines), file=sys.stderr, flush=True)


def free_bytes(folder: Path) -> int:
    """Free bytes on the disk where the folder is or would be."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def human(size: float) -> str:
    """1234567 → '1.2 MB'."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
