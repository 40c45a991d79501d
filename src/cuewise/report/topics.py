"""Findings by question: each audit's figures, examples and tables together, folded; the first topic is open."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.report.declared import question_of, rank_of, words
from cuewise.report.markup import Html, clean, el, join, slug

Part = tuple[str, Html]  # topic and a block of it


def order(topics: Sequence[str]) -> list[str]:
    """Topics in reading order, each once."""
    return sorted(dict.fromkeys(topics), key=rank_of)


def topics_of(*parts: Sequence[Part]) -> list[str]:
    """The topics that these blocks belong to, in reading order."""
    return order([topic for part in parts for topic, _ in part])


def findings(figures: Sequence[Part], galleries: Sequence[Part], tables: Sequence[Part]) -> Html:
    """One block per topic; figures, then examples, then tables."""
    blocks: list[Html] = []
    for place, topic in enumerate(topics_of(figures, galleries, tables)):
        drawn, shown, listed = ([h for t, h in parts if t == topic] for parts in (figures, galleries, tables))
        question = question_of(topic)
        heading = el(
            "summary",
            el("h3", title(topic), id=anchor(topic)),
            el("span", question, class_="question") if question else None,
        )
        blocks.append(
            el(
                "details",
                heading,
                el("div", drawn, class_="plots") if drawn else None,
                shown,
                el("div", listed, class_="listed") if listed else None,
                class_="topic",
                open=place == 0,
            )
        )
    return join(blocks)


def anchor(topic: str) -> str:
    """Where links to a topic lead."""
    return f"topic-{slug(topic)}"


def title(topic: str) -> str:
    """What a topic is called."""
    return words(clean(topic)) if topic else "Other"
