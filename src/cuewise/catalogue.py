"""What there is to choose from, one line each."""

from __future__ import annotations

from cuewise.errors import UserError
from cuewise.registry import summaries

KINDS = (
    "methods",
    "models",
    "negatives",
    "cues",
    "filters",
    "audits",
    "makers",
    "probes",
    "recipes",
    "studies",
)


def catalogue(what: str) -> dict[str, str]:
    """name → summary of all methods, models, negatives, cues, filters, audits, makers, probes, recipes or studies."""
    if what not in KINDS:
        raise UserError(f"cannot list {what!r}: {', '.join(KINDS)}")
    return globals()[f"_{what}"]()


def _methods() -> dict[str, str]:
    from cuewise.methods import methods

    return {name: kind.summary for name, kind in methods().items()}


def _models() -> dict[str, str]:
    import timm
    import torchvision

    own = {
        "cuewise/resnet-tiny": "a ResNet for 64 pixels and less on a CPU (options ?width=32&depth=10&norm=batch)"
    }
    own["cuewise/vit-tiny"] = (
        "a vision transformer for 64 pixels and less (options ?patch=4&width=192&depth=4)"
    )
    own["cuewise/lab"] = "two of a model, of lightness and of colours: cuewise/lab?of=MODEL (CMC)"
    names = torchvision.models.list_models(module=torchvision.models)
    return own | {f"torchvision/{n}": "" for n in names} | {f"timm/{n}": "" for n in timm.list_models()}


def _negatives() -> dict[str, str]:
    from cuewise.methods import methods

    texts = {
        "patch": "tiles of random patches of the query view: its texture and colours without its layout",
        "texture": "an image synthesised from patches of the original",
        "regular": "another image of the batch (a control)",
    }
    takes = {k: [n for n, m in methods().items() if k in m.negative_kinds] for k in texts}
    return {k: f"{text} ({', '.join(takes[k])})" for k, text in texts.items() if takes[k]}


def _cues() -> dict[str, str]:
    return summaries("cues", "cuewise.cues")


_filters = _cues


def _audits() -> dict[str, str]:
    from cuewise.audits.audit import AUDITS

    return AUDITS.summaries()


def _makers() -> dict[str, str]:
    from cuewise.make.makers import makers

    return {name: m.summary for name, m in makers().items()}


def _probes() -> dict[str, str]:
    from cuewise.probes.kinds import KINDS

    return {name: kind.summary for name, kind in KINDS.items()}


def _recipes() -> dict[str, str]:
    from cuewise.recipes import recipes

    return {name: f"{r.summary}; DATA: '{r.images}'" for name, r in recipes().items()}


def _studies() -> dict[str, str]:
    from cuewise.studies.study import studies

    return {name: s.summary for name, s in studies().items()}
