"""Shape bias from decisions: the definition, its corner cases, and the shell's score verb."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from cuewise import UserError, score
from cuewise.audits.decisions import Decision, parse_stimulus, shape_bias_scores
from cuewise.audits.shape_bias import headline
from cuewise.scores import Score


def write(file: Path, rows: list[tuple[str, str, str, str, str]]) -> Path:
    with file.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["subject", "image", "shape", "texture", "response"])
        writer.writerows(rows)
    return file


ROWS = [
    ("m", "cat1-dog1", "cat", "dog", "cat"),
    ("m", "cat2-dog2", "cat", "dog", "dog"),
    ("m", "cat3-car1", "cat", "car", "cat"),
    ("m", "car1-dog1", "car", "dog", "bird"),  # neither
    ("m", "dog1-dog2", "dog", "dog", "dog"),  # no conflict: dropped
]


def test_the_definition(tmp_path: Path) -> None:
    result = score(str(write(tmp_path / "d.csv", ROWS)))
    values = {s["name"]: (s["value"], s["n"]) for s in result["scores"]}
    assert values["shape_bias"] == (pytest.approx(2 / 3), 3)
    assert values["shape_accuracy"] == (pytest.approx(2 / 4), 4)
    assert values["texture_accuracy"] == (pytest.approx(1 / 4), 4)
    table = result["tables"]["shape_bias/m"]
    assert table["dropped"] == 1
    assert ["car", 1, 0, 0, 1, None] in table["rows"]


def test_several_subjects_are_distinguished(tmp_path: Path) -> None:
    rows = ROWS + [("other", *r[1:4], r[3]) for r in ROWS]
    names = [s["name"] for s in score(str(write(tmp_path / "d.csv", rows)))["scores"]]
    assert "shape_bias/m" in names
    assert "shape_bias/other" in names
    only = score(str(tmp_path / "d.csv"), subject="other")["scores"]
    assert [s["value"] for s in only] == [0.0, 0.0, 1.0]


def test_nothing_decided_is_not_a_number() -> None:
    scores, _ = shape_bias_scores([Decision("x", "cat", "dog", "bird")], "p")
    assert math.isnan(scores[0].value)
    assert scores[0].as_dict()["value"] is None
    assert scores[1].value == 0.0


@pytest.mark.parametrize(
    ("name", "cues"),
    [
        ("cat/cat7-elephant1.jpg", ("cat", "elephant")),
        ("bottle3-clock2", ("bottle", "clock")),
        ("key/key1-bottle1.png", ("key", "bottle")),
        ("no conflict here.png", None),
        ("-.png", None),
    ],
)
def test_stimulus_names(name: str, cues: tuple[str, str] | None) -> None:
    assert parse_stimulus(name) == cues


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("subject,image\na,b\n", "no column shape"),
        ("subject,image,shape,texture,response\n", "only a header"),
        ("subject,image,shape,texture,response\na,b,c\n", "line 2 is too short"),
        ("subject,image,shape,texture,response\na,b,c,d," + "x" * 200_000, "is a broken CSV"),
    ],
)
def test_bad_tables_are_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        score(str(tmp_path / "d.csv"))


def test_missing_file_and_subject(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"is a folder; give a table of decisions: a CSV .*cuewise audit MODEL --test"
    ):
        score(str(tmp_path))
    with pytest.raises(UserError, match="no file"):
        score(str(tmp_path / "nothing.csv"))
    with pytest.raises(UserError, match="no subject"):
        score(str(write(tmp_path / "d.csv", ROWS)), subject="nobody")


def test_the_table_by_class() -> None:
    decisions = [Decision(image, shape, texture, said) for _, image, shape, texture, said in ROWS]
    _, table = shape_bias_scores(decisions, "p")
    assert table["rows"] == [["car", 1, 0, 0, 1, None], ["cat", 3, 2, 1, 0, pytest.approx(2 / 3)]]
    assert table["dropped"] == 1


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.7, 0.6, 0.8, "relies on shape more than on texture"),
        (0.3, 0.2, 0.4, "relies on texture more than on shape"),
        (0.55, 0.45, 0.65, "shows no clear preference between shape and texture"),
        (0.5, math.nan, math.nan, "how certain that is was not measured"),
    ],
)
def test_the_headline_says_what_the_interval_allows(
    value: float, low: float, high: float, words: str
) -> None:
    assert words in headline("m", {"shape_bias": Score("shape_bias", value, low, high, 100, "p")})
    assert headline("m", {}) == ""
