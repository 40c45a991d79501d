"""One LooC step with two left-out augmentations, over the bare backbone: query forward and backward, three key forwards, heads.

    python benchmarks/looc.py [--rounds 7]

Views are in memory. Prints the median over rounds of step time / bound time of the same round; both take turns in one process.
The bound runs the three keys as three forwards or as one of three times the batch, whichever is quicker here.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch
import torchvision
from torch import nn

from row import row
from steps import clock, training_step

BATCH, QUEUE, SIZE, LEFT_OUT = 64, 4096, 64, ["color", "rotation"]


def resnet() -> nn.Module:
    net = torchvision.models.resnet18().to(memory_format=torch.channels_last).train()
    net.fc = nn.Identity()
    return net


def heads() -> nn.ModuleList:
    return nn.ModuleList(
        nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128)) for _ in range(len(LEFT_OUT) + 1)
    )


def bound(at_once: bool) -> Callable[[], None]:
    """Bare backbones and heads, channels last: what no LooC step can go below."""
    query, key, query_heads, key_heads = resnet(), resnet(), heads(), heads()
    keys = len(LEFT_OUT) + 1
    x = torch.randn(BATCH, 3, SIZE, SIZE).contiguous(memory_format=torch.channels_last)
    many = torch.randn(keys * BATCH, 3, SIZE, SIZE).contiguous(memory_format=torch.channels_last)

    def step() -> None:
        v = query(x)
        torch.stack([h(v).sum() for h in query_heads]).sum().backward()
        with torch.no_grad():
            k = key(many) if at_once else torch.cat([key(part) for part in many.chunk(keys)])
            for i, h in enumerate(key_heads):  # space 0 needs the first key alone
                h(k if i else k[:BATCH])
        for net in (query, query_heads):
            net.zero_grad(set_to_none=True)

    return step


def ours() -> Callable[[], None]:
    """cuewise's own step, uint8 views to optimiser step, as `cuewise pretrain --method looc` runs it."""
    options = {
        "data": [f"shapes?n={BATCH}&size={SIZE}"],
        "method": "looc",
        "leave_out": LEFT_OUT,
        "model": "torchvision/resnet18",
        "size": SIZE,
        "batch_size": BATCH,
        "looc": {"queue": QUEUE},
        "workers": "0",
        "epochs": 1000,
    }
    return training_step(options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    steps = {"three": bound(False), "one": bound(True), "cuewise": ours()}
    for step in steps.values():  # warm-up
        step()
    times = [{k: clock(s) for k, s in steps.items()} for _ in range(rounds)]
    ratios = {k: statistics.median(t["cuewise"] / t[k] for t in times) for k in ("three", "one")}
    best = min(("three", "one"), key=lambda k: statistics.median(t[k] for t in times))
    print(f"threads: {torch.get_num_threads()}, batch {BATCH}, queue {QUEUE}, ResNet-18 at {SIZE} px")
    for k, ratio in ratios.items():
        seconds = statistics.median(t[k] for t in times)
        print(f"  bound with keys in {k} forward(s) {seconds:.3f} s; LooC step {ratio:.3f} × it")
    row(
        f"LooC step, two augmentations left out, resnet18 at {SIZE} px",
        "the bare backbone: query forward and backward, three key forwards, heads",
        [t["cuewise"] / t[best] for t in times],
        goal="≤ 1.06",
    )


if __name__ == "__main__":
    main()
