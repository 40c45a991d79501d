"""`import cuewise`: light, complete, and known to editors."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import cuewise
from cuewise import stub
from cuewise.config import Config
from cuewise.errors import UserError
from cuewise.options import checked, convert, options_of
from cuewise.parser import Verb
from cuewise.verbs import VERBS


def test_star_leaves_the_builtins_alone() -> None:
    names: dict[str, object] = {}
    exec("from cuewise import *", names)
    assert "list" not in names
    assert {"pretrain", "load_encoder", "open_data", "Encoder", "Score"} <= set(names)
    assert "moco" in cuewise.list("methods")
    assert {"list", "pretrain"} <= set(dir(cuewise))
    with pytest.raises(AttributeError, match="nothing_here"):
        cuewise.nothing_here  # type: ignore[attr-defined]  # noqa: B018


def test_the_stub_is_up_to_date() -> None:
    for file, text in stub.stubs().items():
        assert file.read_text() == text, "run python -m cuewise.stub"
    functions = {n.name: n for n in ast.parse(stub.stub()).body if isinstance(n, ast.FunctionDef)}
    assert set(functions) == set(VERBS)
    for name, function in VERBS.items():
        arguments = functions[name].args
        assert {a.arg for a in arguments.kwonlyargs} == set(Verb(name, function).options())


def test_options_of_pretrain_are_the_fields_of_config() -> None:
    fields = options_of(Config)
    assert set(fields) == set(Config.__dataclass_fields__) - {
        *("data", "views", "labels", "optim", "loop", "settings")
    }
    assert "size" not in inspect.signature(VERBS["pretrain"]).parameters
    with pytest.raises(
        UserError, match=r"--batchsize has no meaning for pretrain: did you mean --batch-size\?"
    ):
        cuewise.pretrain("shapes", out="nowhere", batchsize=3)  # type: ignore[call-arg]


def test_values_as_people_write_them_in_python() -> None:
    given = {
        "val": Path("photos"),
        "alpha": 2,
        "workers": 4,
        "patch_augment": "hflip,rot90",
        "negatives": ("patch",),
        "size": np.int64(64),
        "devices": 2,
        "steps": None,
    }
    assert checked(Config, given) == {
        "val": ["photos"],
        "alpha": [2.0],
        "workers": "4",
        "patch_augment": ["hflip", "rot90"],
        "negatives": ["patch"],
        "size": 64,
        "devices": "2",
    }


@pytest.mark.parametrize(
    ("hint", "value", "error"),
    [
        (int, "many", "x must be a whole number, not 'many'"),
        (float, "fast", "x must be a number, not 'fast'"),
        (int, 2.5, "x must be a whole number"),
        (int, True, "x must be a whole number"),
        (bool, 1, "x must be true or false"),
        (float, "nan", "x nan: give a finite number"),
        (float | None, float("inf"), "x inf: give a finite number"),
        (list[float], [1, "b"], "x must be a number, not 'b'"),
    ],
)
def test_values_of_another_type(hint: object, value: object, error: str) -> None:
    with pytest.raises(UserError, match=error):
        convert(hint, value, "x")


def test_conversions() -> None:
    assert convert(float, "1e-4", "x") == 1e-4
    assert convert(list[str] | None, None, "x") is None
    assert convert(list[str], "a,b", "x") == ["a,b"]
    assert convert(list[str], "a,b", "x", commas=True) == ["a", "b"]
