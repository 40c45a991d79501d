"""Two of everything: processes of one training run, and nodes of a Ray cluster.

    python benchmarks/scaling.py [--rounds 3] [--only devices make audit]

`devices`: `cuewise pretrain --devices cpu:2` with one thread each against one process on two threads, the same global batch.
`make` and `audit`: with --engine ray on two local nodes of one core each (two raylets on the loopback) against one. Needs the
`ray` extra; without it these rows are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuewise.train.log import read_metrics
from make import write_photos
from row import row

STEPS, BATCH = 20, 64


def cuewise(*words: str, threads: int | None = None) -> float:
    """Seconds of one command."""
    limits = {} if threads is None else dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads))
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "cuewise", *words],
        env={**os.environ, **limits},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return time.perf_counter() - began


def rate(place: Path, devices: str, threads: int) -> float:
    """Images per second of a run, the first rows left out as warm-up."""
    out = Path(tempfile.mkdtemp(dir=place)) / "run"
    cuewise(
        "pretrain", f"shapes?n={STEPS * BATCH}&size=64", "--out", str(out), "--model", "torchvision/resnet18", "--size",
        "64", "--batch-size", str(BATCH), "--epochs", "1", "--devices", devices, "--set", "loop.log_every=5",
        "--set", "moco.queue=1024",
        threads=threads,
    )  # fmt: skip
    rates = [
        r["train/images_per_s"] for r in read_metrics(out / "metrics.jsonl") if "train/images_per_s" in r
    ]
    return len(rates[1:]) / sum(1 / r for r in rates[1:])


def devices(rounds: int, place: Path) -> None:
    pairs = [(rate(place, "cpu:2", 1), rate(place, "cpu", 2)) for _ in range(rounds)]
    row(
        "`cuewise pretrain --devices cpu:2`, ResNet-18 at 64 px, one thread each",
        "one process on two threads",
        [two / one for two, one in pairs],
        "of its rate",
    )


@contextmanager
def cluster(nodes: int) -> Iterator[str]:
    """The address of a local cluster of nodes with one core each."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(nodes - 1):
            made.add_node(num_cpus=1)
        made.wait_for_nodes()
        yield str(made.address)
    finally:
        made.shutdown()


def spread(what: str, words: list[str], rounds: int, place: Path, out: str) -> None:
    """Seconds on one node over seconds on two."""
    ratios = []
    for number in range(rounds):
        took = {}
        for nodes in (1, 2):
            with cluster(nodes) as address:
                to = str(place / f"{out}-{number}-{nodes}")
                filled = [w.replace("OUT", to) for w in words]
                took[nodes] = cuewise(*filled, "--engine", "ray", "--address", address, threads=1)
        ratios.append(took[1] / took[2])
        print(json.dumps({"what": what, **{f"{n} nodes": round(t, 1) for n, t in took.items()}}), flush=True)
    row(f"{what} on two local Ray nodes of one core", "one node", ratios, goal="≥ 1.7")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=["devices", "make", "audit"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if "devices" in given.only:
            devices(given.rounds, place)
        write_photos(
            place / "photos", 1200
        )  # a minute of work: starting the nodes and their processes takes ten seconds
        photos = str(place / "photos")
        if "make" in given.only:
            words = ["make", "texture", photos, "OUT"]
            spread("`cuewise make texture`", words, given.rounds, place, "made")
        if "audit" in given.only:
            words = [
                "audit",
                "torchvision/resnet18",
                "--only",
                "corruption",
                "--size",
                "96",
                "--limit",
                "200",
                "--out",
                "OUT",
            ]
            spread("`cuewise audit --only corruption`", words, given.rounds, place, "audited")


if __name__ == "__main__":
    main()
