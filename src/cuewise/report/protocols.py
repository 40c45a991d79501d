"""A protocol in words: audit.json and scores.csv keep the short form, the page says what it means."""

from __future__ import annotations

import re

_WORDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"\blinear_lbfgs_standardised_", "linear probe (L-BFGS) on standardised features, "),
        (r"\bl2_of_(\d+)_held_out", r"L2 penalty chosen among \1 on held-out training images"),
        (r"\bl2_(\d[\d.e+-]*)", r"L2 penalty \1"),
        (r"\blinear_sgd_(\w+?)_(?=\w+)", r"linear probe (SGD, preset \1) "),
        (r"\bknn(\d+)_t([\d.]+)", r"\1 nearest training images by cosine, weighted with temperature \2"),
    )
)


def in_words(protocol: str) -> str:
    """The short names of probes spelled out; everything else unchanged."""
    for pattern, words in _WORDS:
        protocol = pattern.sub(words, protocol)
    return protocol[:1].upper() + protocol[1:]
