"""Lists of members in help and docs are those of the registries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

import pytest

from cuewise.audits.sets import known_roles
from cuewise.config import Config
from cuewise.cues.registry import CUES
from cuewise.methods.method import METHODS
from cuewise.options import options_of
from cuewise.probes.kinds import PROBES
from cuewise.verbs.audit import audit
from cuewise.verbs.probe import probe as verb
from cuewise.views.negatives import NEGATIVES

DOCS = Path(__file__).parents[2] / "docs"
HARD = sorted(name for name, method in METHODS.all().items() if method.takes_hard)


@pytest.mark.parametrize("kind", sorted(NEGATIVES.all()))
def test_methods_that_take_a_negative(kind: str) -> None:
    methods = ", ".join(
        sorted(m.name for m in METHODS.all().values() if m.takes_negative(NEGATIVES.get(kind)))
    )
    (row,) = re.findall(rf"^\| `{kind}` \|.*\| (.*) \|$", (DOCS / "negatives.md").read_text(), re.MULTILINE)
    first = re.findall(r"^\| `patch` \|.*\| (.*) \|$", (DOCS / "negatives.md").read_text(), re.MULTILINE)[0]
    assert (first if row == "the same" else row) == methods


def test_methods_that_take_harder_negatives() -> None:
    listed = f"({', '.join(HARD)})"
    assert listed in options_of(Config)["hard"].help
    assert listed in (DOCS / "pretrain.md").read_text()
    assert f"For {', '.join(HARD[:-1])} and {HARD[-1]}," in (DOCS / "negatives.md").read_text()


def test_filters() -> None:
    filters = {name for name, cue in CUES.all().items() if cue.suppresses}
    (listed,) = re.findall(r"against texture: ([\w, ]+);", options_of(Config)["suppress"].help)
    assert set(listed.split(", ")) == filters
    (listed,) = re.findall(r"--suppress ([\w\\|]+)`", (DOCS / "pretrain.md").read_text())
    assert set(listed.split(r"\|")) == filters


def test_roles_of_test_sets() -> None:
    (metadata, *_) = get_type_hints(audit, include_extras=True)["test"].__metadata__
    (more,) = re.findall(r"with a role as in sketch=DATA \(([\w, ]+)\)", metadata)
    assert {"sketch", *more.split(", ")} == set(known_roles())
    page = (DOCS / "audit.md").read_text()
    assert [role for role in known_roles() if f"`{role}=`" not in page and f"{role}=DATA" not in page] == []


def test_probes() -> None:
    listed, _, _ = get_type_hints(verb, include_extras=True)["kind"].__metadata__[0].partition(" (see")
    assert set(re.split(", | or ", listed)) == set(PROBES.all())
