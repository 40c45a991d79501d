"""Galleries: example images with what each model decided; an image that several models saw is shown once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuewise.report.common import GROUPS, group_name
from cuewise.report.declared import topic_of, words
from cuewise.report.markup import Html, clean, el, join, name_of
from cuewise.report.pictures import WIDE, PagePicture, Picture, PictureFile
from cuewise.report.reading import ReadAudit, mapping, merged_names, sequence

TILE = 288  # longest side of an example image in pixels; shown at half of it on dense screens
VIEW = 1400  # longest side of a whole batch of views
MOST_ITEMS = 60  # of one gallery
MOST_SPLIT = 4  # images of each of the four groups
# How a badge is drawn: solid where the answer is right or follows shape, hatched where it follows texture.
TONES = {"shape": "shape", "texture": "texture", "right": "shape", "same": "shape", "right kind": "texture"}


@dataclass(frozen=True)
class Item:
    """One gallery item of one model."""

    gallery: str
    audit: ReadAudit
    picture: Picture
    caption: str
    badge: str
    alt: str
    of: str = ""  # the image it was made from
    row: str = ""  # in galleries of rows


def gather_items(audits: Sequence[ReadAudit]) -> list[Item]:
    """Every gallery's first items, gallery by gallery and model by model; two models are split by who is right."""
    out: list[Item] = []
    for name in merged_names([a.galleries for a in audits]):
        if is_split(name, audits):
            out += [item for _, pairs in split(name, audits) for pair in pairs for item in pair]
            continue
        for audit in (a for a in audits if name in a.galleries):
            most = audit.galleries[name].get("shown")
            out += _items(name, audit)[: most if isinstance(most, int) else MOST_ITEMS]
    return out


def _items(name: str, audit: ReadAudit) -> list[Item]:
    return [_item(name, audit, mapping(i)) for i in sequence(audit.galleries[name].get("items"))]


def is_split(name: str, audits: Sequence[ReadAudit]) -> bool:
    """Whether a gallery is to be shown by who is right: it asks for that, and there are two models."""
    return len(audits) == 2 and all(a.galleries.get(name, {}).get("split") is True for a in audits)


def split(name: str, audits: Sequence[ReadAudit]) -> list[tuple[str, list[tuple[Item, Item]]]]:
    """(group, pairs of the two models' pictures of one image), for the four groups of who is right."""
    mine, other = ({i.of: i for i in reversed(_items(name, a)) if i.of} for a in audits)
    names = [a.name for a in audits]
    out = []
    for group in GROUPS:
        wanted = tuple("right" if right else "wrong" for right in group)
        pairs = [(mine[k], other[k]) for k in reversed(mine) if k in other]
        pairs = [(x, y) for x, y in pairs if (x.badge, y.badge) == wanted][:MOST_SPLIT]
        out.append((group_name(group, names), pairs))
    return out


def _item(gallery: str, audit: ReadAudit, item: Mapping[str, Any]) -> Item:
    caption = clean(item.get("caption") or "")
    picture = item.get("image")
    return Item(
        gallery,
        audit,
        picture if picture is not None else b"",
        caption,
        clean(item.get("badge") or ""),
        clean(item.get("alt") or caption or "example image"),
        clean(item.get("of") or ""),
        clean(item.get("row") or ""),
    )


def galleries_html(
    audits: Sequence[ReadAudit], items: Sequence[Item], embedded: Sequence[PagePicture | None]
) -> list[tuple[str, Html]]:
    """(topic, block) for each gallery."""
    out = []
    for name in merged_names([a.galleries for a in audits]):
        owners = [a.galleries[name] for a in audits if name in a.galleries]
        title = clean(owners[0].get("title") or words(name))
        pairs = [(i, e) for i, e in zip(items, embedded) if i.gallery == name]
        if not pairs:
            body: Html = el("p", "This gallery is empty.", class_="placeholder")
        elif is_split(name, audits):
            body = _split_html(name, audits, {(i.audit.name, i.of): e for i, e in pairs})
        elif owners[0].get("layout") == "rows":
            body = _rows_html(pairs, alone=len(audits) == 1)
        else:
            broad = any(e is not None and is_strip(e) for _, e in pairs)
            tiles = _tiles(pairs, alone=len(audits) == 1)
            body = el("div", tiles, class_="gallery broad" if broad else "gallery")
        block = el("section", el("h4", title), body, class_="panel")
        out.append((topic_of(name), block))
    return out


