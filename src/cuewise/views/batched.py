"""The operations of a view on whole batches in torch, for any device: the same arithmetic as on the host, image by image.

Images are N×H×W×3, whole grey levels 0–255 as float32. What was drawn comes as tensors in host memory, so that which image
takes which branch is known without asking the device. Colours, blur, solarising, turns and patches equal the host's bytes; a
crop may differ by one grey level, since its weights are not rounded to 22 bits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cuewise.cues.diffusion import conductance
from cuewise.views import color_kernel
from cuewise.views.blur_kernel import BITS, PASSES, box_radius

PIECE = 2**24  # values of padded images that are resized at a time


def rows_where(mask: Tensor, device: torch.device) -> Tensor | None:
    """Numbers of the images where a mask in host memory is true, on the device; None for none."""
    rows = mask.nonzero().flatten()
    return rows.to(device, non_blocking=True) if len(rows) else None


def luma(x: Tensor) -> Tensor:
    """N×H×W: Pillow's grey, (19595 R + 38470 G + 7471 B + 32768) / 65536 without its fraction; exact below 2^24."""
    weighed = 19595 * x[..., 0] + 38470 * x[..., 1] + 7471 * x[..., 2]
    return ((weighed + 32768) / 65536).floor()


def as_bytes(x: Tensor) -> Tensor:
    """Cut to 0 … 255, without the fraction."""
    return x.clamp(0, 255).floor()


def filter_weights(first: Tensor, length: Tensor, size: int, columns: int, reverse: Tensor) -> Tensor:
    """N×size×columns: triangle filter of `length` pixels from `first` on to `size`, zero elsewhere; reversed where asked."""
    place = torch.arange(size, device=first.device, dtype=torch.float64)
    place = torch.where(reverse[:, None], size - 1 - place, place)  # N×S
    scale = length.double()[:, None] / size
    support = scale.clamp(min=1)
    middle = (place + 0.5) * scale
    pixel = torch.arange(columns, device=first.device)[None] - first[:, None]  # N×W, counted within the crop
    inside = (pixel >= 0) & (pixel < length[:, None])
    away = (pixel[:, None] - middle[:, :, None] + 0.5) / support[:, :, None]  # N×S×W
    weights = (1 - away.abs()).clamp(min=0) * inside[:, None]
    return (weights / weights.sum(2, keepdim=True)).float()


