"""The scripts of examples/ and the three notebooks run, with small settings."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import timm
from safetensors.torch import load_file, save_file

import cuewise

pytestmark = [pytest.mark.docs, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
TRAIN, TEST = "shapes?n=64&size=32", "shapes?n=64&size=32&part=test"
SMALL = {"model": "cuewise/resnet-tiny?width=8", "size": 32, "batch_size": 16, "steps": 2, "workers": 0}


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script of that name, imported, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    for verb in ("compare", "audit"):
        monkeypatch.setattr(cuewise, verb, partial(getattr(cuewise, verb), workers=0))
    if request.param == "lightning_module":
        pytest.importorskip("pytorch_lightning")
    return importlib.import_module(request.param)


@pytest.mark.parametrize("example", ["own_folder"], indirect=True)
def test_own_folder(example: ModuleType, tmp_path: Path) -> None:
    example.main(TRAIN, TEST, tmp_path / "own", "accuracy", **SMALL)
    assert (tmp_path / "own" / "compared" / "report.html").is_file()


@pytest.mark.parametrize("example", ["tune_timm"], indirect=True)
def test_tune_timm(example: ModuleType, tmp_path: Path) -> None:
    weights = timm.create_model("resnet10t").state_dict()
    save_file(weights, str(tmp_path / "w.safetensors"))
    quick = {"size": 32, "batch_size": 16, "steps": 2, "workers": 0, "report": False}
    example.main(TRAIN, TEST, "timm/resnet10t:w.safetensors", tmp_path / "tuned", **quick)
    tuned = load_file(tmp_path / "tuned" / "encoder.safetensors")
    assert set(tuned) == set(weights)
    assert any(not tuned[k].equal(weights[k]) for k in weights)


@pytest.mark.parametrize("example", ["own_method"], indirect=True)
def test_own_method(example: ModuleType, tmp_path: Path) -> None:
    found = example.main(TRAIN, str(tmp_path / "align"), **SMALL)
    assert any(score["name"].endswith("accuracy") for score in found["scores"])


@pytest.mark.parametrize("example", ["plain_torch", "lightning_module"], indirect=True)
def test_a_method_in_another_loop(example: ModuleType) -> None:
    assert 0 < example.main("shapes?n=128&size=40", epochs=1) < 10


# in this process, and not in several that each import torch
ALONE = """
from functools import partial
for verb in ("audit", "compare", "inspect"):
    setattr(cuewise, verb, partial(getattr(cuewise, verb), workers=0))
"""
NOTEBOOKS = {  # what the cell of parameters is followed by
    "own_folder": f"photos, val, audits, settings = {TRAIN!r}, {TEST!r}, 'accuracy', {SMALL!r}",
    "tune_timm": f"photos, val = {TRAIN!r}, {TEST!r}\nsettings = dict(size=32, batch_size=16, steps=2, workers=0, report=False)",
    "own_method": f"photos, settings = {TRAIN!r}, {SMALL!r}",
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One kernel for all notebooks: each imports torch, and the names of one are forgotten before the next."""
    manager = pytest.importorskip("jupyter_client").KernelManager()
    more = {"OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(p for p in sys.path if p)}
    more["CUEWISE_CACHE"] = str(tmp_path_factory.getbasetemp() / "cache")
    manager.start_kernel(env={**os.environ, **more})
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.shell
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name: str, kernel: Any, tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    nbformat.validate(book)
    assert not any(cell.get("outputs") for cell in book.cells)  # what is kept has no outputs
    (cell,) = [c for c in book.cells if "parameters" in c.metadata.get("tags", ())]
    cell.source += f"\n{NOTEBOOKS[name]}{ALONE}"
    book.cells.insert(0, nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {tmp_path}"))
    book.cells.append(nbformat.v4.new_code_cell(f"%cd -q {tmp_path.parent}"))  # its own folder does not stay
    nbclient.NotebookClient(book, km=kernel, timeout=300).execute()
    outputs = [o for c in book.cells for o in c.get("outputs", ()) if o.output_type == "execute_result"]
    assert outputs
