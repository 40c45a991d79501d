"""cuewise inspect: image sets in, inspect.json and report.html out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuewise.data import auto_workers
from cuewise.data.unusable import say_unusable
from cuewise.folders import hold_folder
from cuewise.inspection.run import document_of, inspect_sets, save_document
from cuewise.options import workers_asked
from cuewise.report.inspection import headline, write_inspection


def inspect_data(
    data: Sequence[str],
    out: Path,
    *,
    only: Sequence[str],
    seed: int,
    workers: str | int,
    masks: str | None,
    mask_value: int | None,
    overwrite: bool,
) -> dict[str, Any]:
    """Inspect every DATA as a set of its own."""
    from cuewise import __version__

    with hold_folder(
        out, "inspection", overwrite=overwrite, images=[*data, *([masks] if masks else [])]
    ) as held:
        asked = workers_asked(workers)
        count = auto_workers() if asked is None else asked
        sets = inspect_sets(data, only=only, seed=seed, workers=count, masks=masks, mask_value=mask_value)
        document = document_of(sets, __version__)
        save_document(document, out)
        options = ["--only", ",".join(only)] if only else []
        options += ["--masks", masks] if masks is not None else []
        options += ["--mask-value", str(mask_value)] if mask_value is not None else []
        command = shlex.join(["cuewise", "inspect", *data, "--out", str(out), *options])
        page = write_inspection(sets, document, out, command)
        held.finished()
    for one in sets:
        for clue, needs in one.lacking.items():
            print(f"{one.name}: {clue} left out; it needs {needs}", file=sys.stderr)
        say_unusable(one.broken, one.name)
    print(headline(document), file=sys.stderr)
    return {"report": str(page), **document}
