"""What is learned, beside lightly: its documented MoCo-v2 example and cuewise's `moco`, at equal steps and at equal time.

    python benchmarks/against_lightly.py --data photos/train --val photos/val --out runs/peer [--steps 2000] [--seeds 3]

Both read the same folders with the same number of loader processes, train the same backbone at the same size, batch and
queue, and are judged by the same linear probe on frozen features. Each otherwise keeps the settings that it documents. The
untrained backbone is probed as well: a run that is too short does not beat it.
First the time of a step is measured: short runs of all in turns, on all cores, so that the machine should do nothing else
until `now training`. `equal time` then trains cuewise for as many steps as fit into the time of lightly's steps. Training
is not timed: `--jobs 2` trains two arms side by side, with one thread each and no loader processes. Finished runs are kept
in OUT, so that the same command resumes; OUT/peer.json has every number and OUT/peer.md the table. `--store` also keeps the
numbers in docs/peer.json and writes the README's table from them. lightly comes with the `bench` extra.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from cuewise.data import open_data
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.embed import embed_dataset
from cuewise.files import write_json, write_text
from cuewise.probes import LinearProbe
from cuewise.probes.draws import over_both
from cuewise.probes.probe import top_hits
from cuewise.studies.statistics import t_interval
from cuewise.train.environment import environment
from cuewise.train.pretrain import NEW, run_pretrain

PATCH: dict[str, Any] = {"negatives": ["patch"], "alpha": [1.0]}
ARMS = (
    "lightly",
    "cuewise",
    "cuewise, equal time",
    "cuewise, patch negative",
    "untrained",
)
PEER, UNTRAINED = ARMS[0], ARMS[-1]
EQUAL = ", equal time"
TIMED = tuple(a for a in ARMS if a != UNTRAINED and not a.endswith(EQUAL))
TURNS, SHORT, LONG = 5, 20, 120  # runs of these many steps: their difference is free of what starting costs
ROOT = Path(__file__).resolve().parents[1]
STORED, README = ROOT / "docs" / "peer.json", ROOT / "README.md"
BEGIN, END = "<!-- written by benchmarks/against_lightly.py --store -->\n", "<!-- until here -->"
NEXT = "## What it does\n"  # the section of the README that comes after it


@dataclass(frozen=True)
class Setting:
    """What all arms share."""

    data: str
    val: str
    backbone: str
    size: int
    batch: int
    queue: int
    steps: int
    workers: int


def train_lightly(s: Setting, steps: int, seed: int) -> nn.Module:
    """lightly's MoCo example: its loss, head, transform, data set and momentum schedule, plain SGD at 0.06."""
    from lightly.data import LightlyDataset
    from lightly.loss import NTXentLoss
    from lightly.models.modules import MoCoProjectionHead
    from lightly.models.utils import deactivate_requires_grad, update_momentum
    from lightly.transforms.moco_transform import MoCoV2Transform
    from lightly.utils.scheduler import cosine_schedule

    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  its transforms draw from the global generators
    net = load_encoder(s.backbone, size=s.size).train()
    head = MoCoProjectionHead(net.dim, net.dim, 128)
    keys = nn.ModuleList([copy.deepcopy(net), copy.deepcopy(head)])
    deactivate_requires_grad(keys)
    data = LightlyDataset(s.data, transform=MoCoV2Transform(input_size=s.size))
    loader = torch.utils.data.DataLoader(
        data, batch_size=s.batch, shuffle=True, drop_last=True, num_workers=s.workers
    )
    criterion = NTXentLoss(memory_bank_size=(s.queue, 128))
    optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.06)
    for step, (x_query, x_key) in enumerate(batches(loader, steps)):
        momentum = cosine_schedule(step, steps, 0.996, 1)
        update_momentum(net, keys[0], m=momentum)
        update_momentum(head, keys[1], m=momentum)
        query = head(net(x_query))
        with torch.no_grad():
            key = keys[1](keys[0](x_key))
        loss = criterion(query, key)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


def batches(loader: Any, steps: int) -> Iterator[Any]:
    done = 0
    while done < steps:
        for views, *_ in loader:
            if done == steps:
                return
            done += 1
            yield views


