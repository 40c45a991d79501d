"""A contact sheet: what the encoder is shown, one row per image and one column per role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from cuewise.errors import UserError

_PAPER, _INK, _FAINT = (255, 255, 255), (32, 36, 44), (112, 118, 130)
_MARGIN = 20
_GAP = 10


def contact_sheet(
    columns: Mapping[str, NDArray[np.uint8]], labels: Sequence[str] = (), *, rows: int = 8, cell: int = 160
) -> Image.Image:
    """A picture with one column per role (its name as heading) and one row per image.

    columns: role → N×H×W×3; labels: a caption for each row; rows: how many images at most; cell: pixels of a
    picture's longer side. Small views are enlarged by whole factors with hard edges: every pixel is seen.
    """
    if not columns or min(len(views) for views in columns.values()) == 0:
        raise UserError("contact sheet: there is no view to show; give each role at least one image")
    count = min(rows, *(len(views) for views in columns.values()))
    heading = ImageFont.load_default(size=16)
    caption = ImageFont.load_default(size=12)
    pictures = {role: [_fitted(view, cell) for view in views[:count]] for role, views in columns.items()}
    widths = {role: max(_text_width(heading, role), *(p.width for p in ps)) for role, ps in pictures.items()}
    heights = [max(pictures[role][i].height for role in columns) for i in range(count)]
    margin_left = _MARGIN + (max(_text_width(caption, t) for t in labels) + _GAP if labels else 0)
    top = _MARGIN + 16 + _GAP
    width = margin_left + sum(widths.values()) + _GAP * (len(columns) - 1) + _MARGIN
    sheet = Image.new("RGB", (width, top + sum(heights) + _GAP * (count - 1) + _MARGIN), _PAPER)
    draw = ImageDraw.Draw(sheet)
    x = margin_left
    for role, column in pictures.items():
        draw.text((x + widths[role] / 2, _MARGIN + 14), role, fill=_INK, font=heading, anchor="ms")
        y = top
        for picture, height in zip(column, heights):
            sheet.paste(picture, (x + (widths[role] - picture.width) // 2, y))
            y += height + _GAP
        x += widths[role] + _GAP
    y = top
    for text, height in zip(labels, heights):
        draw.text((margin_left - _GAP, y + height / 2), text, fill=_FAINT, font=caption, anchor="rm")
        y += height + _GAP
    return sheet


def _fitted(view: NDArray[np.uint8], cell: int) -> Image.Image:
    picture = Image.fromarray(np.ascontiguousarray(view))
    longest = max(picture.size)
    if longest <= cell:
        factor = cell // longest
        return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
    ratio = cell / longest
    size = (max(1, round(picture.width * ratio)), max(1, round(picture.height * ratio)))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _text_width(font: ImageFont.ImageFont | ImageFont.FreeTypeFont, text: str) -> int:
    return int(np.ceil(font.getlength(text)))
