"""cuewise check: find the members of a module, and put each through the battery of its kind."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cuewise.errors import UserError
from cuewise.options import attribute
from cuewise.registry import TYPED, Registry, declared_members, import_typed, import_users_module

Check = Callable[[Any], None]  # takes a member; raises an exception that says what is wrong


@dataclass(frozen=True)
class Battery:
    """A kind of member, whose checks are in the module of that name: its registry, and what a member is in a few words."""

    kind: str
    registry: str  # package.module:NAME
    members_are: str


BATTERIES = (
    Battery("method", "cuewise.methods.method:METHODS", "a subclass of Method"),
    Battery("cue", "cuewise.cues.registry:CUES", "a subclass of Cue"),
    Battery("negative", "cuewise.views.negatives:NEGATIVES", "a subclass of Negative"),
    Battery(
        "augmentation", "cuewise.views.augmentations:AUGMENTATIONS", "what register_augmentation returns"
    ),
    Battery("audit", "cuewise.audits.audit:AUDITS", "a function under @audit(…)"),
    Battery("probe", "cuewise.probes.kinds:PROBES", "a subclass of ProbeKind"),
    Battery("maker", "cuewise.makers.registry:MAKERS", "a subclass of Maker"),
    Battery("study", "cuewise.studies.study:STUDIES", "a Study object"),
    Battery("measure", "cuewise.studies.measures.measure:MEASURES", "a function under @measure(…)"),
    Battery("clue", "cuewise.inspection.clue:CLUES", "a subclass of Clue"),
    Battery("source", "cuewise.data.openers:SOURCES", "a function under @source(…)"),
)


@dataclass(frozen=True)
class CheckResult:
    """One check of one member; `error` is empty where it passed."""

    member: str
    kind: str
    check: str
    error: str = ""

    def __str__(self) -> str:
        return f"{'FAIL' if self.error else 'ok  '} {self.kind} {self.member}: {self.check}" + (
            f": {self.error}" if self.error else ""
        )


def check_members(spec: str) -> dict[str, Any]:
    """Check `package.module:Name`, or every member that `package.module` defines; an error where a check fails."""
    results: list[CheckResult] = []
    for battery, member in members_of(spec):
        for check in checks_of(battery):
            results.append(run_check(battery, check, member))
            print(results[-1], file=sys.stderr, flush=True)
    failed = [r for r in results if r.error]
    if failed:
        first = failed[0]
        raise UserError(
            f"{len(failed)} of {len(results)} checks of {spec} failed, the first: "
            f"{first.kind} {first.member}: {first.check}: {first.error}"
        )
    members = sorted({f"{r.kind} {r.member}" for r in results})
    return {"checked": ", ".join(members), "passed": len(results)}


def checks_of(battery: Battery) -> Sequence[Check]:
    found: Sequence[Check] = attribute(f"cuewise.checks.{battery.kind}:CHECKS")
    return found


def run_check(battery: Battery, check: Check, member: Any) -> CheckResult:
    """The result of one check; whatever it raises is what was found."""
    title = (inspect.getdoc(check) or check.__name__).splitlines()[0].rstrip(".")
    try:
        check(member)
    except UserError as error:
        return CheckResult(member.name, battery.kind, title, str(error))
    except Exception as error:
        text = " ".join(str(error).split()) or "no message"
        return CheckResult(member.name, battery.kind, title, f"{type(error).__name__}: {text}")
    return CheckResult(member.name, battery.kind, title)


def members_of(spec: str) -> list[tuple[Battery, Any]]:
    """The members that are meant, each with the battery of its kind."""
    if TYPED.fullmatch(spec):
        member = import_typed(spec, "member")
        for battery in BATTERIES:
            if _registry(battery).is_member(member):
                return [(battery, _registry(battery).get(spec))]
        if callable(member) and all(hasattr(member, part) for part in ("image", "name", "fingerprint")):
            return [(BATTERIES[-1], _opener(member))]
        kinds = "; ".join(f"{b.kind}: {b.members_are}" for b in BATTERIES)
        raise UserError(f"{spec} is not a member of any kind ({kinds})")
    module = import_users_module(spec, "its checks")
    found = [(b, x) for b in BATTERIES for x in _registry(b).members(module) if _is_own(b, x, spec)]
    if not found:
        kinds = ", ".join(b.kind for b in BATTERIES)
        raise UserError(f"{spec} defines no member with a name and a summary ({kinds})")
    return found


def _is_own(battery: Battery, member: Any, module: str) -> bool:
    """Whether the module defines it, and does not import a member of cuewise's own."""
    declared = declared_members(_registry(battery).package).get(member.name)
    return declared is None or declared.module == module


def _opener(kind: Any) -> Any:
    """A class that is a source itself, as if it stood under @source."""
    from cuewise.data.openers import Opener

    summary = (inspect.getdoc(kind) or "").partition("\n")[0]
    return Opener(kind.__name__, summary, kind)


def _registry(battery: Battery) -> Registry[Any]:
    found: Registry[Any] = attribute(battery.registry)
    return found


def need(holds: Any, otherwise: str) -> None:
    """A promise; `otherwise` says how it is broken."""
    if not holds:
        raise UserError(otherwise)
