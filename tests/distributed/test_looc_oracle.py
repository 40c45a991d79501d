"""Eq. 2 with n = 0 … 3: loss and gradient of the method, in one and in two processes, are those of the numpy loop."""

from __future__ import annotations

import copy
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

from cuewise.train.distributed import ProcessGroup
from tests.methods.conftest import in_double, small_batch, small_method
from tests.methods.looc_loop import loop_looc

pytestmark = pytest.mark.slow

LEFT_OUT = ("color", "rotation", "texture")
BATCH = 8


def build(n: int) -> Any:
    """Without batch norm, whose statistics are of half a batch by design."""
    return small_method("looc", norm="group", leave_out=LEFT_OUT[:n]).double()


def step(m: Any, module: Any, half: slice) -> dict[str, Any]:
    """Two steps, so that the second one meets keys of the first in the queues; the second's loss and gradient."""
    for i in range(2):
        given = small_batch(m, BATCH, seed=i)
        m.zero_grad()
        found = module(in_double(given, half))
        found.loss.backward()
        m.after_backward()
    grads = {k: p.grad.clone() for k, p in m.named_parameters() if p.grad is not None}
    return {"loss": found.loss.detach(), "grads": grads, "queue": m.queue.keys}


def worker(rank: int, port: int, folder: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    out = []
    for n in range(4):
        m = build(n)
        m.comm = ProcessGroup()
        module = DistributedDataParallel(m, broadcast_buffers=False)
        found = step(m, module, slice(rank * BATCH // 2, (rank + 1) * BATCH // 2))
        dist.all_reduce(found["loss"])
        found["loss"] /= 2
        out.append(found)
    torch.save(out, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.start_processes(worker, (port, str(folder)), nprocs=2, start_method="fork")
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def derived(n: int) -> tuple[float, dict[str, torch.Tensor]]:
    """The second step by the loop: embeddings from copies of the networks, the loop's gradient sent back through them."""
    m = build(n)
    m(in_double(small_batch(m, BATCH, seed=0)))
    m.after_backward()
    m = copy.deepcopy(m)
    views = small_batch(m, BATCH, seed=1).views
    q = m.heads(m.encoder, m.encoder(views["query"].double()))
    encoder, heads = m.key_network
    roles = ["key", *(f"key:{name}" for name in LEFT_OUT[:n])]
    with torch.no_grad():  # key by key, each through all heads
        by_key = [heads(encoder, encoder(views[role].double())) for role in roles]
    k = [[by_key[j][i].numpy() for j in range(n + 1)] for i in range(n + 1)]
    loss, gradients = loop_looc([x.detach().numpy() for x in q], k, list(m.queue.keys.numpy()), 0.2)
    torch.autograd.backward(q, [torch.from_numpy(g) for g in gradients])
    return loss, {key: p.grad for key, p in m.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("n", range(4))
def test_one_and_two_processes_equal_the_loop(both: list[list[dict[str, Any]]], n: int) -> None:
    loss, grads = derived(n)
    m = build(n)
    one = step(m, m, slice(None))
    assert one["queue"].shape == (n + 1, 50, 16)
    for found in (one, both[0][n], both[1][n]):
        assert float(found["loss"]) == pytest.approx(loss, rel=1e-8)
        assert found["grads"].keys() == grads.keys()
        for key, expected in grads.items():
            torch.testing.assert_close(found["grads"][key], expected, rtol=1e-6, atol=1e-10, msg=key)
        torch.testing.assert_close(found["queue"], one["queue"], rtol=1e-8, atol=1e-10)
