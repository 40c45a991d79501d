"""`cuewise tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cuewise.options import Of, One, Several, texts
from cuewise.verbs.arguments import Data, Model, Pretrained, Result, Settings, layers_asked, specified

TOPIC = "train"
DEFAULTS = (  # as --help says them; cuewise.train.tune sets them
    ("size", "half the model's own; its own where it is built for one size"),
    ("epochs", "1"),
    ("batch_size", "32"),
    ("negatives", "patch; none for --away color"),
    ("alpha", "2"),
    ("alpha_mode", "in"),
    ("suppress", "anisotropic, a third of them; none for --away color"),
)


def tune(
    model: Model,
    *data: Data,
    out: Annotated[One, "the run folder to write"],
    away: Annotated[
        str | None,
        "the cue to rely on less: texture, color, texture,color, or none (the dials are then your own) [texture]",
        "cue dials",
    ] = None,
    keep: Annotated[
        float | None, "weight of keeping the features of unchanged images [1]", "cue dials"
    ] = None,
    test: Annotated[
        Several | None,
        "images for the report of before and after, as `audit` takes them, e.g. conflict=DATA sketch=DATA",
    ] = None,
    config: Annotated[One | None, "a YAML file of settings, e.g. the config.yaml of another run"] = None,
    set: Annotated[
        Settings, "any other setting as dotted.key=value, e.g. optim.lr=3e-5, tune.images=0"
    ] = None,
    pretrained: Pretrained = False,
    report: Annotated[bool, "audit before and after (--no-report only trains) [on]"] = True,
    resume: Annotated[bool, "continue where the run in --out stopped"] = False,
    overwrite: Annotated[bool, "replace the run in --out"] = False,
    **options: Annotated[
        Any, Of("cuewise.config.fields:Config", without=("method", "model"), defaults=DEFAULTS)
    ],
) -> Result:
    """Turn a cue dial of a model that already exists, and keep what it knows; its classifier still fits.

    cuewise tune runs/plain photos --out runs/tuned
    cuewise tune runs/shape photos --out runs/both --away texture,color --layers last:2 --val sketches
    """
    from cuewise.audits.watch import observers
    from cuewise.errors import UserError
    from cuewise.folders import refuse_inside
    from cuewise.report.card import card_of_run
    from cuewise.report.tuned import report_tuned
    from cuewise.train.distributed import ProcessGroup
    from cuewise.train.pretrain import RunMode, run_pretrain
    from cuewise.train.tune import layers_of

    layers, asked = layers_asked("tune", options, data, config, set)
    if keep is not None:
        asked["tune"] = {"keep": keep}
    start = specified(model, None, pretrained)
    if not isinstance(start, str):
        raise UserError("tune needs a model that a run folder can name: package.module:factory, not a module")
    if test is not None and not report and not asked.get("watch"):
        raise UserError("--test is for the report and for --watch: leave out --no-report, or --test")
    place = Path(out)
    if not resume:
        refuse_inside(place, texts(test))
    full = layers_of(start, away, layers, place, resume=resume, begun=bool(config))
    mode = RunMode(resume=resume, overwrite=overwrite, extend=False)
    result = run_pretrain(full, place, mode, observers(texts(test)))
    first = ProcessGroup().rank == 0
    if first:
        card_of_run(place)
        result |= report_tuned(place, texts(test)) if report else {}
    return Result(result, shown=first)
