"""Lists of members in help and docs are those of the registries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

import pytest

from cuewise.audits.sets import known_roles
from cuewise.config import Config
from cuewise.config.fields import Labels
from cuewise.cues.registry import CUES
from cuewise.methods.hard import HARD as HARD_NEGATIVES
from cuewise.methods.method import METHODS, Method
from cuewise.options import options_of
from cuewise.probes.kinds import PROBES
from cuewise.train.tune import AWAY, BATCH, EPOCHS
from cuewise.verbs.audit import audit
from cuewise.verbs.probe import probe as verb
from cuewise.verbs.tune import DEFAULTS, tune
from cuewise.views.negatives import NEGATIVES
from cuewise.views.suppress import SuppressSettings

DOCS = Path(__file__).parents[2] / "docs"
HARD = sorted(name for name, method in METHODS.all().items() if method.takes_hard)
HELP = {name: option.help for name, option in options_of(Config).items()}


@pytest.mark.parametrize("kind", sorted(NEGATIVES.all()))
def test_methods_that_take_a_negative(kind: str) -> None:
    methods = ", ".join(
        sorted(m.name for m in METHODS.all().values() if m.takes_negative(NEGATIVES.get(kind)))
    )
    (row,) = re.findall(rf"^\| `{kind}` \|.*\| (.*) \|$", (DOCS / "negatives.md").read_text(), re.MULTILINE)
    first = re.findall(r"^\| `patch` \|.*\| (.*) \|$", (DOCS / "negatives.md").read_text(), re.MULTILINE)[0]
    assert (first if row == "the same" else row) == methods


def test_weights_of_negatives() -> None:
    other = [(name, m.alpha) for name, m in METHODS.all().items() if m.alpha != Method.alpha]
    listed = "; ".join([f"{Method.alpha:g}", *(f"{name} {alpha:g}" for name, alpha in other)])
    assert HELP["alpha"].endswith(f"[{listed}]")
    own = " ".join(listed.split("; ")[1:])
    assert f"The default is {Method.alpha:g} ({own})." in (DOCS / "negatives.md").read_text()
    first = Method.alpha_modes[0]
    modes = [(name, m.alpha_modes[0]) for name, m in METHODS.all().items() if m.alpha_modes[0] != first]
    assert HELP["alpha_mode"].endswith(f"[{'; '.join([first, *map(' '.join, modes)])}]")


def test_harder_negatives() -> None:
    assert f"harder: {', '.join(HARD_NEGATIVES)};" in HELP["hard"]
    piped = r"\|".join(HARD_NEGATIVES)
    assert f"`--hard {piped}`" in (DOCS / "pretrain.md").read_text()


@pytest.mark.parametrize(("option", "flag"), [("leave_out", "leaves_out"), ("generator", "takes_generator")])
def test_methods_that_take_an_option(option: str, flag: str) -> None:
    listed = f"({', '.join(name for name, method in METHODS.all().items() if getattr(method, flag))})"
    assert HELP[option].endswith(listed)
    if option == "leave_out":
        assert f"| `--leave-out color,rotation,texture` | {listed}" in (DOCS / "pretrain.md").read_text()


def test_no_method_is_named_by_groups_of_settings() -> None:
    """Any method may take labels: its own flag says so."""
    named = re.compile(rf"\b({'|'.join(map(re.escape, METHODS.all()))})\b")
    assert named.findall(Labels.__doc__ or "") == []


def test_methods_that_take_harder_negatives() -> None:
    listed = f"({', '.join(HARD)})"
    assert listed in HELP["hard"]
    assert listed in (DOCS / "pretrain.md").read_text()
    assert f"For {', '.join(HARD[:-1])} and {HARD[-1]}," in (DOCS / "negatives.md").read_text()


def test_filters() -> None:
    filters = {name for name, cue in CUES.all().items() if cue.suppresses}
    (listed,) = re.findall(r"against texture: ([\w, ]+);", HELP["suppress"])
    assert set(listed.split(", ")) == filters
    own = ", ".join(options_of(SuppressSettings))
    assert f"suppress.* ({own}, and the filter's own" in HELP["suppress"]
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


def test_defaults_of_tune() -> None:
    said, usual = dict(DEFAULTS), AWAY["texture"]
    assert said["alpha_mode"] == METHODS.get("tune").alpha_modes[0]
    assert (said["epochs"], said["batch_size"]) == (str(EPOCHS), str(BATCH))
    assert said["alpha"] == ", ".join(f"{a:g}" for a in usual["alpha"])
    assert said["negatives"].split("; ") == [", ".join(usual["negatives"]), "none for --away color"]
    filtered = usual["suppress"]
    assert said["suppress"].split("; ") == [f"{filtered['name']}, a third of them", "none for --away color"]
    assert filtered["share"] == 1 / 3
    assert not {"negatives", "alpha", "suppress"} & set(AWAY["color"])
    assert {"size", "epochs", "batch_size", "alpha_mode", *usual} - {"views"} == set(said)
    (away, *_) = get_type_hints(tune, include_extras=True)["away"].__metadata__
    listed = re.split(", (?:or )?", away.partition(": ")[2].partition(" (")[0])
    assert {name for name in listed if "," not in name} | {"texture"} == set(AWAY)
