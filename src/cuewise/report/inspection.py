"""The page of an inspection: what each cue alone gives away, copies, balance, broken files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuewise.data import BrokenImage, Image
from cuewise.files import write_text
from cuewise.inspection.clue import CLUES
from cuewise.inspection.copies import Pair, copies_between
from cuewise.inspection.gather import look_at
from cuewise.inspection.run import Inspected
from cuewise.report.closing import command_html
from cuewise.report.figures import Figure, figure_html, figure_of, read_series
from cuewise.report.galleries import image_html
from cuewise.report.markup import Html, el, join, name_of, slug
from cuewise.report.page import Section, page_html
from cuewise.report.pictures import PictureFile, embed_all
from cuewise.report.tables import frame, skipped_files
from cuewise.scores import show_share, show_span

EXAMPLES = 6  # per clue
PAIRS = 6  # of copies
MOST_ROWS = 50
TILE = 160
Tile = tuple[Image, str]  # a picture of a gallery and its caption


def write_inspection(
    sets: Sequence[Inspected], document: Mapping[str, Any], folder: Path, command: str
) -> Path:
    """report.html from what was found and from inspect.json."""
    figures: list[Figure] = []
    sections: list[Section] = []
    for one, found in zip(sets, document["sets"]):
        start = len(figures)
        figures += _figures(one, found)
        drawn = [figure_html(f, i) for i, f in enumerate(figures[start:], start)]
        sections.append((slug(one.name), f"Set {one.name}", _set_body(one, found, drawn)))
    if document["shared"]:
        sections.insert(0, ("shared", "Images that sets share", _shared(sets, document["shared"])))
    sections.append(("command", "Command", command_html(command)))
    title = "What the images give away"
    page = page_html(title, headline(document), [], sections, figures)
    write_text(folder / "report.html", page)
    return folder / "report.html"


def headline(document: Mapping[str, Any]) -> str:
    """The strongest shortcut of each set, leaks between sets, contradictory labels; first, whether the labels are any."""
    doubts = [s["doubt"] for s in document["sets"] if s["doubt"]]
    return " ".join([*doubts, *(_sentence(s) for s in document["sets"]), *leaks(document)])


def _sentence(found: Mapping[str, Any]) -> str:
    where = found["name"]
    if found["not_judged"]:
        return f"{where}: no clue was judged ({found['not_judged']})."
    shown = {name: clue for name, clue in found["clues"].items() if clue["predicts"]}
    unclear = [name for name, clue in found["clues"].items() if clue["unclear"]]
    if not shown:
        return f"{where}: {_unclear(found, unclear) if unclear else _nothing(found)}"
    ranked = sorted(shown, key=lambda name: (not shown[name]["shortcut"], -shown[name]["value"]))
    first = shown[ranked[0]]
    others = [name for name in ranked[1:] if shown[name]["shortcut"]]
    more = f" So do, less well, {', '.join(others)}." if others else ""
    more += f" Not shown with {_judged(found):,} images: {', '.join(unclear)}." if unclear else ""
    return (
        f"{where}: {_lower(CLUES.get(ranked[0]).subject)} alone predicts the class of {show_share(first['value'])} of the "
        f"images (95 % interval {show_span(first['low'], first['high'])}); guessing gives {show_share(first['guessing'])}.{more}"
    )


def _unclear(found: Mapping[str, Any], names: Sequence[str]) -> str:
    """Cues above guessing that a shuffling of the labels reached, too: neither shown nor excluded."""
    first, *others = sorted(names, key=lambda name: -found["clues"][name]["value"])
    clue = found["clues"][first]
    more = f" Likewise {', '.join(others)}." if others else ""
    return (
        f"not shown with {_judged(found):,} images: {_lower(CLUES.get(first).subject)} alone reaches "
        f"{show_share(clue['value'])} (95 % interval {show_span(clue['low'], clue['high'])}) and guessing "
        f"{show_share(clue['guessing'])}, but shuffled labels reached "
        f"{show_share(clue['shuffled_highest'])}; more images would decide.{more}"
    )


def _nothing(found: Mapping[str, Any]) -> str:
    tried = found["clues"]
    guessing = show_share(max(clue["guessing"] for clue in tried.values()))
    return (
        f"no single cue was shown to predict the class better than guessing ({guessing}) with {_judged(found):,} images; "
        f"tried: {', '.join(tried)}."
    )


def _judged(found: Mapping[str, Any]) -> int:
    return int(found["images"] - found["left_out"])


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def leaks(document: Mapping[str, Any]) -> list[str]:
    """What would make a score on these sets wrong, one sentence each."""
    out = [
        f"{s['same'] + s['near']} of {s['images']} images of {s['first']} are in {s['second']} as well: a score on one after "
        "training on the other measures memory."
        for s in document["shared"]
        if s["same"] + s["near"]
    ]
    odd = [(s["name"], s["copies"]["under_two_labels"]) for s in document["sets"]]
    return out + [f"{name}: {n} copies of an image have another label." for name, n in odd if n]


def _figures(one: Inspected, found: Mapping[str, Any]) -> list[Figure]:
    clues = sorted(found["clues"].items(), key=lambda item: -item[1]["value"])
    out: list[Figure] = []
    if clues:
        names = [name for name, _ in clues]
        values = {
            "clue alone": {"y": [c["value"] for _, c in clues], "low": [c["low"] for _, c in clues],
                           "high": [c["high"] for _, c in clues]},
            "guessing": {"y": [c["guessing"] for _, c in clues]},
            "best of shuffled labels": {"y": [c["shuffled_highest"] for _, c in clues]},
        }  # fmt: skip
        out.append(_bars("How well one cue alone predicts the class", "cue", "accuracy", names, values))
    if found["classes"]:
        counts = list(found["classes"].values())
        out.append(
            _bars("Images per class", "class", "images", list(found["classes"]), {"images": {"y": counts}})
        )
    return out


def _bars(title: str, x: str, y: str, names: Sequence[str], values: Mapping[str, Any]) -> Figure:
    series = [
        read_series({"x": names, **v}, "bars", model="", place=i, label=label, position=i)
        for i, (label, v) in enumerate(values.items())
    ]
    return figure_of("bars", title, series, xlabel=x, ylabel=y)


def _set_body(one: Inspected, found: Mapping[str, Any], drawn: Sequence[Html]) -> Html:
    return join(
        el("div", _facts(found), class_="alarm" if found["copies"]["under_two_labels"] else "panel"),
        el("div", drawn, class_="plots"),
        _clue_table(found),
        [_examples(one, name) for name in one.clues if one.clues[name].predicts],
        _copies_gallery("Copies within the set", one, one, [*one.copies.same, *one.copies.near]),
        _broken(found),
    )


def _facts(found: Mapping[str, Any]) -> list[Html]:
    copies, labels = found["copies"], found["labels"]
    lines = [
        f"{found['images']:,} readable images of {len(found['classes'])} classes (labels: {labels}).",
        f"{copies['same']} exact and {copies['near']} near copies within the set; {copies['under_two_labels']} exact copies "
        "have another label.",
        f"{found['broken']['count']} files could not be used.",
    ]
    if found["left_out"]:
        lines.append(
            f"{found['left_out']} images of classes with too few images, or without a label, were not judged."
        )
    if found["not_judged"]:
        lines.append(f"No clue was judged: {found['not_judged']}.")
    lines += [f"Left out: {clue}; it needs {needs}." for clue, needs in found["lacking"].items()]
    return [el("p", line) for line in lines]


def _clue_table(found: Mapping[str, Any]) -> Html | None:
    if not found["clues"]:
        return None
    rows = []
    for name, c in sorted(found["clues"].items(), key=lambda item: -item[1]["value"]):
        best = sorted(c["by_class"].items(), key=lambda item: -item[1])[:3]
        verdict = "not shown: shuffled labels reach it" if c["unclear"] else "not shown above guessing"
        verdict = "predicts the class" if c["predicts"] else verdict
        cells = [show_share(c["value"]), show_span(c["low"], c["high"]), show_share(c["guessing"]),
                 show_share(c["shuffled_highest"]), verdict, ", ".join(f"{k} {show_share(v)}" for k, v in best)]  # fmt: skip
        rows.append(el("tr", el("th", name, scope="row", title=c["summary"]), [el("td", v) for v in cells]))
    heads = [
        "cue alone",
        "accuracy",
        "95 % interval",
        "guessing",
        "best of shuffled labels",
        "verdict",
        "best classes",
    ]
    return frame("Cues", heads, rows)


def _examples(one: Inspected, name: str) -> Html | None:
    """Images of which the clue is surest, beside what it sees of them, from different classes where it can."""
    judged, clue = one.clues[name], CLUES.get(name)()
    truth = np.searchsorted(np.unique(one.labels[one.rows]), one.labels[one.rows])
    right = np.flatnonzero(judged.predicted == truth)
    order = right[np.argsort(-judged.margin[right], kind="stable")]
    _, first = np.unique(truth[order], return_index=True)  # the surest of each class
    chosen = order[np.sort(first)][:EXAMPLES]
    tiles = []
    for row in one.rows[chosen]:
        try:
            sample = one.data[int(one.found.index[row])]
        except BrokenImage:
            continue
        look = look_at(one.data, sample)
        left = clue.picture(look)
        strip = look.small if left is None else np.concatenate([look.small, left], 1)
        tiles.append((strip, one.classes[int(one.labels[row])]))
    title = f"{clue.subject} alone: images it predicts most surely" + (
        "" if not tiles else ", and what it sees"
    )
    return _gallery(title, tiles)


def _copies_gallery(title: str, first: Inspected, second: Inspected, pairs: Sequence[Pair]) -> Html | None:
    tiles = []
    for i, j in pairs[:PAIRS]:
        try:
            both = [
                look_at(s.data, s.data[int(s.found.index[row])]).small for s, row in ((first, i), (second, j))
            ]
        except BrokenImage:
            continue
        tiles.append((np.concatenate(both, 1), f"{first.image_name(i)} = {second.image_name(j)}"))
    return _gallery(title, tiles)


def _gallery(title: str, tiles: Sequence[Tile]) -> Html | None:
    if not tiles:
        return None
    found = embed_all([PictureFile(picture, Path("."), 2 * TILE, n) for n, (picture, _) in enumerate(tiles)])
    figures = [
        el("figure", image_html(p, caption), el("figcaption", name_of(caption)), class_="tile wide")
        for p, (_, caption) in zip(found, tiles)
    ]
    return el("section", el("h3", title), el("div", figures, class_="gallery broad"), class_="panel")


def _shared(sets: Sequence[Inspected], shared: Sequence[Mapping[str, Any]]) -> Html:
    named = {s.name: s for s in sets}
    rows = [
        el("tr", el("th", name_of(s["first"]), scope="row"), el("td", name_of(s["second"])),
           el("td", f"{s['images']:,}"), el("td", f"{s['same']:,}"), el("td", f"{s['near']:,}"))
        for s in shared
    ]  # fmt: skip
    galleries = []
    for s in shared:
        a, b = named[s["first"]], named[s["second"]]
        if s["same"] + s["near"]:
            found = copies_between(a.found, b.found)
            galleries.append(_copies_gallery(f"{a.name} and {b.name}", a, b, [*found.same, *found.near]))
    heads = ["set", "and set", "images of the first", "also in the second", "nearly in the second"]
    return join(frame("Shared images", heads, rows, (2, 3, 4)), galleries)


def _broken(found: Mapping[str, Any]) -> Html | None:
    files = found["broken"]["files"][:MOST_ROWS]
    return skipped_files("Files that could not be used", ["file", "why"], files) if files else None
