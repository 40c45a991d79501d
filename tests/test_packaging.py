"""Wheel and sdist: built without a network from a copy of the sources, complete, and usable by themselves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import cuewise

pytestmark = [pytest.mark.slow, pytest.mark.shell]
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info", "_build")
BUILD = "import sys; from setuptools import build_meta as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, made by the declared backend."""
    pytest.importorskip("setuptools", minversion="77")
    place = tmp_path_factory.mktemp("source")
    for name in ("src", "tests", "benchmarks", "docs", "examples"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=HEAVY)
    for file in ROOT.iterdir():
        if file.is_file() and not file.name.startswith("."):
            shutil.copy(file, place)
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(out)], cwd=place, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return out


def in_tree(*folders: str) -> set[str]:
    """Files of the sources, without what Python and the build leave there."""
    files = (f for name in folders for f in (ROOT / name).rglob("*") if f.is_file())
    kept = (f for f in files if "__pycache__" not in f.parts and not re.search(r"\.egg-info|_build", str(f)))
    return {f.relative_to(ROOT).as_posix() for f in kept}


def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        info = next(n.partition("/")[0] for n in names if ".dist-info/" in n)
        metadata = wheel.read(f"{info}/METADATA").decode()
        scripts = wheel.read(f"{info}/entry_points.txt").decode()
    own = {n for n in names if n.startswith("cuewise/")}
    assert own == {n.removeprefix("src/") for n in in_tree("src/cuewise")}
    assert {n.partition("/")[0] for n in names} == {"cuewise", info}
    assert f"Version: {cuewise.__version__}\n" in metadata
    assert "cuewise = cuewise.cli:main" in scripts
    assert f"{info}/licenses/LICENSE" in names
    assert {"cuewise/py.typed", "cuewise/__init__.pyi", "cuewise/transforms/__init__.pyi"} <= own


def test_the_sdist_holds_what_the_tests_need(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    wanted = in_tree("src/cuewise", "tests", "benchmarks", "docs", "examples")
    wanted |= {"pyproject.toml", "Makefile", "constraints.txt", "README.md", "LICENSE", "CHANGELOG.md"}
    assert wanted - names == set()
    assert not {n for n in names if n.endswith(".pyc")}


def test_the_wheel_works_away_from_the_sources(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "site"),
        "CUEWISE_CACHE": str(tmp_path / "cache"),
    }
    code = (
        "import cuewise, sys; from cuewise.cli import main\n"
        f"assert cuewise.__file__.startswith({str(tmp_path)!r}), cuewise.__file__\n"
        "from cuewise.catalogue import KINDS\n"
        "for what in KINDS: assert cuewise.list(what), what\n"
        "from cuewise.recipes import recipes; assert recipes()\n"
        "sys.exit(main(['--version']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"cuewise {cuewise.__version__}\n"


def test_versions_and_bounds_agree() -> None:
    assert PROJECT["project"]["version"] == cuewise.__version__
    assert f"\n## {cuewise.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M))
    pinned = {name.lower().replace("_", "-"): version for name, version in pinned.items()}
    for line in PROJECT["project"]["dependencies"]:
        match = re.fullmatch(r"([\w.-]+)>=([\d.]+)", line)
        assert match, f"{line}: a lower bound, and nothing else"
        name = match[1].lower().replace("_", "-")
        assert name in pinned, f"{name} is not pinned in constraints.txt"
        assert _numbers(pinned[name]) >= _numbers(match[2]), f"{name}: tested below its own lower bound"


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version.partition("+")[0])]
