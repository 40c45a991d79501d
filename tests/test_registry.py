"""Members are found in a package, by a typed path, and by an entry point of an installed package."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from cuewise.errors import UserError
from cuewise.registry import Registry, import_typed, instances_of, subclasses_of, summaries

FRUITS = {
    "fruit.py": """
        from abc import ABC, abstractmethod
        class Fruit(ABC):
            name: str
            summary: str
            @abstractmethod
            def taste(self): ...
        class Citrus(Fruit):
            "Abstract still: no name of its own."
    """,
    "lemon.py": """
        from {package}.fruit import Citrus, Fruit
        class Lemon(Citrus):
            name = "lemon"
            summary = "sour"
            def taste(self): return "sour"
    """,
    "lime.py": """
        from {package}.lemon import Lemon
        class Lime(Lemon):
            name = "lime"
            summary = ("sour "
                       "and green")
        class Unnamed(Lemon): ...
    """,
}


def write(folder: Path, files: dict[str, str], package: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(textwrap.dedent(text).replace("{package}", package))
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on sys.path whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


@pytest.fixture
def fruits(place: Path, request: pytest.FixtureRequest) -> Registry[type]:
    package = f"fruits_{abs(hash(request.node.nodeid))}"  # what a package declares is read once
    write(place / package, {"__init__.py": "", **FRUITS}, package)
    base = import_typed(f"{package}.fruit:Fruit", "fruit")
    return Registry[type]("fruit", package, subclasses_of(base))


def install(place: Path, group: str, points: str) -> None:
    """What pip would have left of a package with entry points."""
    folder = place / "orchard-1.0.dist-info"
    shutil.rmtree(folder, ignore_errors=True)  # of an installation before
    write(
        folder,
        {
            "METADATA": "Metadata-Version: 2.1\nName: orchard\nVersion: 1.0\n",
            "entry_points.txt": f"[{group}]\n{points}\n",
        },
    )


def test_the_files_of_a_package(fruits: Registry[type]) -> None:
    assert {name: kind.__name__ for name, kind in fruits.all().items()} == {"lemon": "Lemon", "lime": "Lime"}
    assert fruits.summaries() == {"lemon": "sour", "lime": "sour and green"}
    assert fruits.get("lime") is fruits.all()["lime"]


def test_get_imports_one_file_and_summaries_none(fruits: Registry[type]) -> None:
    assert list(fruits.summaries()) == ["lemon", "lime"]
    fruits.get("lemon")
    assert f"{fruits.package}.lemon" in sys.modules
    assert f"{fruits.package}.lime" not in sys.modules


def test_a_name_nearby_is_suggested(fruits: Registry[type]) -> None:
    with pytest.raises(UserError, match=r"no fruit 'Lemmon'; did you mean lemon\? there are: lemon, lime"):
        fruits.get("Lemmon")


def test_two_members_of_one_name(fruits: Registry[type], place: Path) -> None:
    twin = "from {package}.lemon import Lemon\nclass Twin(Lemon):\n    name = 'lime'\n    summary = ''\n"
    write(place / fruits.package, {"twin.py": twin}, fruits.package)
    with pytest.raises(ValueError, match="two fruits are called 'lime'"):
        fruits.all()


MELON = """
    import {package}.fruit
    class Melon({package}.fruit.Fruit):
        name = "melon"
        summary = "sweet"
        def taste(self): return "sweet"
    not_a_fruit = 3