def _split_html(
    name: str, audits: Sequence[ReadAudit], found: Mapping[tuple[str, str], PagePicture | None]
) -> Html:
    """Four groups, in each the two models' pictures of an image side by side."""
    parts: list[Html] = []
    for group, pairs in split(name, audits):
        tiles = [
            el(
                "div",
                [_tile([(i, found.get((i.audit.name, i.of)))], alone=False) for i in pair],
                class_="pair",
            )
            for pair in pairs
        ]
        none = el("p", "None among the pictures that were kept.", class_="quiet")
        heading = el("h5", group[0].upper() + group[1:])
        parts.append(join(heading, el("div", tiles, class_="gallery pairs") if tiles else none))
    return join(parts)


def _rows_html(pairs: Sequence[tuple[Item, PagePicture | None]], *, alone: bool) -> Html:
    """One strip per row and model; the models' strips of the same row are below each other."""
    rows: dict[str, dict[str, list[tuple[Item, PagePicture | None]]]] = {}
    for item, picture in pairs:
        rows.setdefault(item.row, {}).setdefault(item.audit.name, []).append((item, picture))
    out: list[Html] = []
    for strips in rows.values():
        same = len({tuple(p.key if p else "" for _, p in strip) for strip in strips.values()}) == 1
        shown = list(strips.values())[:1] if same else list(strips.values())
        for strip in shown:
            owner = strip[0][0].audit
            who = el("p", el("span", class_="dot"), name_of(owner.name), class_=f"who m{owner.place % 8}")
            tiles = [_tile([member], alone=True) for member in strip]
            strip_html = el(
                "div", tiles, class_="strip", tabindex="0", role="group", aria_label=strip[0][0].alt
            )
            out.append(join(None if alone or same else who, strip_html))
    return el("div", out, class_="strips")


def _tiles(pairs: Sequence[tuple[Item, PagePicture | None]], *, alone: bool) -> list[Html]:
    # Models share a tile where the pixels agree; one model's repeated picture stays repeated.
    groups: dict[object, list[tuple[Item, PagePicture | None]]] = {}
    seen: dict[tuple[str, str], int] = {}
    for position, (item, picture) in enumerate(pairs):
        key: object = position
        if picture is not None:
            mine = (item.audit.name, picture.key)
            seen[mine] = seen.get(mine, 0) + 1
            key = (picture.key, seen[mine])
        groups.setdefault(key, []).append((item, picture))
    return [_tile(members, alone=alone) for members in groups.values()]


def _tile(members: Sequence[tuple[Item, PagePicture | None]], *, alone: bool) -> Html:
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
    kind = "tile wide" if picture is not None and is_strip(picture) else "tile"
    return el("figure", image_html(picture, item.alt), caption, class_=kind)


def is_strip(picture: PagePicture) -> bool:
    """Whether a picture is several images in a row."""
    return picture.width > WIDE * picture.height


def _badge(item: Item, *, alone: bool) -> Html:
    tone = TONES.get(item.badge, "other")
    who = (
        None
        if alone
        else el(
            "span", el("span", class_="dot"), name_of(item.audit.name), class_="who", title=item.audit.name
        )
    )
    text = el("span", item.badge, class_=f"badge {tone}") if item.badge else None
    return el("span", who, text, class_=f"decision m{item.audit.place % 8}")


def image_html(picture: PagePicture | None, alt: str) -> Html:
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


def sources(items: Sequence[Item], views: Mapping[str, Picture], folder: Path) -> list[PictureFile]:
    """What `embed_all` is to embed: the views first, since the examples are what may be left out."""
    shown = [PictureFile(picture, folder, VIEW, (name,)) for name, picture in views.items()]
    places = [(i.gallery, i.caption, i.row, i.audit.name if i.row else "") for i in items]
    return shown + [PictureFile(i.picture, i.audit.root, TILE, place) for i, place in zip(items, places)]


def views_section(views: Mapping[str, PagePicture | None]) -> Html:
    """All views with a line that says what they are."""
    text = "Images of the first training batch as the encoder received them, negatives included."
    figures = [
        el("figure", el("h3", name_of(name)), image_html(picture, f"Picture: {name}"), class_="panel views")
        for name, picture in views.items()
    ]
    return join(el("p", text, class_="quiet"), el("div", figures, class_="side"))
