"""cuewise reproduce: plan, train and measure every arm with every seed, judge the claims, write what was found."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from cuewise.config import merge
from cuewise.data import usable_cores
from cuewise.data.overlap import identity
from cuewise.errors import Interrupted, UserError
from cuewise.files import write_json
from cuewise.folders import check_folder, hold_folder
from cuewise.progress import Progress
from cuewise.studies.cautions import cautions
from cuewise.studies.claims import ENOUGH_SEEDS
from cuewise.studies.jobs import ArmJob, is_done, measured_file
from cuewise.studies.labs import Lab, lab_of, tuning
from cuewise.studies.measures import applicable, find_measure, opened
from cuewise.studies.plan import StudyPlan, make_plan, spoken
from cuewise.studies.pool import run_all
from cuewise.studies.results import ByMeasure, document_of
from cuewise.studies.study import Study, choose, only_arms
from cuewise.studies.sweep import swept
from cuewise.studies.timing import fitting_epochs
from cuewise.studies.writing import write_results
from cuewise.train.banner import counted
from cuewise.train.distributed import resolve_devices, resolve_precision
from cuewise.train.log import read_metrics

# what an embedded image costs of a training image: one forward instead of three and a backward
MEASURE_SHARE = 0.35
FIT_SECONDS = 6.0  # of the probes of one arm
MAIN = ("moco", "simclr")  # methods that take every dial of the studies


def run_studies(
    names: Sequence[str | Study],
    out: Path,
    *,
    data: Sequence[str],
    val: Sequence[str],
    ood: Sequence[str],
    test: Sequence[str],
    budget: float | None,
    seeds: int,
    epochs: int | None,
    jobs: str,
    arms: Sequence[str],
    values: Sequence[str],
    precision: str,
    method: str | None,
    model: str | None,
    size: int | None,
    generator: str | None,
    overwrite: bool,
    lab: Lab | None = None,
) -> dict[str, Any]:
    """All named studies in one lab; returns the verdicts. A second call resumes where the first stopped."""
    began = time.monotonic()
    identity.cache_clear()  # files may have changed since an earlier call in this process
    refuse_lengths(seeds, epochs, budget)
    asked = for_one_lab(choose(names), names, test)
    base = lab or (tuning(model, data, val, ood, test) if asked[0].tunes else lab_of(data, val, ood))
    lab = in_network(with_method(in_precision(base, precision), method), model, size)
    lab = swept(with_generator(lab, asked, generator), asked, values)
    chosen = only_arms(asked, lab, arms)
    check_folder(out, "study", resume=True, overwrite=overwrite)
    workers, threads = job_count(jobs)
    warnings = cautions(lab, seeds)
    images = [spec for specs in lab.sets.values() for spec in specs]
    with hold_folder(out, "study", resume=True, overwrite=overwrite, images=images) as held:
        (out / "arms").mkdir(exist_ok=True)
        lengths = lengths_of(chosen, lab, out, seeds, epochs, budget, workers, threads)
        plan = make_plan(chosen, lab, out / "arms", seeds, lengths)
        print_plan(plan, chosen, workers, threads, warnings)
        found, trained_now = work(plan, out, workers, threads, held.started)
        took = time.monotonic() - began
        document = document_of(
            chosen, plan, found, took=took, trained_now=trained_now, budget=budget, warnings=warnings
        )
        document["values"] = {s.sweep.name: s.sweep.values(lab) for s in asked if s.sweep and values}
        return write_results(document, out)


def refuse_lengths(seeds: int, epochs: int | None, budget: float | None) -> None:
    """An error for numbers that are none, or that exclude each other."""
    if seeds < 1:
        raise UserError(f"--seeds {seeds}: must be 1 or more ({ENOUGH_SEEDS} for intervals that can decide)")
    if epochs is not None and epochs < 1:
        raise UserError(f"--epochs {epochs}: must be 1 or more")
    if epochs is not None and budget is not None:
        raise UserError("--budget chooses the epochs: give --budget or --epochs")
    if budget is not None and budget <= 0:
        raise UserError(f"--budget {budget}: a number of minutes")


def for_one_lab(asked: Sequence[Study], names: Sequence[str | Study], test: Sequence[str]) -> list[Study]:
    """Without names, the studies that train from nothing; a study that starts from a trained model is run by itself."""
    tunes = [s for s in asked if s.tunes]
    if not names or not tunes:
        if test:
            raise UserError(
                "--test has stimuli for the classifier of a trained model: it is of the study tune"
            )
        return [s for s in asked if not s.tunes]
    if len(tunes) < len(asked):
        raise UserError(f"the study {tunes[0].name} starts from a trained model: run it by itself")
    return tunes


def in_precision(lab: Lab, precision: str) -> Lab:
    """The lab with that arithmetic in every run; what this machine cannot do is refused before anything is trained."""
    if precision == "auto":
        return lab
    resolve_precision(precision, resolve_devices(str(lab.base.get("devices", "auto")))[0])
    return replace(lab, base=merge(lab.base, {"precision": precision}))


def in_network(lab: Lab, model: str | None, size: int | None) -> Lab:
    """The lab with that backbone and side of the views, where they are given."""
    own = {"model": model, "size": size}
    return replace(lab, base=merge(lab.base, {k: v for k, v in own.items() if v is not None}))


def with_method(lab: Lab, method: str | None) -> Lab:
    """The lab whose studies use that method where they do not name one themselves."""
    able = [m for m in MAIN if m in lab.methods and m in lab.useful]
    if method is not None and method not in able:
        raise UserError(
            f"--method {method}: this lab has settings for {' and '.join(able) or 'one method, which it chooses itself'}"
        )
    return replace(lab, main=method or lab.main)


def with_generator(lab: Lab, asked: Sequence[Study], generator: str | None) -> Lab:
    """The lab with a learned filter, where a study has an arm for it."""
    if generator is None:
        return lab
    found = replace(lab, generator=generator)
    if all(len(s.arms(found)) == len(s.arms(lab)) for s in asked):
        raise UserError(
            "--generator: none of these studies has an arm with a learned filter; adf-supervised has"
        )
    return found


def job_count(text: str) -> tuple[int, int]:
    """(processes, threads of each): auto is one single-threaded process per core, faster than one process on all."""
    cores = usable_cores()
    if text == "auto":
        return (1, cores) if torch.cuda.is_available() else (cores, 1)
    if not text.isdigit() or int(text) < 1:
        raise UserError(f"--jobs {text}: auto, or a number of arms to train side by side")
    return int(text), max(1, cores // int(text))


def lengths_of(
    chosen: Sequence[Study],
    lab: Lab,
    out: Path,
    seeds: int,
    epochs: int | None,
    budget: float | None,
    workers: int,
    threads: int,
) -> dict[str, int]:
    """Epochs of each study's runs: as asked, as many as fit the budget, or the lab's own."""
    full = int(lab.base["epochs"])
    if budget is not None:
        full = budgeted(chosen, lab, out, seeds, full, budget, workers, threads)
    return {s.name: epochs or full * s.times for s in chosen}


def budgeted(
    chosen: Sequence[Study],
    lab: Lab,
    out: Path,
    seeds: int,
    epochs: int,
    budget: float,
    workers: int,
    threads: int,
) -> int:
    """The epochs that fit --budget; saved, so that the same command resumes with the same number."""
    note = out / "budget.json"
    asked = {
        "budget": budget,
        "studies": {s.name: [a.name for a in s.arms(lab)] for s in chosen},
        "seeds": seeds,
        "epochs": epochs,
        "lab": lab.name,
        "method": lab.main,
        "precision": lab.base.get("precision", "auto"),
        "network": [lab.base["model"], lab.base["size"]],
        "data": [list(lab.base["data"]), {role: list(specs) for role, specs in lab.sets.items()}],
    }
    if note.is_file() and (saved := json.loads(note.read_text())).get("asked") == asked:
        return int(saved["epochs"])
    plan = make_plan(chosen, lab, out / "arms", seeds, {s.name: s.times for s in chosen})
    of_first_seed = sorted({i for arms in plan.places.values() for jobs in arms.values() for i in jobs[:1]})
    times: dict[int, float] = {}
    lines = [json.dumps({**json.loads(plan.jobs[i].to_json(lab)), "time": True}) for i in of_first_seed]
    print(f"timing the first steps of {len(lines)} arms", file=sys.stderr)
    run_all(lines, workers, threads, out / "workers.log", lambda n, a: times.update({n: a["timed"]}))
    mean = sum(times.values()) / len(times)
    measuring = MEASURE_SHARE * mean * measured_images(chosen, lab) + FIT_SECONDS
    an_epoch = [t * plan.jobs[of_first_seed[n]].images for n, t in times.items() for _ in range(seeds)]
    found = fitting_epochs(budget * 60, workers, epochs, an_epoch, measuring)
    text = f"--budget {budget:g} minutes: {found} of {epochs} epochs ({1 / mean:.0f} images/s in each of {workers} processes)"
    print(text, file=sys.stderr)
    write_json(note, {"asked": asked, "epochs": found, "text": text}, indent=None)
    return found


def measured_images(chosen: Sequence[Study], lab: Lab) -> int:
    """Images that are embedded to measure one arm."""
    roles = {r for s in chosen for m in applicable(s.measures, lab) for r in find_measure(m).sets(lab) or ()}
    return sum(len(opened(tuple(lab.sets[r]))) for r in roles) + 2048


def print_plan(
    plan: StudyPlan, chosen: Sequence[Study], workers: int, threads: int, warnings: Sequence[str]
) -> None:
    arms = sum(len(a) for a in plan.places.values())
    runs = f"{counted(len(plan.jobs), 'run')} of {spoken(plan.epochs.values())}"
    studies = counted(len(chosen), "study", "studies")
    text = f"{studies}, {counted(arms, 'arm')}, {counted(len(plan.seeds), 'seed')}: {runs}"
    print(f"{text}, {workers} at a time with {counted(threads, 'thread')} each", file=sys.stderr)
    for caution in warnings:
        print(f"WARNING: {caution}", file=sys.stderr)


def work(
    plan: StudyPlan, out: Path, workers: int, threads: int, started: Callable[[], None]
) -> tuple[list[ByMeasure], int]:
    """The quantities of every job in the plan's order, and how many runs were not there yet."""
    try:
        new = run_jobs(plan.jobs, plan.lab, out / "workers.log", workers, threads, "reproducing", started)
        return [measured(job, plan.lab) for job in plan.jobs], new
    except KeyboardInterrupt:
        place = out / "arms"
        raise Interrupted(f"stopped; the same command resumes (finished arms are in {place})") from None


