"""Peak memory of a training step over the bare backbone's, and what activation checkpointing changes.

    python benchmarks/memory.py

Each case runs in a process of its own: peak resident memory after three steps, less that of the process with the model
and the batch before the first step. ResNet-50, 96 px. `bare` is forward, backward and SGD of torchvision's network on the
same number of images; the key network of MoCo has no graph and adds what its forward pass needs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from row import row

NETWORK, BATCH, SIZE, STEPS = "resnet50", 32, 96, 3
CASES = {
    "bare": (BATCH, ""),
    "bare, both views": (2 * BATCH, ""),
    "moco": (BATCH, "moco"),
    "simclr": (BATCH, "simclr"),
    "simclr, checkpointing": (BATCH, "simclr"),
    "simclr, checkpointing, twice the batch": (2 * BATCH, "simclr"),
}


def peak() -> float:
    """Highest resident memory of this process so far, in MB."""
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def now() -> float:
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def measure(name: str) -> None:
    """One case, in this process: MB over the state before the first step, and seconds per step."""
    import torch

    torch.set_num_threads(1)
    batch, method = CASES[name]
    step = bare(batch) if not method else own(method, batch, "checkpointing" in name)
    before = now()
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again
    step()
    began = time.perf_counter()
    for _ in range(STEPS - 1):
        step()
    print(json.dumps([peak() - before, (time.perf_counter() - began) / (STEPS - 1)]))


def bare(batch: int) -> Callable[[], None]:
    import torch
    import torchvision

    network = torchvision.models.get_model(NETWORK).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, fused=True)
    x = torch.randn(batch, 3, SIZE, SIZE).contiguous(memory_format=torch.channels_last)

    def step() -> None:
        network(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def own(method: str, batch: int, checkpointing: bool) -> Callable[[], None]:
    from steps import training_step

    return training_step(
        {
            "data": [f"shapes:aligned?n={batch}&size={SIZE}"],
            "method": method,
            "model": f"torchvision/{NETWORK}",
            "size": SIZE,
            "batch_size": batch,
            "workers": "0",
            "loop": {"checkpointing": checkpointing},
            **({"moco": {"queue": 4096}} if method == "moco" else {}),
        }
    )


def main() -> None:
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name in CASES:
            words = [sys.executable, str(Path(__file__).resolve()), name]
            said = subprocess.run(words, capture_output=True, text=True, check=True, cwd=place)
            found[name] = json.loads(said.stdout.splitlines()[-1])
            print(f"{name:<40} {found[name][0]:7.0f} MB  {found[name][1]:6.2f} s per step", flush=True)
    mb = {name: value[0] for name, value in found.items()}
    seconds = {name: value[1] for name, value in found.items()}
    row("MoCo step, peak memory", "the bare backbone's step", mb["moco"] / mb["bare"], goal="≤ 1.1")
    row(
        "SimCLR step, peak memory",
        "the bare backbone on both views",
        mb["simclr"] / mb["bare, both views"],
        goal="≤ 1.1",
    )
    less, twice = mb["simclr, checkpointing"], mb["simclr, checkpointing, twice the batch"]
    row("SimCLR step with checkpointing, peak memory", "without", less / mb["simclr"])
    row(
        "SimCLR, checkpointing, twice the batch, peak memory",
        "without, one batch",
        twice / mb["simclr"],
        goal="≤ 1",
    )
    slower = seconds["simclr, checkpointing"] / seconds["simclr"]
    row("SimCLR step with checkpointing, time", "without", slower)


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
