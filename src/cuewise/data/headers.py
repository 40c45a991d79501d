"""What the first bytes of a file say: which kind of image it is, and how a JPEG is laid out."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from PIL import features

_ENDINGS = ["jpg", "jpeg", "jfif", "png", "bmp", "tif", "tiff", "gif", "ppm", "pgm", "pbm", "pnm"]
ENDINGS = frozenset(
    ending.encode() for ending in _ENDINGS + [e for e in ("webp", "avif") if features.check(e)]
)
HEAD = 32  # bytes that `kind` needs
MAX_BYTES = 1 << 29  # of one image file; a larger one is refused before it is read


def has_image_ending(name: bytes) -> bool:
    """Whether the name ends like an image's, in any case."""
    dot = name.rfind(b".")
    return dot >= 0 and name[dot + 1 :].lower() in ENDINGS


_FORMATS = {
    "jpeg": rb"\xff\xd8\xff",
    "png": rb"\x89PNG\r\n\x1a\n",
    "webp": rb"RIFF....WEBP",
    "gif": rb"GIF8",
    "tiff": rb"II[*+]\0|MM\0[*+]",
    "bmp": rb"BM",
    "ppm": rb"P[1-6]\s",
    "avif": rb"....ftypavi[fs]",
}


def kind(head: bytes) -> str | None:
    """The format that the first bytes declare, or None."""
    return next((name for name, start in _FORMATS.items() if re.match(start, head, re.DOTALL)), None)


def complaint(size: int, head: bytes) -> str | None:
    """Why a file with an image's ending is none, or None where it may be one."""
    if size == 0:
        return "empty file"
    if not 0 < size <= MAX_BYTES:
        return f"declares {size} bytes, of which at most {MAX_BYTES} are read"
    if kind(head) is None:
        return "not an image (its first bytes belong to no known format)"
    return None


class JpegHeader(NamedTuple):
    """What decides how a JPEG is decoded; `plain` ones go to libjpeg-turbo."""

    width: int
    height: int
    components: int
    bits: int
    orientation: int
    plain: bool
    progressive: int  # where the frame header of a progressive JPEG lies, else 0
    uneven: bool  # colours have fewer samples along one axis only


_ALONE = frozenset([0x01, *range(0xD0, 0xD8)])  # markers without a length
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_USUAL = frozenset([0xC0, 0xC1, 0xC2])  # baseline, extended, progressive; not lossless nor arithmetic


def read_jpeg_header(data: bytes) -> JpegHeader | None:
    """Walk the segments up to the frame header; None where they make no sense."""
    at, orientation, n = 2, 1, len(data)
    while at + 4 <= n:
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in _ALONE:
            at += 2
            continue
        if marker in (0xD9, 0xDA):  # end or scan before any frame
            return None
        length = (data[at + 2] << 8) | data[at + 3]
        body = at + 4
        if marker in _FRAMES:
            if length < 8 or body + 6 > n:
                return None
            bits, height, width, components = struct.unpack_from(">BHHB", data, body)
            plain = marker in _USUAL and bits == 8 and components in (1, 3) and height > 0 and width > 0
            progressive = body if marker == 0xC2 else 0
            factors = [(b >> 4, b & 15) for b in data[body + 7 : body + 6 + 3 * components : 3]]
            across, down = (
                max(f[k] for f in factors) // max(1, factors[-1][k]) if factors else 1 for k in (0, 1)
            )
            return JpegHeader(
                width, height, components, bits, orientation, plain, progressive, across != down
            )
        if marker == 0xE1 and data[body : body + 6] == b"Exif\0\0":
            orientation = exif_orientation(data[body + 6 : at + 2 + length])
        at += 2 + length
    return None


def missing_scans(data: bytes, header: JpegHeader) -> bool:
    """Whether a progressive JPEG ends before every coefficient has come in full precision.

    Decoders show such a file without a warning, only blurred: it was cut between two scans.
    """
    at = header.progressive
    if at + 6 + 3 * header.components > len(data):
        return True
    # missing bits, by component
    precision = {data[at + 6 + 3 * k]: [14] * 64 for k in range(header.components)}
    while (at := data.find(b"\xff\xda", at)) >= 0:  # cannot occur in coded data, where 0xff is followed by 0
        n = data[at + 4] if at + 4 < len(data) else 0
        if 1 <= n <= 4 and at + 8 + 2 * n <= len(data) and data[at + 2 : at + 4] == bytes([0, 6 + 2 * n]):
            first, last, bits = data[at + 5 + 2 * n : at + 8 + 2 * n]
            for component in data[at + 5 : at + 5 + 2 * n : 2]:
                if component in precision and last < 64:
                    precision[component][first : last + 1] = [bits & 15] * (last + 1 - first)
        at += 2
    return any(any(bits) for bits in precision.values())


def exif_orientation(tiff: bytes) -> int:
    """Tag 0x0112 of the first directory of an EXIF block; 1 where it is missing or makes no sense."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None or len(tiff) < 10:
        return 1
    (start,) = struct.unpack_from(order + "I", tiff, 4)
    if start + 2 > len(tiff):
        return 1
    (count,) = struct.unpack_from(order + "H", tiff, start)
    for entry in range(start + 2, start + 2 + 12 * count, 12):
        if entry + 12 > len(tiff):
            break
        tag, form, _ = struct.unpack_from(order + "HHI", tiff, entry)
        if tag == 0x0112:
            value = struct.unpack_from(order + ("H" if form == 3 else "I"), tiff, entry + 8)[0]
            return int(value) if 1 <= value <= 8 else 1
    return 1