def run_jobs(
    jobs: Sequence[ArmJob],
    lab: Lab,
    log: Path,
    workers: int,
    threads: int,
    label: str,
    started: Callable[[], None] = lambda: None,
) -> int:
    """Train and measure what is not there yet, in processes side by side under one progress bar; returns how many.

    started: called when an arm has made its first steps
    """
    open_jobs = [job for job in jobs if not is_done(job, lab)]
    total = sum(j.images for j in jobs)
    begun = [images_done(job) for job in open_jobs]
    rest = sum(job.images - done for job, done in zip(open_jobs, begun))
    with Progress(total, "images", label, start=total - rest) as bar:
        seen, finished = list(begun), len(jobs) - len(open_jobs)

        def advance(n: int, images: int) -> None:
            bar.add(max(0, images - seen[n]), runs=f"{finished}/{len(jobs)}")
            seen[n] = max(images, seen[n])
            if images:
                started()

        def done(n: int, answer: dict[str, Any]) -> None:
            nonlocal finished
            finished += 1
            advance(n, open_jobs[n].images)

        def tick(running: list[int]) -> None:
            for n in running:
                advance(n, images_done(open_jobs[n]))

        run_all([job.to_json(lab) for job in open_jobs], workers, threads, log, done, tick)
    return len(open_jobs)


def images_done(job: ArmJob) -> int:
    """Images trained on so far, from the run's metrics."""
    file = Path(job.folder) / "metrics.jsonl"
    rows = read_metrics(file) if file.is_file() else []
    return min(job.images, int(rows[-1]["step"]) * int(job.config["batch_size"])) if rows else 0


def measured(job: ArmJob, lab: Lab) -> ByMeasure:
    """What has been measured of a finished job, by measure."""
    return {m: json.loads(measured_file(Path(job.folder), m, lab).read_text()) for m in job.measures}
