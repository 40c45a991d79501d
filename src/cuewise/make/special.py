"""Makers that are more than one operator on one image."""

from __future__ import annotations

from collections.abc import Mapping

from cuewise.make.makers import Maker


def makers(cues: Mapping[str, Maker]) -> dict[str, Maker]:
    """Makers beside (or in place of) those of the cue operators."""
    return {}
