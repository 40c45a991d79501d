"""Pages over all members: the verbs with their options, the glossary of the report, the Python reference."""

from __future__ import annotations

from cuewise.audits.audit import AUDITS
from cuewise.parser import Verb
from cuewise.report.closing import GENERAL
from cuewise.report.plain import markdown_table
from cuewise.verbs import VERBS, by_topic

API = {  # page → modules whose docstrings it shows
    "Results and data": (
        "cuewise.results",
        "cuewise.scores",
        "cuewise.errors",
        "cuewise.data.dataset",
        "cuewise.data.sample",
    ),
    "Encoders": ("cuewise.encoders.encoder", "cuewise.encoders.card", "cuewise.encoders.heads"),
    "Cue operators": (
        "cuewise.cues.cue",
        "cuewise.cues.registry",
        "cuewise.cues.diffusion",
        "cuewise.cues.bilateral",
        "cuewise.cues.blur",
        "cuewise.cues.cartoon",
        "cuewise.cues.color",
        "cuewise.cues.conflict",
        "cuewise.cues.edges",
        "cuewise.cues.frequency",
        "cuewise.cues.patches",
        "cuewise.cues.quilting",
        "cuewise.cues.rotation",
        "cuewise.cues.silhouette",
        "cuewise.cues.texture",
        "cuewise.transforms.transform",
    ),
    "Objectives": (
        "cuewise.objectives.nce",
        "cuewise.objectives.nt_xent",
        "cuewise.objectives.byol",
        "cuewise.objectives.looc",
        "cuewise.objectives.masked",
        "cuewise.objectives.hyperbolic",
    ),
    "Methods": ("cuewise.methods.method", "cuewise.methods.moco", "cuewise.methods.simclr"),
    "Probes": ("cuewise.probes.linear", "cuewise.probes.knn", "cuewise.probes.probe"),
    "Audits": ("cuewise.audits.audit", "cuewise.audits.kinds", "cuewise.audits.subject"),
}


def verbs_page() -> str:
    """Every verb with its examples and options."""
    parts = ["# Verbs", "Shell `cuewise VERB … --some-option X` is Python `cuewise.VERB(…, some_option=X)`."]
    for topic, names in by_topic().items():
        parts.append(f"## {topic}")
        for name in names:
            verb = Verb(name, VERBS[name])
            rows = [[p.name.upper() + "…" * p.many, p.help] for p in verb.positionals]
            rows += [[o.flag, o.help + o.shown_default] for o in verb.options().values()]
            parts += [f"### {name}", verb.summary]
            parts += ["```sh\n" + "\n".join(verb.examples) + "\n```"] if verb.examples else []
            parts += [markdown_table(["argument", "meaning"], rows)] if rows else []
    return "\n\n".join(parts) + "\n"


def glossary_page() -> str:
    """What the report's own glossary says, over all audits."""
    terms = {
        k.title.replace("{}", "…"): k.meaning for a in AUDITS.all().values() for k in a.kinds if k.meaning
    }
    rows = sorted(terms.items(), key=lambda pair: pair[0].lower())
    parts = ["# Glossary", "The words of a report, as the report explains them.", "## In every report"]
    parts += [
        markdown_table(["word", "meaning"], GENERAL),
        "## Scores",
        markdown_table(["score", "meaning"], rows),
    ]
    return "\n\n".join(parts) + "\n"


def api_page() -> str:
    """Docstrings by topic; the verbs have a page of their own."""
    parts = ["# Python reference", "From the docstrings. The verbs are on [their own page](verbs.md)."]
    for title, modules in API.items():
        parts.append(f"## {title}")
        parts += [f"### {m}\n\n```{{eval-rst}}\n.. automodule:: {m}\n   :members:\n```" for m in modules]
    return "\n\n".join(parts) + "\n"


PAGES = {"verbs": verbs_page, "glossary": glossary_page, "api": api_page}