"""


def test_a_typed_path(fruits: Registry[type], place: Path) -> None:
    write(place / "garden", {"__init__.py": "", "bed.py": MELON}, fruits.package)
    assert fruits.get("garden.bed:Melon").name == "melon"  # type: ignore[attr-defined]
    for spec, error in (
        ("garden.bed:Melom", r"garden.bed has no 'Melom'; did you mean Melon\?"),
        ("garden.bad:Melon", "cannot import garden.bad for the fruit garden.bad:Melon"),
        ("garden.bed:not_a_fruit", "garden.bed:not_a_fruit is not a fruit"),
    ):
        with pytest.raises(UserError, match=error):
            fruits.get(spec)


def test_a_module_of_the_working_folder(
    fruits: Registry[type], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = write(tmp_path_factory.mktemp("work"), {"my_melon.py": MELON}, fruits.package)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(Path.cwd()))])
    monkeypatch.chdir(work)
    assert fruits.get("my_melon:Melon").name == "melon"  # type: ignore[attr-defined]


def test_an_error_inside_a_users_module_is_one_line(place: Path) -> None:
    write(place, {"half.py": "def broken(:"})
    with pytest.raises(UserError, match="cannot import half for the fruit half:X: SyntaxError"):
        import_typed("half:X", "fruit")


def test_entry_points(fruits: Registry[type], place: Path) -> None:
    write(
        place / "market", {"__init__.py": "raise ImportError('not yet')", "stall.py": MELON}, fruits.package
    )
    install(place, "cuewise.fruits", "melon = market.stall:Melon")
    assert fruits.summaries()["melon"] == "sweet (market.stall:Melon)"  # read without importing market
    assert "market" not in sys.modules
    with pytest.raises(UserError, match=r"cannot import the fruit market.stall:Melon .*of orchard.*not yet"):
        fruits.get("melon")
    with pytest.warns(UserWarning, match="not yet"):
        assert list(fruits.all()) == ["lemon", "lime"]  # one broken package does not stop the others
    (place / "market" / "__init__.py").write_text("")
    assert fruits.get("melon").name == "melon"  # type: ignore[attr-defined]
    assert list(fruits.all()) == ["lemon", "lime", "melon"]


def test_entry_points_do_not_replace_or_rename(fruits: Registry[type], place: Path) -> None:
    write(place, {"stand.py": MELON}, fruits.package)
    install(place, "cuewise.fruits", "lemon = stand:Melon")
    with pytest.warns(UserWarning, match="entry point lemon = stand:Melon: the name is taken"):
        assert fruits.summaries()["lemon"] == "sour"
    assert fruits.get("lemon").name == "lemon"  # type: ignore[attr-defined]
    install(place, "cuewise.fruits", "water = stand:Melon")
    with pytest.raises(UserError, match="calls itself 'melon'"):
        fruits.get("water")


def test_installed_packages_are_read_again_only_after_a_change(
    fruits: Registry[type], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counting(group: str) -> Any:
        asked.append(group)
        return entry_points(group=group)

    monkeypatch.setattr("cuewise.registry.entry_points", counting)
    write(place, {"stand.py": MELON}, fruits.package)
    assert [list(fruits.summaries()) for _ in range(3)] == 3 * [["lemon", "lime"]]
    assert asked == ["cuewise.fruits"]
    install(place, "cuewise.fruits", "melon = stand:Melon")
    assert [list(fruits.summaries()) for _ in range(3)] == 3 * [["lemon", "lime", "melon"]]
    assert asked == 2 * ["cuewise.fruits"]


def test_the_working_folder_is_a_place_too(
    fruits: Registry[type],
    place: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interpreter at a prompt has "" on its path: what that is changes with the folder."""
    write(place, {"stand.py": MELON}, fruits.package)
    monkeypatch.syspath_prepend("")
    assert list(fruits.summaries()) == ["lemon", "lime"]
    there = tmp_path_factory.mktemp("there")
    install(there, "cuewise.fruits", "melon = stand:Melon")
    monkeypatch.chdir(there)
    assert list(fruits.summaries()) == ["lemon", "lime", "melon"]


@dataclass(frozen=True)
class Tool:
    name: str
    summary: str


def test_objects_and_decorators(place: Path) -> None:
    source = f"""
        from {__name__} import Tool
        def tool(name, summary, **more):
            return lambda function: Tool(name, summary)
        SAW = Tool("saw", "cuts wood")
        FILE = Tool(summary="smooths", name="file")
        @tool("drill", "makes holes", speed=3)
        def drill(): ...
        def plain(): ...
        LIST = [Tool("hidden", "not at the top level")]
    """
    write(place / "shed", {"__init__.py": "", "tools.py": source})
    shed = Registry[Tool]("tool", "shed", instances_of(Tool))
    assert {n: t.summary for n, t in shed.all().items()} == shed.summaries()
    assert shed.summaries() == {"drill": "makes holes", "file": "smooths", "saw": "cuts wood"}
    assert summaries("tools", "shed") == shed.summaries()
    assert shed.get("file") == Tool("file", "smooths")
