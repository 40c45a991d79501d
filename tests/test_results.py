"""What verbs return: plain dicts for programs, tables for people, pictures in notebooks."""

from __future__ import annotations

import json
import math
import pickle
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import cuewise
from cuewise.cli import main
from cuewise.errors import UserError
from cuewise.progress import Progress, bar_class
from cuewise.results import Result

HOSTILE = "<script>alert('x')</script>\"&\u202e\x00"
SCORE = {"name": "shape_bias", "value": 0.25, "low": 0.1, "high": 0.4, "n": 40, "protocol": "linear probe"}


class Tags(HTMLParser):
    """Names of the elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_result_is_a_plain_dict_for_json() -> None:
    found = Result(
        {"scores": [SCORE], "value": math.nan, "n": np.int64(3), "file": Path("a"), "pair": (1, 2)}
    )
    want = {"scores": [SCORE], "value": None, "n": 3, "file": "a", "pair": [1, 2]}
    assert found == want
    assert want == found
    assert json.loads(json.dumps(found, allow_nan=False)) == want
    assert pickle.loads(pickle.dumps(found)) == want
    assert type(pickle.loads(pickle.dumps(found))) is Result
    assert repr(Result({})) == "{}"


def test_it_prints_what_the_shell_prints(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "decisions.csv"
    file.write_text("subject,image,shape,texture,response\nme,a.png,cat,dog,cat\nme,b.png,dog,cat,cat\n")
    assert main(["score", str(file)]) == 0
    found = cuewise.score(file)
    assert capsys.readouterr().out == f"{found}\n"
    assert "shape_bias" in repr(found)
    assert "[0.0945, 0.9055]  n=2" in repr(found)
    assert cuewise.list("probes")["knn"] in repr(cuewise.list("probes"))


def test_every_verb_returns_one() -> None:
    from cuewise.options import get_type_hints
    from cuewise.verbs import VERBS

    assert {get_type_hints(verb)["return"] for verb in VERBS.values()} == {Result}


def test_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    one = Result({"scores": [SCORE], "report": "x"}).to_pandas()
    assert list(one.columns) == ["name", "value", "low", "high", "n", "protocol"]
    assert one.loc[0, "value"] == 0.25
    scores = [{**SCORE, "name": f"{m}: shape_bias"} for m in ("a", "a: b")]
    two = Result({"scores": scores, "models": ["a", "a: b"]}).to_pandas()
    assert two[["model", "name"]].to_numpy().tolist() == [["a", "shape_bias"], ["a: b", "shape_bias"]]
    single = Result({"steps": 3, "run": "r", "rows": [1]}).to_pandas()
    assert single.to_numpy().tolist() == [["steps", 3], ["run", "r"]]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"pip install 'cuewise\[tables\]'"):
        Result({"scores": []}).to_pandas()


def audited(folder: Path, name: str) -> Result:
    """A folder with an audit of a model of that name, and the result that names it."""
    series = {"name": name, "x": [name, "dog"], "y": [0.2, 0.9], "low": [0.1, 0.8], "high": [0.3, 1.0]}
    figure = {"title": name, "kind": "bars", "xlabel": name, "ylabel": "accuracy", "series": [series]}
    lines = {**figure, "kind": "lines", "series": [{**series, "x": [1, 2], "name": n} for n in ("a", name)]}
    document = {
        "model": {"name": name, "weights": "random"},
        "scores": [],
        "figures": {"own": figure, "l": lines},
    }
    folder.mkdir()
    (folder / "audit.json").write_text(json.dumps(document))
    Image.new("RGB", (40, 20), (200, 30, 30)).save(folder / "views.png")
    return Result({"report": str(folder / "report.html"), "scores": [{**SCORE, "name": name}], name: name})


def test_a_notebook_shows_a_table_figures_and_pictures(tmp_path: Path) -> None:
    page = audited(tmp_path / "audit", "mine")._repr_html_()
    tags = Tags(page)
    assert tags.names.count("svg") == 1 + 2  # the interval, two figures
    assert tags.names.count("rect") == 2
    assert tags.names.count("polyline") == 2
    assert 'src="data:image/' in page
    assert "the weights are random" in tags.text
    assert "0.1000 to 0.4000" in tags.text


def test_hostile_names_are_text_in_a_notebook(tmp_path: Path) -> None:
    found = audited(tmp_path / "a<img src=x onerror=alert(1)>", HOSTILE)
    found |= {"comparison": {"columns": ["score", HOSTILE], "rows": [[HOSTILE, 0.5]]}}
    for page in (Result(found)._repr_html_(), audited(tmp_path / "b", HOSTILE)._repr_html_()):
        tags = Tags(page)
        assert "<script>alert('x')</script>" in tags.text
        assert {"script"} & set(tags.names) == set()
        assert not {a for a in tags.attributes if a.startswith("on")}
        assert "\x00" not in page
        assert tags.names.count("img") == 1


def test_a_broken_audit_shows_the_scores_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text("{")
    (tmp_path / "views.png").write_bytes(b"no picture")
    page = Result({"report": str(tmp_path / "report.html"), "scores": [SCORE]})._repr_html_()
    assert "shape_bias" in page
    assert "<img" not in page


def test_progress_in_a_notebook_is_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bar_class() is None  # a log
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with Progress(4, "images", "embedding") as bar:
        bar.add(4)
    assert "embedding: 100%" in capsys.readouterr().err
