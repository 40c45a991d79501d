"""Which passes an audit of several models makes: each set once for all models and questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cuewise.audits.answerer import Answerer, Ids
from cuewise.audits.audit import Audit, Needs
from cuewise.audits.change import CLEAN, Change
from cuewise.audits.engine import Engine, Outputs, Pass, copies, inputs_of
from cuewise.audits.keys import data_key
from cuewise.audits.pairs import PairViews, pair_work
from cuewise.audits.prompt_spread import by_prompt
from cuewise.audits.similarity import pair_settings
from cuewise.audits.subject import Subject
from cuewise.data import Dataset
from cuewise.errors import UserError
from cuewise.progress import Progress


@dataclass
class PlannedPass:
    """A set that some models look at: unchanged, and with changes of its images."""

    name: str
    data: Dataset
    subjects: list[Subject] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


def run_passes(todo: Sequence[tuple[Subject, Sequence[Audit]]], engine: Engine) -> None:
    """Make all passes; training sets first, since probes must be fitted before they can answer."""
    fits = [
        (s, Needs(sets=[("training set", s.train)]))
        for s, asked in todo
        if asked and s.answers_by == "probe" and s.train.labels is not None
    ]
    wanted = [(s, needs_of(s, asked)) for s, asked in todo if asked]
    first, rest, pairs = passes(fits), passes(wanted), pair_passes(wanted)
    total = sum(_views(p) for p in (*first, *rest)) + sum(work.views for work, _ in pairs)
    if not total:
        return
    # the keys of passes over changed copies need fitted probes: what is done of them is known only when they begin
    with Progress(total, "views", "audit") as engine.bar:
        for one in (*first, *rest):
            _run(one, engine)
        for work, subjects in pairs:
            _run_pairs(work, subjects, engine)
    engine.bar = None
    for subject, _ in todo:
        _join_parts(subject)


def needs_of(subject: Subject, asked: Sequence[Audit]) -> Needs:
    """All that a model's questions will look at; a question that cannot be asked needs nothing."""
    sets, changes, pairs = [], [], False
    for audit in asked:
        try:
            found = audit.needs(subject)
        except UserError:  # the audit itself gives the reason
            continue
        sets += list(found.sets)
        changes += list(found.changes)
        pairs |= found.pairs
    return Needs(sets, list(dict.fromkeys(changes)), pairs)


def passes(wanted: Sequence[tuple[Subject, Needs]]) -> list[PlannedPass]:
    """One pass per set and group of models that want the same of it."""
    found: dict[tuple[str, tuple[Change, ...]], PlannedPass] = {}
    for subject, needs in wanted:
        for key, own in _own_passes(subject, needs).items():
            if key in subject.model.seen and not own.changes:
                continue
            found.setdefault((key, tuple(own.changes)), own).subjects.append(subject)
    return list(found.values())


def pair_passes(wanted: Sequence[tuple[Subject, Needs]]) -> list[tuple[Pass, list[Subject]]]:
    """One pass per training set over the pairs that similarity compares."""
    found: dict[str, list[Subject]] = {}
    for subject, needs in wanted:
        if needs.pairs:
            found.setdefault(f"{data_key(subject.train)} {pair_settings(subject)}", []).append(subject)
    out = []
    for subjects in found.values():
        first = subjects[0]
        part, numbers = pair_work(first.train, pair_settings(first), first.settings.limit)
        viewers = [s.model.embedder for s in subjects]
        rendering = PairViews(inputs_of(viewers), pair_settings(first), numbers)
        out.append((Pass("pairs", part, viewers, rendering), subjects))
    return out


def _run_pairs(work: Pass, subjects: Sequence[Subject], engine: Engine) -> None:
    if engine.bar:
        engine.bar.skip(engine.done(work))
    first = subjects[0]
    for subject, seen in zip(subjects, engine.run(work)):
        subject.model.remember_pairs(first.train, pair_settings(first), first.settings.limit, seen)


def _own_passes(subject: Subject, needs: Needs) -> dict[str, PlannedPass]:
    """By key of the set. A set of which some images are changed is looked at in two parts, so that each image is
    decoded once: those with all their copies, and the rest."""
    own: dict[str, PlannedPass] = {}
    for name, data in needs.sets:
        own.setdefault(data_key(data), PlannedPass(name, data))
    if not needs.changes or subject.base is None:
        return own
    name, data = subject.base
    one = own.setdefault(data_key(data), PlannedPass(name, data))
    one.changes = [c for c in needs.changes if c != CLEAN]
    if subject.cut is not None and data_key(subject.cut.whole) in own and subject.cut.whole is not data:
        del own[data_key(subject.cut.whole)]
        rest = subject.cut.whole.select(subject.cut.rest)
        if len(rest):
            own[data_key(rest)] = PlannedPass(name, rest)
    return own


def _join_parts(subject: Subject) -> None:
    """Join the results of a set that was looked at in two parts."""
    cut, known = subject.cut, subject.model.seen
    if cut is None or subject.base is None or data_key(cut.whole) in known:
        return
    parts = [(cut.rows, subject.base[1]), (cut.rest, cut.whole.select(cut.rest))]
    seen = [(rows, known.get(data_key(data))) for rows, data in parts if len(data)]
    whole = [(rows, s) for rows, s in seen if s is not None and s.features.size]
    if len(whole) == len(seen):
        subject.model.remember(cut.whole, merged(whole))


def _run(one: PlannedPass, engine: Engine) -> None:
    """One pass for all models that can answer."""
    able: list[tuple[Subject, Answerer | None]] = []
    for subject in one.subjects:
        try:
            able.append((subject, subject.answerer(one.data) if one.changes else None))
        except UserError:  # the audit itself gives the reason
            continue
    if not able:
        return
    others = [[m.answerer(one.data) for m in by_prompt(s)] if one.changes else [] for s, _ in able]
    viewers = [s.model.viewer(a, tuple(more)) for (s, a), more in zip(able, others)]
    first = able[0][0]
    scenes = first.model.scenes.get(data_key(one.data))
    work = copies(one.name, one.data, viewers, (CLEAN, *one.changes), first.seed, scenes)
    if engine.bar:
        engine.bar.skip(engine.done(work))
    for (subject, answerer), more, seen in zip(able, others, engine.run(work)):
        subject.model.remember(one.data, seen, answerer)
        for other, answers in zip(more, seen.others):
            subject.model.remember_answers(one.data, other, seen.index, answers)


def merged(parts: Sequence[tuple[Ids, Outputs]]) -> Outputs:
    """The results of several selections of a set as one: (rows of the set, result)."""
    index = np.concatenate([rows[seen.index] for rows, seen in parts])
    order = np.argsort(index, kind="stable")
    features = np.concatenate([seen.features for _, seen in parts])[order]
    return Outputs(index[order], features, {}, [s for _, seen in parts for s in seen.skipped])


def _views(one: PlannedPass) -> int:
    return len(one.data) * (1 + len(one.changes)) * len(one.subjects)