def cropped(images: Tensor, crops: Tensor, flips: Tensor, size: int) -> Tensor:
    """N×S×S×3 from padded images N×H×W×3 uint8; crops N×4 (top, left, height, width) and flips in host memory."""
    out = torch.empty(len(images), size, size, 3, device=images.device)
    step = max(1, PIECE // images[0].numel())
    for start in range(0, len(images), step):
        piece = slice(start, start + step)
        out[piece] = _cropped(images[piece], crops[piece], flips[piece], size)
    return out


def _cropped(images: Tensor, crops: Tensor, flips: Tensor, size: int) -> Tensor:
    device, (_, height, width, _) = images.device, images.shape
    top, left, h, w = crops.to(device, non_blocking=True).unbind(1)
    down = filter_weights(top, h, size, height, torch.zeros_like(top, dtype=torch.bool))  # N×S×H
    across = filter_weights(left, w, size, width, flips.to(device, non_blocking=True))  # N×S×W
    shrink_y, shrink_x = crops[:, 2] - size, crops[:, 3] - size
    vertical = (shrink_y > 0) & (shrink_y > 2 * shrink_x)  # Pillow's order of the passes
    x = images.float()
    out = torch.empty(len(images), size, size, 3, device=device)
    if (rows := rows_where(~vertical, device)) is not None:
        middle = _rounded(torch.einsum("nsw,nhwc->nhsc", across[rows], x[rows]))
        out[rows] = _rounded(torch.einsum("nth,nhsc->ntsc", down[rows], middle))
    if (rows := rows_where(vertical, device)) is not None:
        middle = _rounded(torch.einsum("nth,nhwc->ntwc", down[rows], x[rows]))
        out[rows] = _rounded(torch.einsum("nsw,ntwc->ntsc", across[rows], middle))
    return out


def _rounded(x: Tensor) -> Tensor:
    return (x + 0.5).floor().clamp(0, 255)


def turned_hue(x: Tensor, shift: Tensor) -> Tensor:
    """To 8-bit HSV, hue + shift modulo 256, and back; shift N."""
    r, g, b = x.unbind(-1)
    high, low = x.amax(-1), x.amin(-1)
    middle = r + g + b - high - low
    fraction = (high - middle) / (high - low).clamp(min=1)
    is_r, is_g = r == high, g == high
    first_low = torch.where(is_r, b <= g, torch.where(is_g, b <= r, r <= g))
    base = torch.where(is_r, 0.0, torch.where(is_g, 2.0, 4.0)) + torch.where(first_low == is_r, 1.0, -1.0)
    turn = torch.where(first_low != is_r, base + fraction, base - fraction) / 6
    turn = torch.where(turn < 0, turn + 1, turn)
    hue = (turn * 255).floor() + shift[:, None, None]
    hue = torch.where(hue >= 256, hue - 256, hue) * 6
    chroma = high * ((high - low) * 255 / high.clamp(min=1)).floor()
    channels = []
    for offset in (1275.0, 765.0, 255.0):
        a = hue + offset
        a = torch.where(a >= 1530, a - 1530, a)
        weight = torch.minimum(a, 1020 - a).clamp(0, 255)
        channels.append(high - (chroma * weight * torch.tensor(1 / 65025, device=x.device) + 0.5).floor())
    return torch.stack(channels, -1)


def jittered(x: Tensor, order: Tensor, factors: Tensor, shift: Tensor) -> Tensor:
    """Colour jitter: order N×4 (codes of color_kernel, 0: nothing more), factors N×3, shift N, all in host memory."""
    device = x.device
    on_device = factors.to(device, non_blocking=True), shift.to(device, non_blocking=True).float()
    for place in range(order.shape[1]):
        for code in color_kernel.OPERATIONS:
            rows = rows_where(order[:, place] == code, device)
            if rows is not None:
                x[rows] = _operated(x[rows], code, on_device[0][rows], on_device[1][rows])
    return x


def _operated(x: Tensor, code: int, factors: Tensor, shift: Tensor) -> Tensor:
    if code == color_kernel.HUE:
        return turned_hue(x, shift)
    b, c, s = (f[:, None, None, None] for f in factors.unbind(1))
    if code == color_kernel.BRIGHTNESS:
        return as_bytes(b * x)
    if code == color_kernel.SATURATION:
        grey = luma(x)[..., None]
        return as_bytes(grey + s * (x - grey))
    mean = (luma(x).mean((1, 2), dtype=torch.float64) + 0.5).floor().float()[:, None, None, None]
    return as_bytes(mean + c * (x - mean))


def blurred(x: Tensor, sigma: Tensor) -> Tensor:
    """Pillow's Gaussian: three extended box blurs along each axis; sigma N in host memory, 0 leaves an image alone."""
    exact = torch.tensor([box_radius(float(s)) if s > 0 else -1.0 for s in sigma])
    for radius in sorted({int(e) for e in exact.tolist() if e >= 0}):
        mask = (exact >= 0) & (exact.int() == radius)
        rows = rows_where(mask, x.device)
        assert rows is not None
        inner = (2.0**BITS / (exact[mask] * 2 + 1)).long()
        edge = (2**BITS - (2 * radius + 1) * inner) // 2
        weights = [w.to(x.device, non_blocking=True)[:, None, None, None] for w in (inner, edge)]
        part = x[rows].long()
        for axis in (2, 1):
            for _ in range(PASSES):
                part = _boxed(part, axis, radius, *weights)
        x[rows] = part.to(x.dtype)
    return x


def _boxed(x: Tensor, axis: int, radius: int, inner: Tensor, edge: Tensor) -> Tensor:
    """One box blur of whole numbers along an axis; the border pixel is repeated."""
    n, pad = x.shape[axis], radius + 1
    ends = [x.narrow(axis, 0, 1)] * pad, [x.narrow(axis, n - 1, 1)] * pad
    padded = torch.cat([*ends[0], x, *ends[1]], axis)
    whole = sum(padded.narrow(axis, 1 + k, n) for k in range(2 * radius + 1))
    outer = padded.narrow(axis, 0, n) + padded.narrow(axis, 2 * pad, n)
    return (whole * inner + outer * edge + 2 ** (BITS - 1)) >> BITS


def patched(x: Tensor, sides: Tensor, corners: Tensor, turns: Tensor) -> Tensor:
    """N×S×S×3 of tiles of each image: sides N, corners N×T×2 (top, left), turns N×T×3 (quarters, vflip, hflip), row by row."""
    n, size = x.shape[:2]
    device = x.device
    d = sides.to(device, non_blocking=True)[:, None, None]  # N×1×1
    line = torch.arange(size, device=device)
    y, column = line[None, :, None], line[None, None, :]
    tile = (y // d) * ((size + d - 1) // d) + column // d  # N×S×S
    i, j = y % d + 0 * column, column % d + 0 * y
    flat = tile.flatten(1)

    def of_tile(values: Tensor) -> Tensor:
        return values.to(device, non_blocking=True).gather(1, flat).view(n, size, size)

    if bool(turns.any()):  # in host memory
        quarters, vflip, hflip = (of_tile(t) for t in turns.unbind(2))
        i = torch.where(vflip > 0, d - 1 - i, i)
        j = torch.where(hflip > 0, d - 1 - j, j)
        turned = (i, j, d - 1 - i, d - 1 - j), (j, d - 1 - i, d - 1 - j, i)  # by 0, 1, 2, 3 quarters
        i, j = (torch.stack(places).gather(0, quarters[None])[0] for places in turned)
    source = (of_tile(corners[..., 0]) + i) * size + of_tile(corners[..., 1]) + j
    return x.flatten(1, 2).gather(1, source.flatten(1)[..., None].expand(-1, -1, 3)).view_as(x)


def diffused(images: Tensor, sizes: Tensor, steps: Tensor, kappa: float, gamma: float, option: int) -> Tensor:
    """Padded images N×H×W×3 uint8 after each its own number of steps of diffusion; sizes N×2 and steps N in host memory.

    No flux crosses the border of an image into its padding.
    """
    device = images.device
    x = images.permute(0, 3, 1, 2).float()
    height, width = (s[:, None, None, None] for s in sizes.to(device, non_blocking=True).unbind(1))
    rows = torch.arange(x.shape[2], device=device)[None, None, :, None]
    columns = torch.arange(x.shape[3], device=device)[None, None, None, :]
    # whether both pixels of a difference are inside
    open_to = {2: rows[:, :, 1:] < height, 3: columns[..., 1:] < width}
    left = steps.to(device, non_blocking=True)[:, None, None, None]
    for step in range(int(steps.max())):
        change = torch.zeros_like(x)
        for axis, inside in open_to.items():
            n = x.shape[axis]
            delta = (x.narrow(axis, 1, n - 1) - x.narrow(axis, 0, n - 1)) * inside
            flux = conductance(delta.square() / kappa**2, option) * delta
            change.narrow(axis, 0, n - 1).add_(flux)
            change.narrow(axis, 1, n - 1).sub_(flux)
        x = x + gamma * (step < left) * change
    return x.round().clamp(0, 255).permute(0, 2, 3, 1).to(torch.uint8)
