"""Text from outside stays text: in HTML, inside the JSON block, in Markdown and in CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_audits import HOSTILE, document

from cuewise.report import write_report
from cuewise.report.markup import Html, clean, el, embed_json, text
from cuewise.report.plain import code_block, csv_cell, markdown, markdown_table

NASTY = [
    HOSTILE,
    "</script><script>alert(1)</script>",
    "<!-- --><![CDATA[",
    "\u2028\u2029",
    "\" onload='x'",
    "&lt;b&gt;",
    "a\x00b\x1b",
]


@pytest.mark.parametrize("value", NASTY)
def test_json_block_round_trips_and_cannot_end_its_script(value: str) -> None:
    block = embed_json({"name": value, value: [1, None, 2.5]})
    assert not re.search("[<>&\u2028\u2029]", block)
    assert json.loads(block) == {"name": clean(value), clean(value): [1, None, 2.5]}


def test_json_block_has_no_nan_and_unpacks_numpy() -> None:
    block = embed_json(
        {"a": float("nan"), "b": np.float32(0.5), "c": np.array([1.0, np.inf]), "d": np.int64(3)}
    )
    assert json.loads(block) == {"a": None, "b": 0.5, "c": [1.0, None], "d": 3}


def test_only_html_is_markup() -> None:
    assert el("p", HOSTILE, class_='"x"') == f'<p class="&quot;x&quot;">{text(HOSTILE)}</p>'
    assert "<img" not in el("p", HOSTILE)
    assert el("p", Html("<b>x</b>")) == "<p><b>x</b></p>"
    assert el("p", "x", hidden=True, title=None, lang=False) == "<p hidden>x</p>"


def test_lone_surrogates_of_odd_file_names_can_be_written() -> None:
    assert clean("a\udcffb").encode("utf-8") == b"a?b"


class Tags(HTMLParser):
    """Collects elements, their attributes and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def hostile_documents(tmp_path: Path) -> tuple[list[dict[str, Any]], list[Path]]:
    """Two audits in which every string that comes from outside is hostile."""
    roots = [tmp_path / "a", tmp_path / "b"]
    documents = [document(HOSTILE, i, 0.5, root, i) for i, root in enumerate(roots)]
    for d in documents:
        bad = "</script><script>alert(2)</script>"
        d["scores"][0]["protocol"] = HOSTILE + bad
        d["scores"].append(
            {
                "name": HOSTILE,
                "value": 0.5,
                "low": 0.4,
                "high": 0.6,
                "n": 5,
                "protocol": "javascript:alert(1)",
            }
        )
        d["figures"][HOSTILE] = {"title": bad, "kind": "bars", "xlabel": HOSTILE, "ylabel": HOSTILE,
                                 "series": [{"name": bad, "x": [HOSTILE, bad], "y": [1, 2]}]}  # fmt: skip
        d["tables"][HOSTILE] = {"title": HOSTILE, "columns": [HOSTILE, "b"], "rows": [[bad, HOSTILE]]}
        d["galleries"]["conflicts"]["title"] = bad
        for item in d["galleries"]["conflicts"]["items"]:
            item.update(caption=HOSTILE, badge=bad, alt='" onerror="alert(3)')
        d["galleries"]["conflicts"]["items"][0]["image"] = "javascript:alert(4)"
        d["environment"] = {HOSTILE: {bad: HOSTILE}}
        d["command"] = f"cuewise audit '{HOSTILE}' ```"
        d["data"]["test"][0]["skipped"] = [{"path": HOSTILE, "why": bad}]
    return documents, roots


def test_a_page_of_hostile_names_has_no_foreign_element(tmp_path: Path) -> None:
    documents, roots = hostile_documents(tmp_path)
    path = write_report(documents, tmp_path / "out", curves={HOSTILE: [{"step": 1, HOSTILE: 2.0}]}, roots=roots,
                        pictures={HOSTILE: b"not a picture"}, title=HOSTILE)  # fmt: skip
    page = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert [t for t, _ in tags.tags].count("script") == 2
    assert not [k for _, a in tags.tags for k in a if k.startswith("on") or k == "style"]
    addresses = [v or "" for _, a in tags.tags for k, v in a.items() if k in {"src", "href"}]
    assert addresses
    assert all(v.startswith(("#", "data:image/")) for v in addresses)
    assert "<img src=x" not in page
    assert (
        "<img src=x"
        not in (tmp_path / "out" / "report.md").read_text(encoding="utf-8").split("## Commands")[0]
    )


@pytest.mark.parametrize("value", ["=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "  =1", "%x"])
def test_csv_cells_are_never_formulas(value: str) -> None:
    assert csv_cell(value).startswith("'")


def test_scores_csv_reads_back_with_hostile_names(tmp_path: Path) -> None:
    scores = [{"name": '=HYPERLINK("x")', "value": None, "low": None, "high": None, "n": 0, "protocol": 'a,"b"\nc'},
              {"name": "gap", "value": -0.25, "low": -1, "high": 0.5, "n": 7, "protocol": "p"}]  # fmt: skip
    write_report([{"model": {"name": "@m"}, "scores": scores}], tmp_path)
    rows = list(csv.reader(io.StringIO((tmp_path / "scores.csv").read_text(encoding="utf-8"))))
    assert rows[0] == ["model", "name", "value", "low", "high", "n", "protocol"]
    assert rows[1] == ["'@m", '\'=HYPERLINK("x")', "", "", "", "0", 'a,"b" c']
    assert rows[2] == ["'@m", "gap", "-0.25", "-1.0", "0.5", "7", "p"]


def test_markdown_cells_hold_their_row() -> None:
    table = markdown_table(["a|b"], [["x|y\nz"], ["[l](http://e)"], ["<b>"]])
    assert table.splitlines() == [
        "| a\\|b |",
        "| --- |",
        "| x\\|y z |",
        "| \\[l\\](http://e) |",
        "| &lt;b&gt; |",
    ]
    assert markdown("`x`") == "\\`x\\`"
    assert code_block("a ``` b").startswith("````sh\n")
