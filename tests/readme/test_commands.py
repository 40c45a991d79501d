"""Every command in the README and in the pages of docs/ that starts with cuewise is real; the README's are run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import timm
from PIL import Image, ImageOps
from safetensors.torch import save_file

from cuewise.audits.audit import AUDITS
from cuewise.inspection.clue import CLUES
from cuewise.methods.method import METHODS
from cuewise.parser import build_parser
from cuewise.recipes import settings_of
from cuewise.studies.study import choose
from cuewise.verbs import VERBS

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("warm_start")]

ROOT = Path(__file__).parents[2]
# what makes a documented command quick; a later option wins over an earlier one
QUICK = {
    "pretrain": "--size 32 --batch-size 8 --steps 2 --workers 0 --model cuewise/resnet-tiny?width=8 --set moco.queue=64",
    "tune": "--size 32 --batch-size 8 --steps 2 --workers 0 --no-report",
    "audit": "--only accuracy,similarity --size 32",
    "compare": "--limit 8",
    "make": "--limit 2 --workers 1",
}


def commands(file: Path) -> list[str]:
    """Lines of code blocks that call cuewise, comments and the marks of a shell prompt left out."""
    text = file.read_text(encoding="utf-8").replace("\\\n", " ")
    fence = re.compile(r"^```(\S*)\n(.*?)^```", re.S | re.M)
    fenced = [block for kind, block in fence.findall(text) if kind in ("", "sh", "bash", "console")]
    indented = re.findall(r"^ {4}(?! )(.*)$", fence.sub("", text), re.M)
    lines = [line for block in fenced for line in block.splitlines()] + indented
    return [line.removeprefix("$ ").partition("  #")[0].strip() for line in lines if "cuewise " in line]


def words_after_cuewise(command: str) -> list[str]:
    words = shlex.split(command, comments=True)
    return words[words.index("cuewise") + 1 :] if "cuewise" in words else []


def inline(file: Path) -> list[str]:
    """Commands between backticks in the text and in tables."""
    text = re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.S | re.M)
    return [c for c in re.findall(r"`(cuewise [^`\n]+)`", text) if len(c.split()) > 2]


PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")])
DOCUMENTED = [(page.name, c) for page in PAGES for c in commands(page)]
WITHIN = [(page.name, c) for page in PAGES for c in dict.fromkeys(inline(page))]


def is_example(command: str) -> bool:
    """Not a synopsis: no […], no …, no | between alternatives, and a verb that stands first."""
    return (
        not re.search(r"[\[\]…|<>{]", command)
        and "VERB" not in command
        and bool(words_after_cuewise(command))
    )


EXAMPLES = [(page, c) for page, c in DOCUMENTED if is_example(c)]
PARSED = EXAMPLES + [(page, c) for page, c in WITHIN if is_example(c) and "--out" in c]


@pytest.mark.parametrize(("page", "command"), PARSED, ids=[f"{p}:{c[:60]}" for p, c in PARSED])
def test_documented_options_exist(page: str, command: str) -> None:
    name, *rest = words_after_cuewise(command)
    assert name in VERBS, f"{page} names a verb that does not exist"
    found = build_parser(name, VERBS[name]).parse_intermixed_args(rest)
    if name == "reproduce":
        choose([name for name in found.name if ":" not in name])  # not those of a package of the reader's own
    if getattr(found, "only", None):
        for audit in (a for text in found.only for a in text.split(",") if ":" not in a):
            (CLUES if name == "inspect" else AUDITS).get(audit)
    if name == "pretrain" and ":" not in getattr(found, "method", ":"):
        METHODS.get(found.method)
    if getattr(found, "config", None) and "." not in found.config:
        settings_of(found.config)


def test_tables_of_commands_are_read() -> None:
    assert sum(page == "suppress.md" for page, _ in PARSED) >= 30
    assert sum(page == "papers.md" for page, _ in PARSED) > 15


@pytest.fixture(scope="module")
def workplace(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photographs and weights."""
    place = tmp_path_factory.mktemp("readme")
    shutil.copytree(folder, place / "photos")
    shutil.copytree(folder, place / "more-photos")
    for file in (place / "more-photos").rglob("*.jpg"):
        with Image.open(file) as image:
            ImageOps.mirror(image).save(file)
    weights = timm.create_model("resnet10t").state_dict()
    save_file({k: v.contiguous() for k, v in weights.items()}, str(place / "resnet10t.safetensors"))
    return place


README = [c for page, c in EXAMPLES if page == "README.md"]


def test_the_readme_has_its_recipes() -> None:
    verbs = [words_after_cuewise(c)[0] for c in README]
    assert verbs == ["pretrain", "pretrain", "compare", "audit", "tune", "make", "pretrain"]


@pytest.mark.slow
def test_readme_commands_run(workplace: Path) -> None:
    """In one test: later commands read what earlier ones write."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUEWISE_CACHE": str(workplace / "cache")}
    for command in README:
        name, *rest = words_after_cuewise(command)
        done = subprocess.run(
            [sys.executable, "-m", "cuewise", name, *rest, *QUICK[name].split()],
            cwd=workplace,
            env=environment,
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        out = next((rest[i + 1] for i, w in enumerate(rest) if w == "--out"), rest[-1])
        assert any((workplace / out).iterdir()), command


def test_python_form() -> None:
    """`cuewise.VERB(…)` exists for every verb of the shell."""
    import cuewise

    for name in VERBS:
        assert callable(getattr(cuewise, name))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    """Those of docs/ are followed in test_site.py."""
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert "://" in target or (ROOT / target).exists(), target


def test_verbs_stay_callable_after_use() -> None:
    """A package of the same name must not hide the verb once it is imported."""
    code = (
        "import cuewise, pkgutil, importlib\n"
        "for m in pkgutil.iter_modules(cuewise.__path__):\n"
        "    m.name.startswith('_') or importlib.import_module(f'cuewise.{m.name}')\n"
        "from cuewise.verbs import VERBS\n"
        "assert all(callable(getattr(cuewise, name)) for name in VERBS)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
