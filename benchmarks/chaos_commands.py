"""The commands of benchmarks/chaos.py: small ones of every verb that writes, and digests of what they write."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

SET = "shapes:aligned?n=96&size=32"
TEST = "shapes:aligned?n=64&size=32&part=test"
TINY_STUDY = """
from cuewise.studies.claims import Claim, above
from cuewise.studies.study import Arm, Study

TINY = Study(
    name="tiny",
    summary="Two arms of some steps",
    arms=lambda lab: [Arm("plain"), Arm("patch", lab.negative(1.0))],
    measures=("clean",),
    claims=(Claim("1", "patches help", "C", lambda lab: [above("patch", "plain", "clean")]),),
    figures=(),
)
"""
TASKS = """
- {name: near, probe: knn, k: 3, train: "shapes:aligned?n=96&size=32", size: 32}
- {name: rotations, probe: rotation, train: "shapes:aligned?n=96&size=32", size: 32}
- {name: boxes, probe: detect, body: c4, steps: 4, train: "shapes:scenes?n=16&size=32", size: 32}
"""


@dataclass(frozen=True)
class Command:
    """Words without the output, where the output stands, what to add when it is given again, and a digest of the result."""

    words: list[str]
    digest: Callable[[Path], str]
    again: tuple[str, ...] = ()
    out: str = "--out"
    file: str = ""  # the command writes this file of its folder
    workers: bool = True  # whether it starts processes

    def line(self, folder: Path, first: bool) -> list[str]:
        """The command for one trial, whose output lies in `folder`."""
        target = folder / self.file if self.file else folder
        words = [word.replace("@", str(folder)) for word in self.words]
        return [*words, *([self.out] if self.out else []), str(target), *(() if first else self.again)]


def of_files(*patterns: str) -> Callable[[Path], str]:
    """All files that fit, by name and content."""

    def digest(folder: Path) -> str:
        found = hashlib.sha256()
        for file in sorted({f for p in patterns for f in folder.glob(p) if f.is_file()}):
            found.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
        return found.hexdigest()

    return digest


def of_run(folder: Path) -> str:
    """Losses of all steps, and the encoder."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = [(r["step"], r["train/loss"]) for r in rows if "train/loss" in r]
    return json.dumps(losses) + of_files("encoder.safetensors")(folder)


def of_audit(folder: Path) -> str:
    """Scores, and that there is a report."""
    scores = json.loads((folder / "audit.json").read_text())["scores"]
    return json.dumps([scores, (folder / "report.html").is_file(), (folder / "unfinished").exists()])


def of_probe(folder: Path) -> str:
    return json.dumps(json.loads((folder / "scores.json").read_text())["scores"])


def of_report(folder: Path) -> str:
    """The page without its own place and times."""
    text = (folder / "report.html").read_text().replace(str(folder), "OUT")
    return hashlib.sha256(re.sub(r"\d\d\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", "", text).encode()).hexdigest()


def of_scores(file: str) -> Callable[[Path], str]:
    """What a file says but its times and places, and that there is a report."""

    def timeless(found: object) -> object:
        if isinstance(found, dict):
            fleeting = ("seconds", "time", "command")
            return {k: timeless(v) for k, v in found.items() if not any(word in k for word in fleeting)}
        return [timeless(v) for v in found] if isinstance(found, list) else found

    def digest(folder: Path) -> str:
        text = json.dumps(timeless(json.loads((folder / file).read_text())))
        return text.replace(str(folder), "OUT") + str((folder / "report.html").is_file())

    return digest


def of_study(folder: Path) -> str:
    """What was measured of every arm, their encoders, and the verdicts."""
    found = json.loads((folder / "results.json").read_text())["studies"]
    verdicts = [[c["verdict"] for c in study["claims"]] for study in found.values()]
    return json.dumps(verdicts) + of_files("arms/*/measured/*.json", "arms/*/encoder.safetensors")(folder)


