"""`cuewise completion`."""

from __future__ import annotations

from typing import Annotated

from cuewise.verbs.arguments import Result

TOPIC = "share"


def completion(
    shell: Annotated[str, "bash, zsh or fish"],
) -> Result:
    """Print a script with which the Tab key completes verbs, options and names of methods, probes, makers and audits.

    cuewise completion bash
    cuewise completion fish
    """
    from cuewise.shell_completion import script
    from cuewise.verbs import VERBS

    return Result({"script": script(shell, VERBS)})
