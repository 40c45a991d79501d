"""Which heads a linear probe relies on, and its accuracy with only some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cuewise.data import Dataset
from cuewise.encoders import load_encoder
from cuewise.encoders.cached import cached_features
from cuewise.encoders.embed import Embeddings
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.load import as_torch_device, with_space
from cuewise.encoders.spaces import Spaces
from cuewise.errors import UserError
from cuewise.probes.linear import LinearProbe
from cuewise.probes.run import shared_classes
from cuewise.scores import Score

Floats = NDArray[np.float64]
Blocks = Mapping[str, slice]  # space → its columns of the features


def weights_on_features(probe: LinearProbe) -> Floats:
    """D×C weights of a fitted probe on the features as they are, standardising undone; 0 for labels it never saw."""
    out = np.zeros((len(probe.scale_.factor), len(probe.classes_)))
    out[:, probe.labels_] = probe.coef_[:-1].numpy() * probe.scale_.factor[:, None]
    return out


def contributions(w: Floats, X: NDArray[np.float32], y: NDArray[np.int64], blocks: Blocks) -> Floats:
    """N×H shares of the heads in the logit of class y: Σ_{d∈h} w_{y,d} x_d, cut at 0, to sum 1 (the bias has none).

    A row where no head supports its class is shared evenly. Xiao et al., figure 4.
    """
    parts = np.stack(
        [np.einsum("nd,dn->n", X[:, b].astype(np.float64), w[b][:, y]) for b in blocks.values()], axis=1
    )
    parts = np.maximum(parts, 0.0)
    total = parts.sum(axis=1, keepdims=True)
    even = np.full_like(parts, 1 / parts.shape[1])
    return np.where(total > 0, parts / np.where(total > 0, total, 1.0), even)


def entropy_bits(p: Floats) -> float:
    """−Σ p log₂ p of one distribution; log₂ of the number of heads at most."""
    kept = p[p > 0]
    return float(-(kept * np.log2(kept)).sum()) + 0.0


def blocks_of(encoder: Encoder) -> Blocks:
    """Which columns each space has in the features of an encoder in several spaces."""
    spaces = encoder.backbone
    if not isinstance(spaces, Spaces):
        raise UserError(f"{encoder.card.arch} has no spaces: give a run of looc with --space all")
    return spaces.blocks


def head_subsets(
    run: str,
    train: Dataset,
    test: Dataset,
    subsets: Sequence[Sequence[str]] | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
) -> dict[str, Score]:
    """Accuracy with a probe fitted on each subset of heads: {"z0": …, "z0+color": …, …}.

    subsets: names of spaces; None: the invariant head alone, with each other one, and all. Images are embedded once.
    """
    encoder = load_encoder(with_space(run, "all")).to(as_torch_device(device))
    blocks = blocks_of(encoder)
    first, *others = blocks
    chosen = subsets or [[first], *([first, name] for name in others), list(blocks)]
    fitted = cached_features(encoder, train, label="features of the training set")
    found = cached_features(encoder, test, label="features of the test set")
    rows, labels = shared_classes(found, test, train)
    out: dict[str, Score] = {}
    for names in chosen:
        columns = columns_of(blocks, names)
        probe = LinearProbe(seed=seed).fit(fitted.features[:, columns], fitted.labels)
        name = "+".join(names)
        out[name] = probe.score(found.features[rows][:, columns], labels, f"heads/{name}")
    return out


def columns_of(blocks: Blocks, names: Sequence[str]) -> NDArray[np.int64]:
    """The columns of several spaces, side by side."""
    for name in names:
        if name not in blocks:
            raise UserError(f"no head {name!r}; there are: {', '.join(blocks)}")
    return np.concatenate([np.arange(blocks[n].start, blocks[n].stop) for n in names])


def contributions_on(
    probe: LinearProbe, found: Embeddings, rows: NDArray[np.int64], labels: NDArray[np.int64], blocks: Blocks
) -> Floats:
    """Shares of the heads for each image that the probe gets right."""
    X = found.features[rows]
    right = probe.predict(X) == labels
    return contributions(weights_on_features(probe), X[right], labels[right], blocks)
