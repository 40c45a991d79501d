"""`cuewise runs`: what run folders say of themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import cuewise
from cuewise.cli import main
from cuewise.train.listing import dials_of, list_runs

pytestmark = pytest.mark.usefixtures("warm_start")


def write_run(folder: Path, step: int, *, epochs: int = 2, **config: Any) -> Path:
    """A run of 32 images in batches of 16 that has come to a step."""
    content = {"method": "moco", "model": "cuewise/resnet-tiny", "epochs": epochs, "batch_size": 16, **config}
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(content))
    (folder / "environment.json").write_text(json.dumps({"data": {"count": 32 + 5}}))
    rows = [{"step": s, "train/loss": 5.0 - s, "val/knn20_t0.07_loo": 0.1 * s} for s in range(1, step + 1)]
    rows = [{**r, "val/knn20_t0.07_loo_low": 0.0} for r in rows]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows) + '{"step": 9')
    if step:
        (folder / "encoder.safetensors").touch()
        (folder / "encoder.json").write_text(json.dumps({"step": step}))
    return folder


def test_states_dials_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "a", 4, negatives=["patch"], alpha=[2.0])
    write_run(tmp_path / "deep" / "b", 3, suppress={"name": "anisotropic"}, alpha=[2.0])
    write_run(tmp_path / "c", 0)
    write_run(tmp_path / "d", 2, loop={"budget": 2})
    (tmp_path / "e" / "checkpoints").mkdir(parents=True)
    (tmp_path / "e" / "config.yaml").write_text("method: [")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "config.yaml").write_text("not: a run")
    os.symlink(tmp_path, tmp_path / "loop")
    found = cuewise.runs(tmp_path)
    rows = {r["run"]: r for r in found["runs"]}
    states = {name: r["state"] for name, r in rows.items()}
    assert states == {"a": "finished", "deep/b": "stopped", "c": "stopped", "d": "finished", "e": "broken"}
    assert found["finished"] == 2
    assert rows["a"]["dials"] == "negatives=patch alpha=2.0"
    assert rows["deep/b"]["dials"] == "suppress=anisotropic"
    assert rows["c"]["dials"] == "none"
    assert (rows["deep/b"]["step"], rows["deep/b"]["steps"]) == (3, 4)
    assert rows["a"]["loss"] == 1.0
    assert rows["a"]["val/knn20_t0.07_loo"] == pytest.approx(0.4)
    assert "val/knn20_t0.07_loo_low" not in rows["a"]
    assert main(["runs", str(tmp_path), "--json", str(tmp_path / "runs.json")]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split()[:4] == ["run", "state", "step", "steps"]
    assert json.loads((tmp_path / "runs.json").read_text())["runs"] == found["runs"]
    assert "<table>" in found._repr_html_()


@pytest.mark.shell
def test_a_run_that_another_process_writes_is_running(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", 4)
    code = (
        "import sys, pathlib; from cuewise.folders import lock_folder\n"
        f"with lock_folder(pathlib.Path({str(run)!r})):\n    print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == b"held\n"
    assert list_runs(tmp_path)["runs"][0]["state"] == "running"
    other.stdin.close()
    other.wait(30)
    assert list_runs(tmp_path)["runs"][0]["state"] == "finished"


def test_where_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(tmp_path)]) == 2
    assert main(["runs", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr().err
    assert "no run below" in said
    assert "no folder" in said
    assert dials_of({"color_jitter": False, "tune": {"keep": 1.0}}) == "color_jitter=off keep=1.0"
