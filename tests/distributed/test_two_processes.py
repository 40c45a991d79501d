"""Two processes on halves of a batch: loss and gradient equal one process on the joint batch, for every method."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from cuewise.methods import Negatives, methods
from cuewise.methods.hard import IFM, Debiased, Hard, MoCHi, Reweighted
from cuewise.train.distributed import ProcessGroup
from tests.contract.test_methods import CASES, IDS
from tests.methods.conftest import in_double, small_batch, small_method

pytestmark = pytest.mark.slow

BATCH, STEPS = 8, 3
MAKERS: dict[str, Hard] = {
    "mochi": MoCHi(candidates=6, pairs=7, with_query=5, start=0.3),
    "ifm": IFM(),
    "debiased": Debiased(),
    "hard": Reweighted(),
}
PATCH = Negatives(("patch",), (2.0,))
Case = tuple[str, Negatives, str]
EVERY: list[Case] = [(name, dial, "") for name, dial in CASES] + [
    (name, PATCH, hard) for name, kind in methods().items() if kind.takes_hard for hard in MAKERS
]
EVERY += [(name, PATCH, "center") for name in ("moco", "simclr")] + [("moco", PATCH, "negatives_gradient")]
EVERY += [(name, PATCH, "shared") for name in ("moco", "simclr", "byol")] + [
    ("jigsaw", Negatives(), "patchwise")
]
EVERY += [("hcl", Negatives(), "densecl")]
EVERY += [("supervised", Negatives(), "glc")]
NAMES = IDS + [f"{name}-{hard}" for name, _, hard in EVERY if hard]
# Batch norm would differ by design (statistics of half a batch), so encoder and heads go without it here.


def without_batch_norm(m: torch.nn.Module) -> torch.nn.Module:
    for parent in m.modules():
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.BatchNorm1d):
                trains = child.weight.requires_grad
                setattr(parent, name, torch.nn.LayerNorm(child.num_features).requires_grad_(trains))
    return m


def build(name: str, dial: Negatives, hard: str) -> Any:
    own: dict[str, dict[str, Any]] = {
        "center": {"center": 0.7},
        "negatives_gradient": {"negatives_gradient": True},
        "shared": {"statistics": "shared"},
        "patchwise": {"patchwise": True, "suppressed": 0.5},
        "densecl": {"base": "densecl", "dense": 0.3},
        "glc": {"correction": "glc"},
    }
    made = small_method(name, negatives=dial, norm="group", hard=MAKERS.get(hard), **own.get(hard, {}))
    m: Any = without_batch_norm(made)
    if hard == "glc":
        m.confusion.copy_(0.6 / 4 + 0.4 * torch.eye(4))
    return m.double()


def run(m: Any, module: Any, half: slice) -> dict[str, Any]:
    """A few steps; the losses, the last gradients and the state that must be equal everywhere."""
    optimizer = torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.05)
    losses = []
    for i in range(STEPS):
        given = small_batch(m, BATCH, seed=i)
        m.begin_step(i / STEPS)
        optimizer.zero_grad()
        step = module(in_double(given, half))
        step.loss.backward()
        m.after_backward()
        losses.append(step.loss.detach())
        if i < STEPS - 1:
            optimizer.step()
    grads = {k: p.grad.clone() for k, p in m.named_parameters() if p.grad is not None}
    return {
        "losses": torch.stack(losses),
        "grads": grads,
        "queue": m.queue.keys if hasattr(m, "queue") else None,
        "cells": m.cells.keys if getattr(m, "cells", None) is not None else None,
    }


def worker(rank: int, port: int, cases: list[Case], folder: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    out = []
    for case in cases:
        m = build(*case)
        m.comm = ProcessGroup()
        module = DistributedDataParallel(m, broadcast_buffers=False)
        found = run(m, module, slice(rank * BATCH // 2, (rank + 1) * BATCH // 2))
        dist.all_reduce(found["losses"])
        found["losses"] /= 2
        out.append(found)
    torch.save(out, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """Results of rank 0 and rank 1 for all cases, from one pair of processes."""
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.start_processes(worker, (port, EVERY, str(folder)), nprocs=2, start_method="fork")
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("case", range(len(EVERY)), ids=NAMES)
def test_equal_to_one_process_on_the_joint_batch(both: list[list[dict[str, Any]]], case: int) -> None:
    name, m = EVERY[case][0], build(*EVERY[case])
    one = run(m, m, slice(None))
    for rank in range(2):
        two = both[rank][case]
        torch.testing.assert_close(two["losses"], one["losses"], rtol=1e-8, atol=1e-10)
        assert two["grads"].keys() == one["grads"].keys()
        for key, expected in one["grads"].items():
            torch.testing.assert_close(
                two["grads"][key], expected, rtol=1e-6, atol=1e-9, msg=f"{name}: {key}"
            )
        for queue in ("queue", "cells"):
            if one[queue] is not None:
                torch.testing.assert_close(two[queue], one[queue], rtol=1e-8, atol=1e-10)


def gathered(rank: int, port: int, folder: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    x = torch.arange(4.0).view(2, 2).add(10 * rank).requires_grad_(True)
    everyone: Tensor = ProcessGroup().gather(x)
    (everyone * torch.arange(8.0).view(4, 2) * (rank + 1)).sum().backward()
    torch.save({"rows": everyone.detach(), "grad": x.grad}, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


def test_gather_returns_rows_in_rank_order_and_sums_gradients(tmp_path: Path) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.start_processes(gathered, (port, str(tmp_path)), nprocs=2, start_method="fork")
    weights = torch.arange(8.0).view(4, 2)
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        assert found["rows"].tolist() == [[0, 1], [2, 3], [10, 11], [12, 13]]
        torch.testing.assert_close(found["grad"], 3 * weights[2 * rank : 2 * rank + 2])
