"""One run of one arm with one seed: trained once, measured once, stored under a hash of its settings and data."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from cuewise.config import FREE_TO_CHANGE, difference, resolve
from cuewise.data import open_data
from cuewise.data.overlap import identity
from cuewise.encoders.card import weights_of_file
from cuewise.errors import UserError
from cuewise.files import write_json, write_text
from cuewise.folders import HIDDEN, lock_folder, read_mark, write_mark
from cuewise.options import texts
from cuewise.studies.labs import Lab
from cuewise.studies.measures import Quantities, TrainedArm, find_measure
from cuewise.train.pretrain import RESUMED, run_pretrain
from cuewise.train.reload import progress_of

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
FORMAT = 2  # raise when a change of the code makes trained arms stale


@dataclass(frozen=True)
class ArmJob:
    """The layer of options of one run, its folder, and the measures to take."""

    config: dict[str, Any]
    folder: str
    measures: tuple[str, ...]
    images: int  # that training passes through the network, for the progress bar

    def to_json(self, lab: Lab) -> str:
        return json.dumps({"config": self.config, "folder": self.folder, "measures": self.measures,
                           "images": self.images, "lab": asdict(lab)})  # fmt: skip


def job_of(config: dict[str, Any], place: Path, measures: tuple[str, ...]) -> ArmJob:
    """Where the run of this configuration lives below DIR/arms."""
    data, batch = open_data(config["data"]), config["batch_size"]
    if len(data) < batch:
        raise UserError(
            f"{len(data)} images are fewer than one batch of this study's runs: give --data with {batch} or more"
        )
    own = departures(resolve(config).as_dict())
    read = [weights_of(config["generator"])] if config.get("generator") else []
    read += digest_of_start(str(config.get("model") or ""))
    read += identity(images_read(config))
    content = json.dumps([FORMAT, own, data.fingerprint()["hash"], *read], sort_keys=True)
    name = hashlib.sha256(content.encode()).hexdigest()[:12]
    return ArmJob(config, str(place / name), measures, images_of(config, len(data)))


def images_read(config: Mapping[str, Any]) -> tuple[str, ...]:
    """All sets that a run reads; other images under the same names make other arms."""
    views, suppress = config.get("views") or {}, config.get("suppress")
    copies = suppress.get("copies") if isinstance(suppress, Mapping) else None
    more = [m for m in (views.get("styles"), views.get("style_copies")) if m]
    return (*config["data"], *config.get("texture_data", ()), *more, *texts(copies))


def digest_of_start(model: str) -> list[str]:
    """A hash of the weights that a model brings from a file, a folder or a run; others at the same place make other arms."""
    named = (
        model.partition("#")[0],
        model.partition(":")[2],
        model.rpartition(":")[2],
    )  # RUN#space, hf:DIR, module:f:FILE
    places = [Path(name) for name in dict.fromkeys(named) if name]
    inside = [sorted(f for end in WEIGHTS for f in p.glob(f"*{end}")) if p.is_dir() else [p] for p in places]
    return [str(weights_of_file(f)["sha256"]) for files in inside for f in files if f.is_file()]


def weights_of(generator: str) -> str:
    """A hash of its weights: another generator in the same folder makes other arms."""
    file = Path(generator) / "encoder.safetensors"
    if not file.is_file():
        raise UserError(f"--generator {generator}: no finished run of `cuewise pretrain --method pix2pix`")
    return str(weights_of_file(file)["sha256"])


def images_of(config: Mapping[str, Any], count: int) -> int:
    """How many pass through the network: whole batches of `count` images, in every epoch, or as many as a budget of steps."""
    if budget := (config.get("loop") or {}).get("budget"):
        return int(budget * config["batch_size"])
    return int(count // config["batch_size"] * config["batch_size"] * config["epochs"])


def departures(config: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from the defaults of its method, so that options added later do not change the hash of older arms."""
    plain = resolve({"method": config["method"]}).as_dict()

    def differ(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in a.items():
            if isinstance(value, Mapping) and isinstance(b.get(key), Mapping):
                if inner := differ(value, b[key]):
                    out[key] = inner
            elif value != b.get(key):
                out[key] = value
        return out

    found = {k: v for k, v in differ(config, plain).items() if k not in (*FREE_TO_CHANGE, "data")}
    return {"method": config["method"], **found}


def is_trained(job: ArmJob) -> bool:
    """Whether its run has reached its end, with the same settings."""
    if not is_begun(job):
        return False
    done, total = progress_of(Path(job.folder))
    return 0 < total <= done


def is_begun(job: ArmJob) -> bool:
    """Whether its folder holds a run with the same settings, as far as the saved ones name them."""
    folder = Path(job.folder)
    if not (folder / "config.yaml").is_file():
        return False
    saved = yaml.safe_load((folder / "config.yaml").read_text())
    now = resolve(job.config).as_dict()
    differences = difference(_shared(saved, now), _shared(now, saved))
    return all(d.endswith("→ None") for d in differences)  # None: filled in when the run began


def _shared(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """a, cut to the keys that b has too."""
    return {
        k: _shared(v, b[k]) if isinstance(v, Mapping) and isinstance(b[k], Mapping) else v
        for k, v in a.items()
        if k in b
    }


def run_job(job: ArmJob, lab: Lab) -> dict[str, Quantities]:
    """Train to the end (from the last checkpoint, where there is one), then take what has not been measured yet."""
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    # a worker of a killed command may still be at it
    with lock_folder(folder, "arm", wait=True), timed(folder):
        if read_mark(folder).get("kind") != "run":
            write_mark(folder, "run")
        if not is_trained(job):
            train(job, folder)
        return take(job, lab, folder)


def train(job: ArmJob, folder: Path) -> None:
    """Resume the run, or start it again where it was started with other settings."""
    # every value named, so that none is taken over from what is saved there
    config = resolve(job.config).as_dict()
    try:
        run_pretrain([config], folder, RESUMED)
    except UserError as error:
        if "another configuration" not in str(error) and "checkpoint" not in str(error):
            raise
        print(f"{folder.name}: {error}; starting this arm again", file=sys.stderr)
        for item in folder.iterdir():
            if item.name not in (HIDDEN, "seconds"):
                shutil.rmtree(item) if item.is_dir() else item.unlink()
        run_pretrain([config], folder, RESUMED)


def take(job: ArmJob, lab: Lab, folder: Path) -> dict[str, Quantities]:
    """The measures, from their files where they were taken before."""
    arm = TrainedArm(folder, lab)
    out: dict[str, Quantities] = {}
    for name in job.measures:
        file = measured_file(folder, name, lab)
        if not file.is_file():
            values = find_measure(name).take(arm)
            file.parent.mkdir(exist_ok=True)
            write_json(file, values, indent=1)
        out[name] = json.loads(file.read_text())
    return out


def measured_file(folder: Path, name: str, lab: Lab) -> Path:
    measure = find_measure(name)
    return folder / "measured" / f"{measure.name}-{measure.protocol(lab)}.json"


def is_done(job: ArmJob, lab: Lab) -> bool:
    """Whether nothing is left to do."""
    folder = Path(job.folder)
    return all(measured_file(folder, m, lab).is_file() for m in job.measures) and is_trained(job)


def seconds_of(job: ArmJob) -> float:
    """What training and measuring have taken so far, over all calls."""
    file = Path(job.folder) / "seconds"
    return float(file.read_text()) if file.is_file() else 0.0


@contextlib.contextmanager
def timed(folder: Path) -> Iterator[None]:
    """Adds to FOLDER/seconds, also when it is interrupted."""
    began, file = time.monotonic(), folder / "seconds"
    before = float(file.read_text()) if file.is_file() else 0.0
    try:
        yield
    finally:
        write_text(file, f"{before + time.monotonic() - began:.1f}\n")