def train_cuewise(s: Setting, steps: int, seed: int, folder: Path, more: dict[str, Any]) -> str:
    """`cuewise pretrain --method moco` with its own defaults."""
    shutil.rmtree(folder, ignore_errors=True)  # a run that was cut has no time of its own
    config = {
        "data": [s.data], "method": "moco", "model": s.backbone, "size": s.size, "seed": seed,
        "batch_size": s.batch, "moco": {"queue": s.queue}, "workers": str(s.workers), "loop": {"budget": steps}, **more,
    }  # fmt: skip
    run_pretrain([config], folder, NEW)
    return str(folder)


def probe(encoder: Encoder, s: Setting) -> dict[str, Any]:
    """Linear accuracy on the validation images, with its interval over both sets of images."""
    train, test = (
        embed_dataset(encoder, open_data(d), workers=s.workers, label=None) for d in (s.data, s.val)
    )
    fitted = LinearProbe().fit(train.features, train.labels)
    score = fitted.score(test.features, test.labels)
    drawn = [float(top_hits(p, test.labels).mean()) for p in fitted.drawn(test.features)]
    return over_both(score, drawn).as_dict()


def train(arm: str, s: Setting, steps: int, seed: int, folder: Path) -> nn.Module | str:
    """The trained backbone, or the run's folder."""
    if arm == PEER:
        return train_lightly(s, steps, seed)
    return train_cuewise(s, steps, seed, folder, PATCH if "patch" in arm else {})


def step_times(s: Setting, out: Path) -> dict[str, list[float]]:
    """Arm → seconds per step in each turn, from OUT/speed.json where they were measured before."""
    file = out / "speed.json"
    if file.is_file():
        return dict(json.loads(file.read_text(encoding="utf-8")))
    found: dict[str, list[float]] = {arm: [] for arm in TIMED}
    for turn in range(TURNS):
        for arm in TIMED:
            seconds = []
            for steps in (SHORT, LONG):
                began = time.perf_counter()
                train(arm, s, steps, turn, out / "timed")
                seconds.append(time.perf_counter() - began)
            found[arm].append((seconds[1] - seconds[0]) / (LONG - SHORT))
            print(f"turn {turn + 1} of {TURNS}, {arm}: {1000 * found[arm][-1]:.1f} ms per step", flush=True)
    shutil.rmtree(out / "timed", ignore_errors=True)
    write_json(file, found)
    return found


def steps_of(arm: str, steps: int, speed: Mapping[str, list[float]]) -> int:
    """Of an arm at equal time: as many as fit into the time of lightly's steps, by the median turn."""
    if arm == UNTRAINED:
        return 0
    if not arm.endswith(EQUAL):
        return steps
    ratio = statistics.median(speed[PEER]) / statistics.median(speed[arm.removesuffix(EQUAL)])
    return max(1, round(steps * ratio))


def run_arm(job: tuple[str, int, int], s: Setting, out: Path) -> dict[str, Any]:
    """Train and probe one arm (arm, seed, steps), or read it where it was finished before."""
    arm, seed, steps = job
    name = arm.replace(",", "").replace(" ", "-") + f"-{seed}"
    file = out / "runs" / f"{name}.json"
    if file.is_file():
        return dict(json.loads(file.read_text(encoding="utf-8")))
    torch.manual_seed(seed)
    trained = (
        load_encoder(s.backbone, size=s.size)
        if arm == UNTRAINED
        else train(arm, s, steps, seed, out / "trained" / name)
    )
    score = probe(load_encoder(trained, size=s.size), s)
    found = {"arm": arm, "seed": seed, "steps": steps, "probe": score}
    write_json(file, found)
    print(f"{arm}, seed {seed}: {steps} steps, accuracy {score['value']:.3f}", flush=True)
    return found


