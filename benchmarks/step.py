"""One MoCo-v2 step with views in memory, over the bare backbone (query forward + backward, key forward).

    python benchmarks/step.py [--rounds 5] [--negatives] [--only resnet18]

Prints, for each backbone, the median over rounds of step time / bound time of the same round; beside it the least that a
step of MoCo-v2 adds (its two heads of two layers, weights that follow their gradient, keys that follow the weights) and
lightly's documented example where lightly is installed. All candidates take turns in one process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torchvision
from torch import nn

from row import row
from steps import training_step

BATCH, QUEUE = 64, 4096
CALLED = {
    "cuewise": "MoCo-v2 step",
    "negative": "MoCo-v2 step with a patch negative",
    "least": "backbone, heads, SGD and momentum update alone",
}
CASES = {"resnet18": 64, "resnet50": 96}


def network(name: str, heads: bool = False) -> nn.Module:
    """A backbone, bare or with MoCo-v2's head of two layers."""
    net: nn.Module = getattr(torchvision.models, name)()
    d = int(net.fc.in_features)  # type: ignore[union-attr,arg-type]
    net.fc = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 128)) if heads else nn.Identity()
    return net.to(memory_format=torch.channels_last).train()


def bound(name: str, size: int, heads: bool = False) -> Callable[[], None]:
    """The bare backbone, channels last, nothing else: what no method can go below. With heads: nor MoCo-v2."""
    query, key = network(name, heads), network(name, heads)
    x = torch.randn(BATCH, 3, size, size).contiguous(memory_format=torch.channels_last)

    def step() -> None:
        query(x).sum().backward()
        with torch.no_grad():
            key(x)
        query.zero_grad(set_to_none=True)

    return step


def least(name: str, size: int) -> Callable[[], None]:
    """The backbone with what MoCo-v2 cannot do without: heads, torch's fused SGD, the momentum update of the keys."""
    bare, query, key = bound(name, size, heads=True), *(_weights(name) for _ in range(2))
    grads = [torch.zeros_like(p) for p in query]
    optimizer = torch.optim.SGD(query, lr=1e-9, momentum=0.9, weight_decay=1e-4, fused=True)

    def step() -> None:
        bare()
        for p, g in zip(query, grads):
            p.grad = g  # any numbers: only the memory that is read matters
        optimizer.step()
        torch._foreach_lerp_(key, [p.detach() for p in query], 0.01)

    return step


def _weights(name: str) -> list[torch.Tensor]:
    """The weights of a backbone with its head, each a contiguous block."""
    return [p.detach().contiguous().clone() for p in network(name, heads=True).parameters()]


def extra_forward(name: str, size: int) -> Callable[[], None]:
    """One more forward of the key backbone: what a negative has to cost."""
    key = network(name)
    x = torch.randn(BATCH, 3, size, size).contiguous(memory_format=torch.channels_last)

    def step() -> None:
        with torch.no_grad():
            key(x)

    return step


def ours(name: str, size: int, negatives: bool) -> Callable[[], None]:
    """cuewise's own step, uint8 views to optimiser step, as `cuewise pretrain` runs it."""
    options: dict[str, Any] = {
        "data": [f"shapes?n={BATCH}&size={size}"],
        "model": f"torchvision/{name}",
        "size": size,
        "batch_size": BATCH,
        "moco": {"queue": QUEUE},
        "workers": "0",
        "epochs": 1000,
    }
    if negatives:
        options |= {"negatives": ["patch"], "alpha": [2.0]}
    return training_step(options)


def lightly_example(name: str, size: int) -> Callable[[], None] | None:
    """The loop of lightly's MoCo example, on the same batch."""
    try:
        from lightly.loss import NTXentLoss
        from lightly.models.modules import MoCoProjectionHead
        from lightly.models.utils import (
            batch_shuffle,
            batch_unshuffle,
            deactivate_requires_grad,
            update_momentum,
        )
    except ImportError:
        return None
    import copy

    resnet = getattr(torchvision.models, name)()
    dim = resnet.fc.in_features
    backbone = nn.Sequential(*list(resnet.children())[:-1])
    head = MoCoProjectionHead(dim, dim, 128)
    backbone_k, head_k = copy.deepcopy(backbone), copy.deepcopy(head)
    deactivate_requires_grad(backbone_k)
    deactivate_requires_grad(head_k)
    criterion = NTXentLoss(temperature=0.2, memory_bank_size=(QUEUE, 128))
    optimizer = torch.optim.SGD(
        [*backbone.parameters(), *head.parameters()], lr=0.015, momentum=0.9, weight_decay=1e-4
    )
    x = torch.randn(BATCH, 3, size, size)

    def step() -> None:
        update_momentum(backbone, backbone_k, m=0.99)
        update_momentum(head, head_k, m=0.99)
        q = head(backbone(x).flatten(start_dim=1))
        with torch.no_grad():
            shuffled, order = batch_shuffle(x)
            k = batch_unshuffle(head_k(backbone_k(shuffled).flatten(start_dim=1)), order)
        loss = criterion(q, k)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def clock(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def measure(name: str, size: int, rounds: int, negatives: bool) -> dict[str, list[float]]:
    """Each candidate's time over the bound's in every round, in turn."""
    steps: dict[str, Callable[[], None] | None] = {
        "bound": bound(name, size),
        "least": least(name, size),
        "cuewise": ours(name, size, False),
    }
    steps["lightly example"] = lightly_example(name, size)
    if negatives:
        steps["negative"] = ours(name, size, True)
        steps["forward"] = extra_forward(name, size)
    running = {k: s for k, s in steps.items() if s is not None}
    for s in running.values():  # warm-up
        s()
    times = [{k: clock(s) for k, s in running.items()} for _ in range(rounds)]
    print(f"{name} at {size} px, bound {statistics.median(t['bound'] for t in times):.3f} s per step")
    out = {k: [t[k] / t["bound"] for t in times] for k in running if k not in ("bound", "forward")}
    if negatives:
        out["negative"] = [t["negative"] / (t["bound"] + t["forward"]) for t in times]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--negatives", action="store_true", help="also a step with one patch negative")
    parser.add_argument("--only", choices=CASES)
    args = parser.parse_args()
    print(f"threads: {torch.get_num_threads()}, batch {BATCH}, queue {QUEUE}")
    for name, size in CASES.items():
        if args.only in (None, name):
            found = measure(name, size, args.rounds, args.negatives)
            for key, ratios in found.items():
                base = "bound + one key forward" if key == "negative" else "bound"
                row(
                    f"{CALLED.get(key, key + ' step')}, {name} at {size} px",
                    base.replace("bound", "the bare backbone"),
                    ratios,
                    goal="≤ 1.03" if key in ("cuewise", "negative") else "",
                )


if __name__ == "__main__":
    main()
