"""Worker processes end with the process that started them, also when that one is killed."""

from __future__ import annotations

import os
import threading
import time

EVERY_SECONDS = 1.0


def end_with_parent() -> None:
    """Watch the parent from a thread; when it is gone, end this process at once, whatever its main thread waits for."""
    threading.Thread(target=_watch, args=(os.getppid(),), name="end-with-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(EVERY_SECONDS)
    os._exit(1)
