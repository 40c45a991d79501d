"""Findings by question: each audit's figures, examples and tables together, the telling ones first."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.report.markup import Html, clean, el, join, slug
from cuewise.report.numbers import spoken

Part = tuple[str, Html]  # topic and a block of it

# in reading order; a topic that is not here comes last, by its own name
QUESTIONS = {
    "shape_bias": "Where shape and texture disagree, which does the model follow?",
    "one_cue": "How much can it tell when one cue is left, or one is exchanged?",
    "texture_classes": "Which classes does it know by their texture alone?",
    "accuracy": "How often is it right, and how far does that carry to other kinds of images?",
    "robustness": "What disturbs it: noise, blur, weather, missing detail, other colours, another way up?",
    "coarse_fine": "Does it know the kind and miss the breed?",
    "confidence": "How sure is it, and is it right to be?",
    "saliency": "Where does it look?",
    "retrieval": "Which images does it find alike?",
    "heads": "Which embedding space do its right answers come from?",
    "similarity": "How alike are an image and its other view, another image, its patches, its texture?",
}
# audits that answer one question together
JOINED = {
    **dict.fromkeys(("cues", "texture", "silhouette", "sketch", "edges", "stylized"), "one_cue"),
    **dict.fromkeys(("corruption", "frequency", "color", "rotation"), "robustness"),
    "domains": "accuracy",
}


def topic_of(name: str) -> str:
    """The topic of a figure, gallery or table: what stands before its first slash."""
    first = clean(name).partition("/")[0]
    return JOINED.get(first, first)


def order(topics: Sequence[str]) -> list[str]:
    """Topics in reading order, each once."""
    known = list(QUESTIONS)
    seen = list(dict.fromkeys(topics))
    return sorted(seen, key=lambda t: known.index(t) if t in known else len(known))


def findings(figures: Sequence[Part], galleries: Sequence[Part], tables: Sequence[Part]) -> Html:
    """A block a topic; figures, then examples, then tables."""
    topics = order([t for parts in (figures, galleries, tables) for t, _ in parts])
    blocks: list[Html] = []
    for topic in topics:
        drawn, shown, listed = ([h for t, h in parts if t == topic] for parts in (figures, galleries, tables))
        question = QUESTIONS.get(topic)
        blocks.append(
            el(
                "section",
                el("h3", title(topic), id=f"topic-{slug(topic)}"),
                el("p", question, class_="question") if question else None,
                el("div", drawn, class_="plots") if drawn else None,
                shown,
                el("div", listed, class_="listed") if listed else None,
                class_="topic",
                aria_labelledby=f"topic-{slug(topic)}",
            )
        )
    links = [el("a", title(t), href=f"#topic-{slug(t)}") for t in topics]
    index = el("p", join([join(" ", a) for a in links]), class_="index") if len(topics) > 3 else None
    return join(index, blocks)


def title(topic: str) -> str:
    """What a topic is called."""
    return spoken(clean(topic)) if topic else "Other"
