"""The examples under `cuewise VERB --help` run as they stand; options are added only to make them quick."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from PIL import Image, ImageOps

from cuewise.cli import main
from cuewise.parser import Verb, parse
from cuewise.verbs import VERBS
from tests.cli.test_check import MEMBERS

pytestmark = [pytest.mark.docs, pytest.mark.slow]

EXAMPLES = [example for name, function in VERBS.items() for example in Verb(name, function).examples]
QUICK = {  # added to the words; a later option wins
    "pretrain": "--size 32 --batch-size 8 --steps 2 --workers 0 --model cuewise/resnet-tiny?width=8 --set moco.queue=64",
    "tune": "--size 32 --batch-size 8 --steps 2 --workers 0 --no-report",
    "embed": "--size 16 --workers 0",
    "audit": "--size 32 --limit 16 --workers 0",
    "compare runs/plain": "--limit 16",
    "make": "--limit 2 --workers 0",
}
ELSEWHERE = (
    "demo",
    "reproduce",
    "transfer",
)  # minutes; test_demo.py, tests/studies and tests/transfer run them


@pytest.fixture(scope="module")
def place(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs, sketches, decisions and members of one's own, under the names that the examples use."""
    place = tmp_path_factory.mktemp("examples")
    shutil.copytree(folder, place / "photos")
    shutil.copytree(folder, place / "sketches")
    for file in (place / "sketches").rglob("*.jpg"):
        with Image.open(file) as image:
            ImageOps.posterize(ImageOps.mirror(image), 3).save(file)
    rows = ("resnet50,a.png,cat,dog,cat", "resnet50,b.png,dog,cat,cat", "vit,a.png,cat,dog,dog")
    (place / "decisions.csv").write_text("\n".join(("subject,image,shape,texture,response", *rows)) + "\n")
    head, _, rest = MEMBERS.partition("@dataclass(frozen=True)\nclass Inverted")
    (place / "my_methods.py").write_text(head)
    cue, _, _ = rest.partition("@dataclass(frozen=True)\nclass Shuffled")
    (place / "my_cues.py").write_text(
        f"{head.partition('@dataclass')[0]}@dataclass(frozen=True)\nclass Inverted{cue}"
    )
    return place


def output(example: str) -> str:
    """What it writes."""
    words = shlex.split(example)
    return words[words.index("--out") + 1] if "--out" in words else ""


@pytest.fixture(scope="module")
def ran() -> set[str]:
    """Examples that have run here; tests may be shared out among processes in any way."""
    return set()


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example: str, place: Path, ran: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    run_once(example, place, ran, monkeypatch)


def run_once(example: str, place: Path, ran: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it, after those that write what it reads."""
    if example in ran:
        return
    if example.startswith("cuewise clean"):
        monkeypatch.setenv("CUEWISE_CACHE", str(place / "cache"))
    name, *words = shlex.split(example)[1:]
    if name in ELSEWHERE:
        parse(name, VERBS[name], words)
        return
    for other in EXAMPLES:
        if other != example and output(other) in words and not Path(output(other)).exists():
            run_once(other, place, ran, monkeypatch)
    if example.startswith("cuewise compare audits"):
        shutil.copytree("audits/plain", "audits/shape")
    quick = next(
        (more for begin, more in QUICK.items() if example.startswith(f"cuewise {begin}")), ""
    ).split()
    if name == "audit" and "--only" not in words:
        quick += ["--only", "accuracy"]
    assert main([name, *words, *quick]) == 0
    ran.add(example)
