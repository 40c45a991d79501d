"""A process that runs jobs: one JSON line in, one JSON line out; it stops after a checkpoint when its parent is gone."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import traceback
from typing import Any

from cuewise.errors import Interrupted, UserError


def main() -> int:
    """Serve until standard input ends. Everything that jobs print goes to standard error."""
    import torch

    from cuewise.studies.jobs import Job, run_job
    from cuewise.studies.labs import Lab
    from cuewise.studies.timing import time_job

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    out, sys.stdout = sys.stdout, sys.stderr
    lines = listen()
    while (line := lines.get()) is not None:
        asked = json.loads(line)
        lab = Lab(**asked.pop("lab"))
        seconds = asked.pop("time", False)
        job = Job(**asked)
        try:
            answer: dict[str, Any] = {"timed": time_job(job)} if seconds else {"measured": run_job(job, lab)}
        except Interrupted:
            return 130
        except UserError as error:
            answer = {"error": str(error), "mend": True}
        except Exception:
            answer = {"error": traceback.format_exc(), "mend": False}
        print(json.dumps(answer), file=out, flush=True)
    return 0


def listen() -> queue.Queue[str | None]:
    """Lines of standard input as they come. Its end means that the parent is gone: stop as after Ctrl-C."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers Ctrl-C
    threading.Thread(target=read, daemon=True).start()
    return lines


if __name__ == "__main__":
    sys.exit(main())
