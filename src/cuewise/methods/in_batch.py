"""The contrast of two views of each image with all others of the batch, which SimCLR and CAN share."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from cuewise.methods.hard import Contrast, everyones_rows
from cuewise.methods.method import Method
from cuewise.objectives.nt_xent import in_batch, nt_xent

Pair = tuple[Tensor, Tensor]


def contrast_views(m: Method, z: Pair, everyone: Pair, ns: Pair | None, tau: float) -> Tensor:
    """The loss of both views of all images, made harder where --hard says so.

    z         two B×C unit-norm views of this process's images
    everyone  two W·B×C views of all processes' images
    ns        two B×M×C negatives, made of the first and of the second view; or None
    """
    dial, offset = m.negatives, m.comm.rank * len(z[0])
    if m.hard is None:
        return nt_xent(z, everyone, ns, tau=tau, alpha=dial.weights, mode=dial.mode, offset=offset)
    s_p, s_n, columns = in_batch(z, everyone, offset=offset)  # 2B, 2B×(2WB−2)
    q = torch.cat(z)  # 2B×C
    s_ns = torch.einsum("bc,bmc->bm", q, torch.cat(ns)) if ns is not None else None  # 2B×M
    rows = partial(everyones_rows, m.comm, len(q), 2, q.device)
    bank = torch.cat(everyone)  # 2WB×C
    return m.hard.loss(Contrast(q, bank, s_p, s_n, s_ns, columns, tau, dial, m.progress, rows, m.generator))
