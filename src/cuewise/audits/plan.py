"""Which passes an audit of several models makes: each set once for all models and questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cuewise.audits.answerer import Ids, Unasked
from cuewise.audits.audit import Audit, Needs, Subject
from cuewise.audits.change import CLEAN, Change
from cuewise.audits.engine import Engine, Seen, Work
from cuewise.audits.keys import data_key
from cuewise.data import Dataset
from cuewise.progress import Progress


@dataclass
class Wish:
    """A set that some models look at: as it is (all of it), and `changes` of its images `rows`."""

    name: str
    data: Dataset
    subjects: list[Subject] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    clean: bool = False


def look(todo: Mapping[str, tuple[Subject, Sequence[Audit]]], engine: Engine) -> None:
    """Make all passes; training sets first, since probes must be fitted before they can answer."""
    pairs = list(todo.values())
    fits = [
        (s, Needs(sets=[("training set", s.train)]))
        for s, asked in pairs
        if asked and s.answers_by == "probe"
    ]
    wanted = [(s, needs_of(s, asked)) for s, asked in pairs if asked]
    first, rest = wishes(fits), wishes(wanted)
    total = sum(_views(w) for w in (*first, *rest))
    if not total:
        return
    # passes over changed copies have keys that need fitted probes: what they have left is told when they begin
    with Progress(total, "views", "audit") as engine.bar:
        for wish in first:
            _pass(wish, engine)
        for wish in rest:
            _pass(wish, engine)
    engine.bar = None
    for subject, _ in pairs:
        _put_together(subject)


def needs_of(subject: Subject, asked: Sequence[Audit]) -> Needs:
    """All that a model's questions will look at; a question that cannot be asked needs nothing."""
    sets, changes = [], []
    for audit in asked:
        try:
            found = audit.needs(subject)
        except Unasked:
            continue
        sets += list(found.sets)
        changes += list(found.changes)
    return Needs(sets, list(dict.fromkeys(changes)))


def wishes(wanted: Sequence[tuple[Subject, Needs]]) -> list[Wish]:
    """One wish a set and group of models that want the same of it."""
    found: dict[tuple[str, tuple[Change, ...]], Wish] = {}
    for subject, needs in wanted:
        for key, wish in _own_wishes(subject, needs).items():
            if key in subject.seen and not wish.changes:
                continue
            asked = found.setdefault((key, tuple(wish.changes)), wish)
            asked.subjects.append(subject)
            asked.clean |= wish.clean
    return list(found.values())


def _own_wishes(subject: Subject, needs: Needs) -> dict[str, Wish]:
    """By key of the set. A set of which some images are changed is looked at in two parts, so that each image is
    decoded once: those with all their copies, and the rest."""
    own: dict[str, Wish] = {}
    for name, data in needs.sets:
        own.setdefault(data_key(data), Wish(name, data)).clean = True
    changes = [c for c in needs.changes if c != CLEAN]
    if not needs.changes or subject.base is None:
        return own
    name, data = subject.base
    wish = own.setdefault(data_key(data), Wish(name, data))
    wish.changes, wish.clean = changes, True
    if subject.cut is not None and data_key(subject.cut.whole) in own and subject.cut.whole is not data:
        del own[data_key(subject.cut.whole)]
        rest = subject.cut.whole.select(subject.cut.rest)
        if len(rest):
            own[data_key(rest)] = Wish(name, rest, clean=True)
    return own


def _put_together(subject: Subject) -> None:
    """What was seen of a set in two parts, as of the whole."""
    cut = subject.cut
    if cut is None or subject.base is None or data_key(cut.whole) in subject.seen:
        return
    parts = [(cut.rows, subject.base[1]), (cut.rest, cut.whole.select(cut.rest))]
    seen = [(rows, subject.seen.get(data_key(data))) for rows, data in parts if len(data)]
    known = [(rows, s) for rows, s in seen if s is not None and s.features.size]
    if len(known) == len(seen):
        subject.remember(data_key(cut.whole), merged(known))


def _pass(wish: Wish, engine: Engine) -> None:
    """One pass for all models that can answer."""
    changes = tuple([CLEAN] * (wish.clean or not wish.changes) + [c for c in wish.changes if c != CLEAN])
    asked = any(c != CLEAN for c in changes)
    able = []
    for subject in wish.subjects:
        try:
            able.append((subject, subject.viewer(subject.answerer(wish.data) if asked else None)))
        except Unasked:  # the audit itself will tell
            continue
    if not able:
        return
    work = Work(wish.name, wish.data, [v for _, v in able], changes, able[0][0].seed)
    if engine.bar:
        engine.bar.skip(engine.done(work))
    for (subject, _), seen in zip(able, engine.run(work)):
        subject.remember(data_key(wish.data), seen)


def merged(parts: Sequence[tuple[Ids, Seen]]) -> Seen:
    """What was seen of several selections of a set, as of the whole: (rows of the set, seen)."""
    index = np.concatenate([rows[seen.index] for rows, seen in parts])
    order = np.argsort(index, kind="stable")
    features = np.concatenate([seen.features for _, seen in parts])[order]
    return Seen(index[order], features, {}, [s for _, seen in parts for s in seen.skipped])


def _views(wish: Wish) -> int:
    return len(wish.data) * (wish.clean + len([c for c in wish.changes if c != CLEAN])) * len(wish.subjects)
