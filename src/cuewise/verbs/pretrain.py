"""`cuewise pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cuewise.options import Of, One
from cuewise.verbs.arguments import Data, Result, Settings, layers_asked

TOPIC = "train"


def pretrain(
    *data: Data,
    out: Annotated[One, "the run folder to write"],
    config: Annotated[
        One | None,
        "a YAML file of settings, e.g. the config.yaml of another run, or a recipe (see `cuewise list recipes`)",
    ] = None,
    set: Annotated[
        Settings,
        "any other setting as dotted.key=value, e.g. optim.lr=0.1, moco.queue=4096 (see `cuewise list settings`)",
    ] = None,
    pretrained: Annotated[
        bool, "start from the library's published weights of --model: from its cache, else downloaded"
    ] = False,
    resume: Annotated[bool, "continue where the run in --out stopped"] = False,
    extend: Annotated[
        bool, "with --resume: train for more --epochs than were planned, on the longer schedule"
    ] = False,
    overwrite: Annotated[bool, "replace the run in --out"] = False,
    dry_run: Annotated[
        bool,
        "only check everything and show the configuration, the first views, memory and time; no run is written",
    ] = False,
    **options: Annotated[Any, Of("cuewise.config.fields:Config")],
) -> Result:
    """Train an encoder from unlabelled images.

    cuewise pretrain photos --out runs/plain
    cuewise pretrain photos --out runs/next --dry-run
    cuewise pretrain photos --out runs/shape --negatives patch --alpha 2 --suppress anisotropic
    """
    from cuewise import compiled

    compiled.begin([d for d in data if isinstance(d, str)])  # beside the imports that follow
    from cuewise.audits.watch import observers
    from cuewise.encoders.load import with_pretrained
    from cuewise.errors import UserError
    from cuewise.report.card import card_of_run
    from cuewise.train.distributed import ProcessGroup
    from cuewise.train.pretrain import RunMode, run_pretrain

    layers, asked = layers_asked("pretrain", options, data, config, set)
    if pretrained and "model" not in asked:
        raise UserError("--pretrained belongs to --model: name the one whose weights to start from")
    if pretrained:
        asked["model"] = with_pretrained(asked["model"], pretrained)
    mode = RunMode(resume=resume, overwrite=overwrite, extend=extend)
    if dry_run:
        from cuewise.train.dry_run import dry_run as look_ahead

        return Result(look_ahead(layers, Path(out), mode, observers()))
    result = run_pretrain(layers, Path(out), mode, observers())
    first = ProcessGroup().rank == 0
    if first:
        card_of_run(Path(out))
    return Result(result, shown=first)
