"""The page of one probe: its scores, the baseline beside them, tables per class, and its worst and best images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuewise.audits.names import short_names
from cuewise.files import write_text
from cuewise.folders import hold_folder
from cuewise.probes.run import run_probe
from cuewise.report.closing import folded
from cuewise.report.galleries import image_html, is_strip
from cuewise.report.markup import Html, alarm, clean, el, join, name_of, slug
from cuewise.report.numbers import digits
from cuewise.report.page import Section, about_sections, page_html
from cuewise.report.pictures import PictureFile, embed_all
from cuewise.report.reading import mapping, sequence
from cuewise.report.tables import facts, frame, skipped_files, table_html
from cuewise.train.environment import environment

SIDE = 520
MOST_SKIPPED = 50


def probe_into(
    kind: str,
    model: Any,
    out: Path,
    *,
    resume: bool,
    overwrite: bool,
    reads: Sequence[str],
    images: Sequence[str],
    **options: Any,
) -> dict[str, Any]:
    """cuewise probe --out: the result, its page, and what a later call resumes from.

    reads, images: models and sets that must not lie in `out`. options: of `run_probe`
    """
    with hold_folder(out, "probe", resume=resume, overwrite=overwrite, reads=reads, images=images) as held:
        result = run_probe(kind, model, out=out, started=held.started, **options)
        page = write_probe_page(result, out)
        held.finished()
    return {**result, "report": str(page)}


def write_probe_page(result: Mapping[str, Any], folder: Path) -> Path:
    """report.html from the result of a probe."""
    sections: list[Section] = [("scores", "Scores", join(skipped_alarm(result), scores_html(result)))]
    tables = mapping(result.get("tables"))
    if tables:
        sections.append(("classes", "Classes", join([table_html(mapping(t)) for t in tables.values()])))
    if sequence(result.get("pictures")):
        sections.append(("pictures", "Pictures", pictures_html(sequence(result["pictures"]), folder)))
    sections += closing_sections(result)
    title = f"{clean(result['probe'])}: {clean(result['model'])}"
    write_text(folder / "report.html", page_html(title, headline(result), [], sections, []))
    return folder / "report.html"


def closing_sections(result: Mapping[str, Any]) -> list[Section]:
    """Sets, skipped files, software and command."""
    sets = {
        mapping(t).get("name", "?"): {k: v for k, v in mapping(t).items() if k != "name"}
        for t in sequence(result.get("tests"))
    }
    data = join(facts(sets), skipped_html(sequence(result.get("skipped"))))
    return [("data", "Data", data), *about_sections(environment())]


def headline(result: Mapping[str, Any]) -> str:
    """The first score in a sentence, and whether it is beyond the baseline."""
    scores = sequence(result["scores"])
    if not scores:
        return "Nothing was scored."
    first = scores[0]
    text = f"{readable(first['name'])}: {with_interval(first)}."
    found = sequence(result.get("differences"))
    if not found:
        return text
    other = mapping(result.get("baseline"))
    return f"{text} {versus(found[0], untrained(other))}"


def untrained(baseline: Mapping[str, Any]) -> str:
    """What the baseline is called."""
    random = baseline.get("weights") == "random"
    return "random initialisation" if random else clean(baseline.get("model", "the baseline"))


def versus(difference: Mapping[str, Any], other: str) -> str:
    """One sentence: above, below or not distinguishable, by the interval of the paired difference."""
    value, low, high = (difference.get(k) for k in ("value", "low", "high"))
    by = f"{signed(value)} (95 % interval {signed(low)} to {signed(high)}, {difference['protocol'].replace('_', ' ')})"
    if low is None or high is None or value is None:
        return f"Against {other}: {signed(value)}, without an interval."
    if low > 0:
        return f"It beats {other} by {by}: a margin outside the interval."
    if high < 0:
        return f"It is below {other} by {by}."
    return f"It cannot be distinguished from {other}: {by}."


def scores_html(result: Mapping[str, Any]) -> Html:
    """A row per score; with a baseline its score and the difference. Protocols are folded: they are long."""
    other = mapping(result.get("baseline"))
    theirs = {s["name"]: s for s in sequence(other.get("scores"))}
    apart = {d["name"]: d for d in sequence(result.get("differences"))}
    rows = []
    for s in sequence(result["scores"]):
        cells = [with_interval(s)]
        if other:
            cells.append(with_interval(theirs[s["name"]]) if s["name"] in theirs else "—")
            cells.append(change(apart[s["name"]]) if s["name"] in apart else "—")
        cells.append(f"{s['n']:,}")
        numbers = [el("td", cell, class_="number") for cell in cells]
        rows.append(el("tr", el("th", name_of(readable(s["name"])), scope="row"), numbers))
    heads = [
        "score",
        short_names([clean(result["model"])])[0],
        *([untrained(other), "difference"] if other else []),
        "images",
    ]
    protocols = {readable(s["name"]): s["protocol"].replace("_", " ") for s in sequence(result["scores"])}
    return join(frame("Scores", heads, rows, range(1, len(heads))), folded("Protocols", facts(protocols)))


def pictures_html(listed: Sequence[Any], folder: Path) -> Html:
    """Galleries by title; paths stay inside the folder."""
    found = [mapping(p) for p in listed]
    embedded = embed_all([PictureFile(clean(p["file"]), folder, SIDE, i) for i, p in enumerate(found)])
    groups: dict[str, list[Html]] = {}
    for item, picture in zip(found, embedded):
        wide = "tile wide" if picture is not None and is_strip(picture) else "tile"
        caption = el("figcaption", name_of(item.get("caption", "")))
        tile = el("figure", image_html(picture, clean(item.get("caption", ""))), caption, class_=wide)
        groups.setdefault(clean(item.get("title", "")), []).append(tile)
    legend = "Masks: image, truth, prediction; grey does not count. Boxes: truth on the left, found boxes on the right."
    blocks = [
        el(
            "section",
            el("h3", title, id=slug(title)),
            el("div", tiles, class_="gallery broad"),
            class_="panel",
        )
        for title, tiles in groups.items()
    ]
    return join(el("p", legend, class_="quiet"), blocks)


def skipped_alarm(result: Mapping[str, Any]) -> Html | None:
    """What must be known before a number is read."""
    texts = []
    if result.get("weights") == "random":
        texts.append(
            f"{clean(result['model'])} has random weights: the numbers are about an untrained network."
        )
    return alarm([*texts, *(clean(text) for text in sequence(result.get("warnings")))])


def skipped_html(skipped: Sequence[Any]) -> Html | None:
    """Files that were left out, and why."""
    if not skipped:
        return el("p", "No file was skipped.", class_="quiet")
    more = f"The first {MOST_SKIPPED} of {len(skipped):,}." if len(skipped) > MOST_SKIPPED else ""
    return join(
        el("h3", f"{len(skipped):,} skipped"),
        skipped_files("Skipped files", ["skipped", "why"], skipped[:MOST_SKIPPED]),
        el("p", more, class_="quiet"),
    )


def with_interval(score: Mapping[str, Any], show: Callable[[float], str] = digits) -> str:
    """ "0.312 (0.281 to 0.343)"."""
    value, low, high = (score.get(k) for k in ("value", "low", "high"))
    if value is None:
        return "—"
    return show(value) + (f" ({show(low)} to {show(high)})" if low is not None and high is not None else "")


def change(difference: Mapping[str, Any]) -> str:
    """ "+0.031 (+0.012 to +0.050)"."""
    return with_interval(difference, signed)


def signed(value: float | None) -> str:
    return "—" if value is None else ("+" if value >= 0 else "") + digits(value)


NAMES = {
    "miou": "mIoU",
    "pixel_accuracy": "Pixel accuracy",
    "voc07_ap": "VOC07 11-point AP at IoU 0.50 to 0.95",
    "voc07_ap50": "VOC07 11-point AP at IoU 0.50",
    "voc07_ap75": "VOC07 11-point AP at IoU 0.75",
    "coco_ap": "COCO's AP at IoU 0.50 to 0.95",
    "coco_ap50": "COCO's AP at IoU 0.50",
    "coco_ap75": "COCO's AP at IoU 0.75",
    "top1": "Top-1 accuracy",
}


def readable(name: str) -> str:
    """A score's name in words; of a set's path its last two parts."""
    head, _, where = clean(name).partition("/")
    path, mark, options = where.partition("?")
    where = "/".join(path.split("/")[-2:]) + mark + options
    return f"{NAMES.get(head, head)} on {where}" if where else NAMES.get(head, head)
