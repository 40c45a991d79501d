"""Which runs a list of studies needs: every arm with every seed, each run once however many studies share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cuewise.studies.jobs import ArmJob, job_of
from cuewise.studies.labs import Lab
from cuewise.studies.measures import applicable
from cuewise.studies.study import Study


@dataclass(frozen=True)
class StudyPlan:
    """The jobs, and for each study its arms with the place of each seed's job among them."""

    lab: Lab
    seeds: tuple[int, ...]
    epochs: dict[str, int]  # of the runs of each study
    jobs: list[ArmJob]
    places: dict[str, dict[str, list[int]]]  # study → arm → job of each seed


def make_plan(
    studies: Sequence[Study], lab: Lab, place: Path, seeds: int, epochs: Mapping[str, int]
) -> StudyPlan:
    """Seed by seed, so that a study that is stopped early has whole seeds. epochs: of each study's runs."""
    jobs: dict[str, ArmJob] = {}
    places: dict[str, dict[str, dict[int, str]]] = {}
    numbers = tuple(range(seeds))
    for seed in numbers:
        for study in studies:
            measures = tuple(applicable(study.measures, lab))
            for arm in study.arms(lab):
                config = lab.config(arm.settings, arm.method or lab.main, seed, epochs[study.name])
                job = job_of(config, place, measures)
                known = jobs.get(job.folder)
                if known:  # another study measures this run, too
                    both = tuple(dict.fromkeys([*known.measures, *measures]))
                    job = ArmJob(job.config, job.folder, both, job.images)
                jobs[job.folder] = job
                places.setdefault(study.name, {}).setdefault(arm.name, {})[seed] = job.folder
    order = {folder: i for i, folder in enumerate(jobs)}
    found = {s: {a: [order[f] for f in by.values()] for a, by in arms.items()} for s, arms in places.items()}
    return StudyPlan(lab, numbers, dict(epochs), list(jobs.values()), found)


def spoken(epochs: Iterable[int]) -> str:
    """ "1 epoch", "6 epochs", or "6 and 18 epochs"."""
    numbers = sorted(set(epochs))
    return " and ".join(map(str, numbers)) + (" epoch" if numbers == [1] else " epochs")
