"""A process that runs jobs: one JSON line in, one JSON line out. When its parent ends, it writes a checkpoint and ends."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from typing import Any

from cuewise.errors import Interrupted, UserError

PATIENCE = 100.0  # seconds to write a checkpoint after the end of the parent


def main() -> int:
    """Serve until standard input ends. Everything that jobs print goes to standard error."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    out, sys.stdout = sys.stdout, sys.stderr
    lines = listen()
    while (line := lines.get()) is not None:
        try:
            answer = serve(line)
        except Interrupted:
            return 130
        print(json.dumps(answer), file=out, flush=True)
    return 0


def serve(line: str) -> dict[str, Any]:
    """One job: what was measured, seconds per image, or the error and whether it is the user's to fix."""
    from cuewise.studies.jobs import ArmJob, run_job
    from cuewise.studies.labs import Lab
    from cuewise.studies.timing import time_job

    asked = json.loads(line)
    lab, only_time = Lab(**asked.pop("lab")), asked.pop("time", False)
    job = ArmJob(**asked)
    try:
        return {"timed": time_job(job)} if only_time else {"measured": run_job(job, lab)}
    except Interrupted:
        raise
    except UserError as error:
        return {"error": str(error), "user_error": True}
    except Exception:
        return {"error": traceback.format_exc(), "user_error": False}


def listen() -> queue.Queue[str | None]:
    """Lines of standard input as they come. Its end means that the parent is gone: stop as after Ctrl-C."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE)
        os._exit(1)  # something waits for ever: nothing is left behind

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers Ctrl-C
    threading.Thread(target=read, daemon=True).start()
    return lines


if __name__ == "__main__":
    sys.exit(main())