def measure(s: Setting, seeds: int, jobs: int, out: Path) -> list[dict[str, Any]]:
    """Seed by seed, so that what is stopped has whole seeds."""
    speed = step_times(s, out)
    print("now training", flush=True)
    wanted = [(arm, seed, steps_of(arm, s.steps, speed)) for seed in range(seeds) for arm in ARMS]
    if jobs == 1:
        rows = [run_arm(job, s, out) for job in wanted]
    else:
        work = partial(run_arm, s=replace(s, workers=0), out=out)
        with ProcessPoolExecutor(
            jobs, get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            rows = list(pool.map(work, wanted))
    for row in rows:
        own = speed.get(row["arm"].removesuffix(EQUAL))
        row["seconds"] = round(row["steps"] * statistics.median(own), 1) if own else 0.0
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Means over seeds, and differences to lightly paired by seed with their 95 % t interval."""
    value: Callable[[str], list[float]] = lambda arm: [r["probe"]["value"] for r in rows if r["arm"] == arm]  # noqa: E731
    lines = [
        "| | steps | seconds | linear accuracy | against lightly |",
        "| --- | --- | --- | --- | --- |",
    ]
    for arm in ARMS:
        own = [r for r in rows if r["arm"] == arm]
        mean, low, high = t_interval(np.subtract(value(arm), value(PEER)))
        ends = f" [{100 * low:+.1f}, {100 * high:+.1f}]" if math.isfinite(low) else ""
        apart = "–" if arm == PEER else f"{100 * mean:+.1f} points{ends}"
        steps, seconds = (f"{np.mean([r[k] for r in own]):,.0f}" for k in ("steps", "seconds"))
        lines.append(f"| {arm} | {steps} | {seconds} | {100 * np.mean(value(arm)):.1f} % | {apart} |")
    return "\n".join(lines) + "\n"


def summary(stored: dict[str, Any]) -> str:
    """What the README says of it: setting, table, date."""
    s, rows = stored["setting"], stored["rows"]
    seeds = len({r["seed"] for r in rows})
    return (
        f"{s['backbone']} at {s['size']} px, batch {s['batch']}, queue {s['queue']:,}, {s['steps']:,} steps on {s['images']:,} "
        f"photographs of {s['classes']} classes, {s['cores']} cores, {seeds} seeds; "
        f"accuracy of a linear probe on {s['tested']:,} others, and its difference to "
        f"lightly {stored['lightly']} with a 95 % interval over seeds. Seconds are steps times the median time of a step in "
        f"{len(stored['speed'][PEER])} turns ({stored['date']}, `python benchmarks/against_lightly.py`). "
        f"lightly runs as its MoCo example documents it, cuewise with its defaults for short runs, "
        f"whose learning rate was chosen on the same images with other seeds ([how](docs/pretrain.md#short-runs)).\n\n"
        f"{table(rows)}"
    )


def into_readme(text: str, stored: dict[str, Any]) -> str:
    """The README with what is stored between its two marks, in a section of its own where they are not there yet."""
    if BEGIN not in text:
        text = text.replace(NEXT, f"## Beside lightly\n\n{BEGIN}{END}\n\n{NEXT}", 1)
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise SystemExit(f"README.md has neither {BEGIN.strip()} … {END} nor {NEXT.strip()}")
    return f"{before}{BEGIN}\n{summary(stored)}\n{END}{after}"


def store(s: Setting, rows: list[dict[str, Any]], out: Path) -> None:
    """Keep the numbers, without the places of the images, and write the README's table."""
    import lightly

    data, val = open_data(s.data), open_data(s.val)
    own = {k: v for k, v in vars(s).items() if k not in ("data", "val")}
    own |= {"images": len(data), "tested": len(val), "classes": len(data.classes), "cores": os.cpu_count()}
    found = {
        "setting": own,
        "speed": json.loads((out / "speed.json").read_text(encoding="utf-8")),
        "rows": rows,
        "date": time.strftime("%Y-%m-%d"),
        "lightly": lightly.__version__,
        "torch": torch.__version__,
    }
    text = into_readme(README.read_text(encoding="utf-8"), found)
    write_json(STORED, found)
    write_text(README, text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("data", "val", "out"):
        parser.add_argument(f"--{name}", required=True)
    for name, default in (
        ("size", 64),
        ("batch", 128),
        ("queue", 4096),
        ("steps", 2000),
        ("seeds", 3),
        ("workers", 2),
        ("jobs", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--backbone", default="torchvision/resnet18")
    parser.add_argument(
        "--store", action="store_true", help="keep the numbers in docs/peer.json and write the README's table"
    )
    asked = vars(parser.parse_args())
    keep = asked.pop("store")
    out, seeds, jobs = Path(asked.pop("out")), asked.pop("seeds"), asked.pop("jobs")
    (out / "runs").mkdir(parents=True, exist_ok=True)
    setting = Setting(**asked)
    note = out / "setting.json"
    if note.is_file() and json.loads(note.read_text()) != vars(setting):
        parser.error(f"{out} holds runs with other settings: give another --out")
    write_json(note, vars(setting))
    rows = measure(setting, seeds, jobs, out)
    write_json(
        out / "peer.json",
        {"kind": "peer", "setting": vars(setting), "rows": rows, "environment": environment()},
    )
    write_text(out / "peer.md", table(rows))
    print(table(rows))
    if keep:
        store(setting, rows, out)


if __name__ == "__main__":
    main()
