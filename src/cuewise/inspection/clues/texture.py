"""A bag of small patches: texture without colour and without places."""

from __future__ import annotations

import cv2
import numpy as np

from cuewise.data import Image
from cuewise.inspection.clue import SIDE, Clue, Look, Numbers

PATCH = 5
BITS = 7  # of a word: signs of this many random contrasts within a patch
SCALES = (1, 2)
TILE = 8
FLAT = 4.0  # grey levels of contrast below which a patch has no texture


class TextureClue(Clue):
    """How often each word occurs among all 5×5 patches of the grey image, at two scales.

    A word is the signs of seven fixed random contrasts (their weights sum to zero, so brightness does not count); a patch
    without contrast is a word of its own.
    """

    name = "texture"
    summary = "a bag of small grey patches, wherever they are"
    subject = "Texture (a bag of small patches)"
    shortcut = False

    def numbers(self, look: Look) -> Numbers:
        return np.concatenate([words(look.grey[::s, ::s]) for s in SCALES])

    def picture(self, look: Look) -> Image:
        """The grey image cut into tiles and shuffled."""
        n = SIDE // TILE
        tiles = look.grey.reshape(n, TILE, n, TILE).swapaxes(1, 2).reshape(n * n, TILE, TILE)
        mixed = tiles[np.random.default_rng(0).permutation(n * n)]
        whole = mixed.reshape(n, n, TILE, TILE).swapaxes(1, 2).reshape(SIDE, SIDE)
        return np.repeat(whole.astype(np.uint8)[..., None], 3, axis=2)


def _contrasts() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    drawn = np.random.default_rng(20260).standard_normal((PATCH * PATCH, BITS))
    return (drawn - drawn.mean(0)).astype(np.float32)


CONTRASTS = _contrasts()
PLACES = (1 << np.arange(BITS)).astype(np.float32)  # what each sign counts in a word


def words(grey: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Numbers:
    """Square roots of the words' shares."""
    patches = np.lib.stride_tricks.sliding_window_view(grey, (PATCH, PATCH)).reshape(-1, PATCH * PATCH)
    word = ((patches @ CONTRASTS > 0).astype(np.float32) @ PLACES).astype(np.int64)
    whole, half = np.ones((PATCH, PATCH), np.uint8), PATCH // 2
    inner = np.s_[half : grey.shape[0] - half, half : grey.shape[1] - half]
    plain = np.ascontiguousarray(grey)
    contrast = (cv2.dilate(plain, whole) - cv2.erode(plain, whole))[inner].ravel()
    word = np.where(contrast < FLAT, 1 << BITS, word)
    return np.sqrt(np.bincount(word, minlength=(1 << BITS) + 1) / len(word)).astype(np.float32)
