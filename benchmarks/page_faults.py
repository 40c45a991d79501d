"""Processor time that training steps spend on page faults, with freed memory kept and without.

    python benchmarks/page_faults.py [--rounds 3]

Each case runs in a process of its own, by turns: EfficientNet-Lite0 at 112 px, batches of 32, one thread, six steps.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys

from row import row

BATCH, SIZE, STEPS = 32, 112, 6


def measure(keeps: bool) -> None:
    """User and system seconds of the steps, in this process."""
    from cuewise.memory import keep_freed

    if keeps and not keep_freed():
        raise SystemExit("this C library has no such setting, or the environment has chosen one")
    import timm
    import torch

    torch.set_num_threads(1)
    network = timm.create_model("tf_efficientnet_lite0").train()
    optimizer = torch.optim.AdamW(network.parameters())
    x = torch.randn(BATCH, 3, SIZE, SIZE)

    def step() -> None:
        optimizer.zero_grad()
        network(x).mean().backward()
        optimizer.step()

    step()
    step()
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(STEPS):
        step()
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", choices=("kept", "given"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        measure(asked.case == "kept")
        return
    found: dict[str, list[list[float]]] = {"given": [], "kept": []}
    for _ in range(asked.rounds):
        for case, rounds in found.items():
            words = [sys.executable, __file__, "--case", case]
            said = subprocess.run(words, capture_output=True, text=True, check=True)
            rounds.append(json.loads(said.stdout.splitlines()[-1]))
            print(f"{case:<6} user {rounds[-1][0]:.2f} s, system {rounds[-1][1]:.2f} s", flush=True)
    row(
        f"processor time of {STEPS} training steps, EfficientNet-Lite0 at {SIZE} px, freed memory kept",
        "given back to the system, the default of glibc",
        [sum(kept) / sum(given) for kept, given in zip(found["kept"], found["given"])],
    )


if __name__ == "__main__":
    main()
