"""Does the model recognise the object, or what usually surrounds it?"""

from __future__ import annotations

from cuewise.audits import objects
from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Finding, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, difference, share
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import AuditOption, Kind, Reference, accuracy_kind
from cuewise.audits.masks import masks_option, value_option
from cuewise.audits.one_cue import gallery
from cuewise.audits.subject import Subject
from cuewise.cues.cutout import BACKGROUNDS, PARTNERS

CHANGES = (CLEAN, *(change("background", kind=kind) for kind in BACKGROUNDS))
WORDS = {
    "own": "as it is",
    "same": "background of another image of the class",
    "other": "background of another class",
    "removed": "on grey",
    "only": "background alone",
}


@audit(
    "background",
    "accuracy with the background exchanged, removed, and alone",
    question="Does it recognise the object, or what usually surrounds it?",
    topic="robustness",
    rank=56,
    kinds=(
        Kind(
            "background/gap",
            "Reliance on the background",
            "Accuracy with the background of another image of the same class minus accuracy with the background of another "
            "class. 0 for a model to which the background does not matter.",
            card=13,
            reading="0 is no reliance",
            better="low",
            references=(Reference("ResNet-50, published sets (Xiao et al. 2021)", 0.073, "ImageNet-9"),),
        ),
        accuracy_kind(
            "background/own/accuracy",
            "Accuracy with the own background",
            "Share of correct answers on the same images, unchanged.",
        ),
        Kind(
            "background/same/accuracy",
            "Accuracy with a background of the class",
            "Share of correct answers with the object on the background of another image of its class.",
            better="high",
        ),
        accuracy_kind(
            "background/other/accuracy",
            "Accuracy with a background of another class",
            "Share of correct answers with the object on the background of an image of another class.",
        ),
        accuracy_kind(
            "background/removed/accuracy",
            "Accuracy without background",
            "Share of correct answers with the object on plain grey.",
        ),
        Kind(
            "background/only/accuracy",
            "Accuracy on the background alone",
            "Share of images whose class is still named when the object is removed and the hole filled smoothly.",
            better="low",
        ),
    ),
    options=(
        AuditOption(
            "masks",
            "images named as those of --test, white where the object is, or a set with annotated objects [what --test knows]",
            masks_option,
        ),
        AuditOption(
            "mask_value", "the value of an object's pixels in --masks, for index images", value_option
        ),
    ),
    needs=lambda subject: objects.needs(subject, CHANGES),
)
def background(subject: Subject) -> Finding:
    """The object stays unchanged in its place; what is around it changes."""
    found = objects.hits(subject, CHANGES)
    scenes = found.scenes
    out, drawn = Finding(), []
    for column, kind in enumerate(("own", *BACKGROUNDS)):
        kept = scenes.has(kind) if kind in PARTNERS else scenes.usable
        hits = found.where(kept)[:, column]
        if not len(hits):
            continue
        text = found.protocol(f"copies, {WORDS[kind]},", kept)
        out.add(share(f"background/{kind}/accuracy", hits, text), chance=chance(subject))
        drawn.append(WORDS[kind])
    if not out.scores:
        raise Unasked("none of the images with an object could be read")
    both = scenes.has("same") & scenes.has("other")
    if both[found.rows].any():
        places = [1 + BACKGROUNDS.index(kind) for kind in ("same", "other")]
        text = found.protocol("copies with exchanged background", both)
        out.add(difference("background/gap", found.where(both)[:, places], text))
    bars = series(subject.name, drawn, [s for s in out.scores if s.name != "background/gap"])
    out.figures["background"] = figure("bars", "Accuracy as the background changes", "background", bars)
    shown = change("background", kind="other" if scenes.has("other").any() else "removed")
    out.galleries["background"] = gallery(subject, shown, "background", "changed")
    return out
