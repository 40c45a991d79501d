"""Galleries: example images with what each model decided; an image that several models saw is shown once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuewise.report.markup import Html, clean, el, join, name_of
from cuewise.report.numbers import spoken
from cuewise.report.pictures import Embedded, Picture, Source
from cuewise.report.reading import Audit, mapping, merged_names, sequence

TILE = 288  # longest side of an example image in pixels; shown at half of it on dense screens
VIEW = 1400  # longest side of a whole batch of views
MOST_ITEMS = 60  # of one gallery


@dataclass(frozen=True)
class Item:
    """One gallery item of one model."""

    gallery: str
    audit: Audit
    picture: Picture
    caption: str
    badge: str
    alt: str


def gather_items(audits: Sequence[Audit]) -> list[Item]:
    """Every gallery's first items, gallery by gallery and model by model."""
    out: list[Item] = []
    for name in merged_names([a.galleries for a in audits]):
        for audit in audits:
            found = sequence(audit.galleries.get(name, {}).get("items"))[:MOST_ITEMS]
            out += [_item(name, audit, mapping(i)) for i in found]
    return out


def _item(gallery: str, audit: Audit, item: Mapping[str, Any]) -> Item:
    caption = clean(item.get("caption") or "")
    picture = item.get("image")
    return Item(
        gallery,
        audit,
        picture if picture is not None else b"",
        caption,
        clean(item.get("badge") or ""),
        clean(item.get("alt") or caption or "example image"),
    )


def galleries_html(
    audits: Sequence[Audit], items: Sequence[Item], embedded: Sequence[Embedded | None]
) -> list[Html]:
    """One block a gallery."""
    out = []
    for name in merged_names([a.galleries for a in audits]):
        titles = [
            clean(a.galleries[name].get("title") or spoken(name)) for a in audits if name in a.galleries
        ]
        pairs = [(i, e) for i, e in zip(items, embedded) if i.gallery == name]
        tiles = _tiles(pairs, alone=len(audits) == 1)
        body = (
            el("div", tiles, class_="gallery")
            if tiles
            else el("p", "This gallery is empty.", class_="placeholder")
        )
        out.append(el("section", el("h3", titles[0]), body, class_="panel"))
    return out


def _tiles(pairs: Sequence[tuple[Item, Embedded | None]], *, alone: bool) -> list[Html]:
    # Models share a tile where the pixels agree; one model's repeated picture stays repeated.
    groups: dict[object, list[tuple[Item, Embedded | None]]] = {}
    seen: dict[tuple[str, str], int] = {}
    for position, (item, picture) in enumerate(pairs):
        key: object = position
        if picture is not None:
            mine = (item.audit.name, picture.key)
            seen[mine] = seen.get(mine, 0) + 1
            key = (picture.key, seen[mine])
        groups.setdefault(key, []).append((item, picture))
    return [_tile(members, alone=alone) for members in groups.values()]


def _tile(members: Sequence[tuple[Item, Embedded | None]], *, alone: bool) -> Html:
    item, picture = members[0]
    same = len({i.caption for i, _ in members}) == 1
    badges: list[Html] = []
    for one, _ in members:
        if one.badge or not alone:
            badges.append(_badge(one, alone=alone))
        if not same:
            badges.append(name_of(one.caption))
    caption = el(
        "figcaption",
        name_of(item.caption) if same and item.caption else None,
        el("span", badges, class_="badges"),
    )
    return el("figure", image_html(picture, item.alt), caption, class_="tile")


def _badge(item: Item, *, alone: bool) -> Html:
    tone = {"shape": "shape", "texture": "texture"}.get(item.badge, "other")
    who = (
        None
        if alone
        else el(
            "span", el("span", class_="dot"), name_of(item.audit.name), class_="who", title=item.audit.name
        )
    )
    said = el("span", item.badge, class_=f"badge {tone}") if item.badge else None
    return el("span", who, said, class_=f"decision m{item.audit.place % 8}")


def image_html(picture: Embedded | None, alt: str) -> Html:
    """The image, or a placeholder of the same shape that says what is missing."""
    if picture is None:
        return el("div", "picture not available", class_="missing", role="img", aria_label=alt)
    tiny = "tiny" if max(picture.width, picture.height) <= 128 else None
    return el(
        "img",
        src=picture.uri,
        alt=alt,
        width=picture.width,
        height=picture.height,
        class_=tiny,
        decoding="async",
    )


def views_html(views: Mapping[str, Embedded | None]) -> list[Html]:
    """The pictures that are given by name, such as each run's first batch of views."""
    return [
        el("figure", el("h3", name_of(name)), image_html(picture, f"Picture: {name}"), class_="panel views")
        for name, picture in views.items()
    ]


def sources(items: Sequence[Item], views: Mapping[str, Picture], folder: Path) -> list[Source]:
    """What `embed_all` is to embed: the views first, since the examples are what may be left out."""
    shown = [Source(picture, folder, VIEW, (name,)) for name, picture in views.items()]
    return shown + [Source(i.picture, i.audit.root, TILE, (i.gallery, i.caption)) for i in items]


def views_section(views: Mapping[str, Embedded | None]) -> Html:
    """All views with a line that says what they are."""
    said = "Images of the first training batch as the encoder received them, negatives included."
    return join(el("p", said, class_="quiet"), views_html(views))
