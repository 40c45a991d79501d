"""Audits while a run trains: on a small fixed sample, quiet, nothing written beside the metrics."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Audit, choose
from cuewise.audits.engine import Engine
from cuewise.audits.head import Head, map_for
from cuewise.audits.plan import run_passes
from cuewise.audits.sets import split_role
from cuewise.audits.subject import AuditSettings
from cuewise.audits.subjects import AuditRequest, prepare
from cuewise.config import Config
from cuewise.data import Dataset, open_data
from cuewise.encoders import Encoder
from cuewise.encoders.embed import in_evaluation_mode
from cuewise.encoders.load import outputs_of
from cuewise.errors import UserError
from cuewise.folders import is_embedded
from cuewise.scores import Score
from cuewise.train.checkup import Observers, Watcher
from cuewise.train.guard import Outputs

SAMPLE, COPIES = 400, 100  # images of --val, and those of which changed copies are made


def observers(tests: Sequence[str] = ()) -> Observers:
    """For `pretrain` and `tune`; tests: sets with roles, as `conflict=DATA`, that --watch asks beside --val."""
    return Observers(own_outputs, partial(watcher_of, tests=tests))


def own_outputs(encoder: Encoder, data: Dataset, labelled: bool) -> Outputs | None:
    """Answers of the own classifier: by the classes of the set, or as they come where labels do not count."""
    if encoder.head is None:
        return None
    count = outputs_of(encoder)
    if not labelled:
        found = {str(i): [i] for i in range(count)}
    else:
        known = map_for(data.classes, count, None)
        if known is None or not set(data.classes) <= set(known[0]):
            return None
        found = {name: list(known[0][name]) for name in data.classes}  # type: ignore[arg-type]
    head = Head(encoder.head, found, "own")
    return lambda features: np.asarray(head.predict_proba(features).argmax(1), np.int64)


def watcher_of(config: Config, tests: Sequence[str]) -> Watcher:
    """The audits of --watch on a part of --val and of the tests; where the model does not answer itself, a probe is
    fitted on another part of --val."""
    asked = choose(list(config.watch))
    specs = [sampled(spec, SAMPLE // len(config.val)) for spec in config.val]
    if open_data(specs).labels is None:
        raise UserError("--watch needs labels: put the images of --val into one folder per class")
    given = [split_role(spec, asked) for spec in tests]
    further = [f"{role}={sampled(spec, SAMPLE)}".removeprefix("=") for role, spec in given]
    return lambda encoder: look(encoder, asked, specs, further, config.seed)


def sampled(spec: str, count: int) -> str:
    """DATA cut to so many images, where it does not choose itself."""
    if is_embedded(spec) or "n=" in spec.partition("?")[2] or len(open_data(spec)) <= count:
        return spec
    return f"{spec}{'&' if '?' in spec else '?'}n={count}"


def look(
    encoder: Encoder, asked: Sequence[Audit], specs: list[str], tests: list[str], seed: int
) -> list[Score]:
    """The first score of each audit; one that cannot be asked is left out."""
    own = encoder.head is not None and own_outputs(encoder, open_data(specs), True) is not None
    sets = ([], specs + tests) if own else (specs, tests)
    request = AuditRequest(*sets, "head" if own else "probe", seed, AuditSettings(limit=COPIES), asked=asked)
    found = []
    quiet = contextlib.redirect_stderr(io.StringIO())
    # gradients stay possible: probes are fitted here, and saliency is one
    with tempfile.TemporaryDirectory() as folder, in_evaluation_mode(encoder), torch.enable_grad(), quiet:
        engine = Engine(workers=0)
        subject = prepare("the run", "the run", encoder, Path(folder), request, engine)
        run_passes([(subject, asked)], engine)
        for audit in asked:
            with contextlib.suppress(Unasked):
                found += audit.ask(subject).scores[:1]
    return found
