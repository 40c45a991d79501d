"""From an image's key to its picture: pose, palette, background and objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.data.shapes.hashing import draw, mix
from cuewise.data.shapes.raster import (
    FRAME,
    POSE,
    SILHOUETTE,
    SKETCH,
    TEXTURED,
    Ints,
    background,
    cosine,
    coverage,
    paint,
    paint_texture,
    palette,
    plain,
    sine,
)
from cuewise.data.shapes.textures import TURN
from cuewise.kernels import kernel, part

FULL_FRAME = 3  # beside TEXTURED, SILHOUETTE and SKETCH: texture without an object
SCENE = 4

# An image's independent random streams.
LABELS, PLACE, COLOURS, GROUND, OBJECT = 1, 2, 3, 4, 16

# keys and the background's rank of sets whose colours are alike; the background is slow noise
ONE_PALETTE, ONE_GROUND, MIDDLE = np.uint64(12345), np.uint64(7), 1

_SCALE = 16777  # 2.14 scale at which the outline's sheet (64000 units) fills the frame


@part
def single_pose(key: Any, turn: int, pose: Ints) -> None:
    """One large object, anywhere it fits; `turn` is the largest rotation, in steps of TURN."""
    share = draw(key, 0, 740, 1040)  # of 1000
    slack = FRAME * (1160 - share) // 2200
    pose[0] = FRAME // 2 + draw(key, 1, -slack, slack)
    pose[1] = FRAME // 2 + draw(key, 2, -slack, slack)
    pose[2] = draw(key, 3, -turn, turn)
    pose[3] = _SCALE * share // 1000
    pose[4] = 2 * draw(key, 4, 0, 1) - 1
    pose[5] = draw(key, 5, 800, 3000)


@kernel
def scene_poses(key: Any, count: int, turn: int, poses: Ints) -> None:
    """`count` smaller objects, apart from each other where a gap is found in 32 tries each; a set of one has it large."""
    if len(poses) == 1:
        single_pose(key, turn, poses[0])
        poses[0, 5] = 0  # no bend, as in every scene: boxes are of the outline itself
        return
    for j in range(count):
        own = mix(key, np.uint64(OBJECT + j))
        share = draw(own, 0, 0, 70) + max(240, 510 - 55 * count)  # of 1000; fewer objects are larger
        half = FRAME * share // 2000
        best = np.int64(-1) << 60
        for trial in range(32):
            x = draw(own, 16 + 2 * trial, half, FRAME - half)
            y = draw(own, 17 + 2 * trial, half, FRAME - half)
            gap = np.int64(1) << 30
            for i in range(j):
                # gap between the sheets, seen as squares
                apart = max(abs(x - poses[i, 0]), abs(y - poses[i, 1]))
                gap = min(gap, apart - half - (poses[i, 3] * 32000 >> 14))
            if gap > best:
                best = gap
                poses[j, 0], poses[j, 1] = x, y
            if gap > 0:
                break
        poses[j, 2] = draw(own, 1, -turn, turn)
        poses[j, 3] = _SCALE * share // 1000
        poses[j, 4] = 2 * draw(own, 2, 0, 1) - 1
        poses[j, 5] = 0


@part
def pose_box(points: Ints, pose: Ints, size: int, box: Ints) -> None:
    """The pixels x0, y0, x1, y1 (half open) that hold the posed outline, clipped to the picture."""
    c, s = cosine(pose[2]), sine(pose[2])
    low_x, low_y, high_x, high_y = 4 * FRAME, 4 * FRAME, -4 * FRAME, -4 * FRAME
    for k in range(len(points)):
        u, v = pose[4] * points[k, 0] * pose[3] >> 14, points[k, 1] * pose[3] >> 14
        x, y = pose[0] + ((u * c - v * s) >> 14), pose[1] + ((v * c + u * s) >> 14)
        low_x, high_x = min(low_x, x), max(high_x, x)
        low_y, high_y = min(low_y, y), max(high_y, y)
    box[0], box[1] = max(0, low_x * size >> 16), max(0, low_y * size >> 16)
    box[2], box[3] = min(size, (high_x * size >> 16) + 1), min(size, (high_y * size >> 16) + 1)


@part
def picture(
    out: NDArray[np.uint8],
    fields: NDArray[np.int16],
    key: Any,
    mode: int,
    shapes: Ints,
    textures: Ints,
    hue: int,
    turn: int,
    alike: bool,
) -> None:
    """Paint one image; shapes and textures hold one entry per object, −1 where there is none.

    alike: the same colours and background as every other image, so that only shape and texture differ.
    """
    colours = np.zeros((3, 3), np.int64)
    poses = np.zeros((len(shapes), POSE), np.int64)
    place, count = mix(key, np.uint64(PLACE)), 1
    flat, scene = mode in (SILHOUETTE, SKETCH), mode == SCENE
    ground = MIDDLE if alike or flat else draw(key, 0, 0, 2)
    if flat:
        colours[2, 0], colours[2, 1], colours[2, 2] = 255, 255, 255
    if alike or not flat:
        palette(mix(ONE_PALETTE if alike else key, np.uint64(COLOURS)), ground, -1 if flat else hue, colours)
    if mode == FULL_FRAME:
        paint_texture(out, textures[0], mix(key, np.uint64(OBJECT)), colours)
        return
    if flat:
        plain(out, colours[2])
    else:
        background(out, mix(ONE_GROUND if alike else key, np.uint64(GROUND)), colours[2])
    if scene:
        count = 0
        while count < len(shapes) and shapes[count] >= 0:
            count += 1
        scene_poses(place, count, turn, poses)
    else:
        single_pose(place, turn, poses[0])
    # one call of `paint` for every mode: the compiler works through its body once for each call
    for j in range(count):
        own = key if flat else mix(key, np.uint64(OBJECT + j))
        if scene:
            palette(mix(ONE_PALETTE if alike else own, np.uint64(COLOURS)), ground, hue, colours)
        texture = 0 if flat else textures[j]
        paint(out, fields[shapes[j]], poses[j], TEXTURED if scene else mode, texture, own, colours)


@kernel
def pictures(
    out: NDArray[np.uint8],
    fields: NDArray[np.int16],
    keys: NDArray[np.uint64],
    mode: int,
    shapes: Ints,
    textures: Ints,
    hues: Ints,
    turn: int,
    alike: bool,
) -> None:
    """`picture` for each row."""
    for i in range(len(keys)):
        picture(out[i], fields, keys[i], mode, shapes[i], textures[i], hues[i], turn, alike)


@kernel
def scene_boxes(
    keys: NDArray[np.uint64],
    shapes: Ints,
    turn: int,
    size: int,
    points: Ints,
    starts: Ints,
    boxes: Ints,
) -> None:
    """Boxes [n, objects, 4] of every scene; rows without an object stay as they are."""
    poses = np.zeros((shapes.shape[1], POSE), np.int64)
    for i in range(len(keys)):
        count = 0
        while count < shapes.shape[1] and shapes[i, count] >= 0:
            count += 1
        scene_poses(mix(keys[i], np.uint64(PLACE)), count, turn, poses)
        for j in range(count):
            k = shapes[i, j]
            pose_box(points[starts[k] : starts[k + 1]], poses[j], size, boxes[i, j])


@kernel
def scene_mask(out: NDArray[np.uint8], fields: NDArray[np.int16], key: Any, shapes: Ints, turn: int) -> None:
    """The shape of each pixel of a scene plus one, 0 where the background covers more than half of it."""
    poses = np.zeros((len(shapes), POSE), np.int64)
    cover = np.empty((out.shape[0], out.shape[1]), np.int64)
    count = 0
    while count < len(shapes) and shapes[count] >= 0:
        count += 1
    scene_poses(mix(key, np.uint64(PLACE)), count, turn, poses)
    out[:] = 0
    for j in range(count):
        coverage(fields[shapes[j]], poses[j], TEXTURED, mix(key, np.uint64(OBJECT + j)), cover)
        for y in range(out.shape[0]):
            for x in range(out.shape[1]):
                if cover[y, x] > 128:
                    out[y, x] = shapes[j] + 1


@kernel
def single_mask(
    out: NDArray[np.uint8], fields: NDArray[np.int16], key: Any, shape: int, turn: int, flat: bool
) -> None:
    """1 where the single object of an image covers more than half of a pixel; flat: a silhouette or a sketch."""
    pose = np.zeros(POSE, np.int64)
    cover = np.empty((out.shape[0], out.shape[1]), np.int64)
    single_pose(mix(key, np.uint64(PLACE)), turn, pose)
    coverage(fields[shape], pose, TEXTURED, key if flat else mix(key, np.uint64(OBJECT)), cover)
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x] = cover[y, x] > 128


def turn_steps(degrees: int) -> int:
    return degrees * TURN // 360