def commands(place: Path) -> dict[str, Command]:
    """Small commands by name; `place` holds what some of them read (see `prepare`)."""
    small = ["--model", "cuewise/resnet-tiny?width=8", "--size", "32", "--batch-size", "32", "--workers", "2"]
    small += ["--epochs", "6", "--set", "loop.log_every=1"]
    transformer = ["cuewise/vit-tiny" if word.startswith("cuewise/resnet") else word for word in small]
    run, objects = str(place / "run"), str(place / "objects")
    audit = ["audit", run, "--train", SET, "--test", TEST, "--only", "accuracy,color,rotation"]
    scenes = "shapes:scenes?n=16&size=32"
    detect = ["probe", "detect", run, "--train", scenes, "--body", "c4", "--steps", "6", "--size", "32"]
    study = [
        "reproduce",
        "chaos_study:TINY",
        "--data",
        str(place / "photos"),
        "--epochs",
        "1",
        "--seeds",
        "1",
    ]

    def pretrain(method: str, *more: str, data: str = SET, words: list[str] = small) -> Command:
        return Command(["pretrain", data, "--method", method, *words, *more], of_run, ("--resume",))

    return {
        "pretrain simclr": pretrain("simclr", "--negatives", "patch"),
        "pretrain moco": pretrain("moco", "--suppress", "anisotropic"),
        "pretrain can": pretrain("can", words=transformer),
        "pretrain hcl": pretrain("hcl", data=objects),
        "pretrain densecl": pretrain("densecl"),
        "tune": Command(
            ["tune", run, f"{SET}&n=64", "--batch-size", "16", "--epochs", "2", "--workers", "2", "--no-report",
             "--set", "loop.log_every=1"],
            of_run,
            ("--resume",),
        ),
        "inspect": Command(["inspect", SET, "--only", "color,size,file"], of_scores("inspect.json")),
        "transfer": Command(
            ["transfer", run, "--suite", str(place / "tasks.yaml")], of_scores("transfer.json"), workers=False
        ),
        "probe detect": Command(detect, of_scores("probe.json"), ("--resume",), workers=False),
        "make anisotropic": Command(
            ["make", "anisotropic", f"{SET}&size=64", "--workers", "2"], of_files("*/*.png", "manifest.jsonl"), out=""
        ),
        "make --shards": Command(
            ["make", "texture", SET, "--shards", "20", "--workers", "2"], of_files("*.tar", "manifest.jsonl"), out=""
        ),
        "audit": Command([*audit, "--limit", "40", "--workers", "2"], of_audit),
        "probe linear": Command(
            ["probe", "linear", run, "--train", SET, "--test", TEST], of_probe, out="--json", file="scores.json"
        ),
        "embed": Command(
            ["embed", run, SET, "--workers", "2"], of_files("e.npz"), ("--overwrite",), file="e.npz"
        ),
        "export": Command(
            ["export", run, "--format", "timm"], of_files("e.*"), ("--overwrite",), file="e.safetensors", workers=False
        ),
        "compare": Command(
            ["compare", str(place / "one"), str(place / "two")], of_report, ("--overwrite",), workers=False
        ),
        "reproduce": Command([*study, "--jobs", "2"], of_study),
    }  # fmt: skip


def prepare(place: Path, run: Callable[[list[str]], None]) -> None:
    """What the commands read: photographs with labels, images with boxes, a run, two audits and a study."""
    write_photos(place / "photos", classes=4, each=96)
    write_objects(place / "objects", count=64)
    (place / "chaos_study.py").write_text(TINY_STUDY)
    (place / "tasks.yaml").write_text(TASKS)
    known = commands(place)
    run(known["pretrain simclr"].line(place / "run", True))
    run(known["audit"].line(place / "one", True))
    run([*known["audit"].line(place / "two", True), "--seed", "1"])


def write_photos(folder: Path, classes: int, each: int) -> None:
    rng = np.random.default_rng(0)
    for k in range(classes):
        (folder / f"class{k}").mkdir(parents=True)
        for i in range(each):
            pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8) // (k + 1)
            Pillow.fromarray(pixels).resize((32, 32)).save(folder / f"class{k}" / f"{i}.png")


def write_objects(folder: Path, count: int) -> None:
    """A set in VOC's layout with two boxes per image."""
    rng = np.random.default_rng(1)
    for part in ("JPEGImages", "Annotations"):
        (folder / part).mkdir(parents=True)
    for i in range(count):
        pixels = rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)
        Pillow.fromarray(pixels).resize((64, 64)).save(folder / "JPEGImages" / f"{i}.jpg")
        boxes = "".join(
            f"<object><name>{name}</name><bndbox><xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + 28}</xmax>"
            f"<ymax>{y + 28}</ymax></bndbox></object>"
            for name, x, y in (("one", 2 + i % 5, 3), ("two", 32, 30 - i % 5))
        )
        size = "<size><width>64</width><height>64</height></size>"
        (folder / "Annotations" / f"{i}.xml").write_text(f"<annotation>{size}{boxes}</annotation>")
