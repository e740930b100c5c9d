"""Tests use a room by the names that it exports, so that its files can change without them."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "secateur"
TESTS = ROOT / "tests"
MODULES_MAX = 112
"""How many modules of secateur the unit tests may import directly, rooms included."""


def imports_of(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, module and name of everything that is imported from secateur by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "secateur":
            for alias in node.names:
                yield node.lineno, node.module, alias.name


def files_of(source: str) -> dict[str, list[str]]:
    """What a room hands to ``secateur.exports``: the names of each file."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_FILES":
            found = ast.literal_eval(node.value)
    return found


def rooms() -> dict[str, dict[str, str]]:
    """Dotted name of a package -> the names that it exports -> the module that each comes from."""
    found = {}
    for path in sorted(PACKAGE.rglob("__init__.py")):
        room, source = ".".join(path.relative_to(ROOT).parent.parts), path.read_text(encoding="utf-8")
        found[room] = {
            name: module for _, module, name in imports_of(source) if module not in (room, "secateur.exports")
        }
        found[room] |= {name: f"{room}.{file}" for file, names in files_of(source).items() for name in names}
    return found


ROOMS = rooms()
SOURCES = {path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))}


def module_of(module: str, name: str) -> str:
    """The module that ``from module import name`` reaches into: a file of the room where ``name`` is one and not exported."""
    is_file = (ROOT / module.replace(".", "/") / f"{name}.py").exists()
    return f"{module}.{name}" if is_file and name not in ROOMS.get(module, ()) else module


def breaches_of(source: str) -> list[str]:
    """Imports from a file of a room of what the room exports."""
    return [
        f"line {line}: from {module.rpartition('.')[0]} import {name}"
        for line, module, name in imports_of(source)
        if module.count(".") > 1 and ROOMS.get(module.rpartition(".")[0], {}).get(name) == module
    ]


@pytest.mark.parametrize("path", SOURCES)
def test_what_a_room_exports_is_imported_from_the_room(path: str) -> None:
    assert breaches_of(SOURCES[path]) == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param("from secateur.wire.server import FrameServer", 1, id="a name of the room from its file"),
        pytest.param("def f():\n    from secateur.wire.server import FrameServer", 1, id="inside of a function"),
        pytest.param("from secateur.wire import FrameServer", 0, id="a name of the room"),
        pytest.param("from secateur.errors import Error", 0, id="a room that is one file"),
    ],
)
def test_the_rule_finds_what_it_forbids(source: str, count: int) -> None:
    assert len(breaches_of(source)) == count


@pytest.mark.parametrize("room", [room for room, names in ROOMS.items() if names])
def test_a_room_has_what_it_exports(room: str) -> None:
    module = importlib.import_module(room)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018


def test_the_code_itself_imports_from_files() -> None:
    """What a room loads later is untyped for mypy."""
    later = {
        room: files_of((ROOT / room.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")) for room in ROOMS
    }
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, module, name in imports_of(path.read_text(encoding="utf-8"))
        if any(name in names for names in later.get(module, {}).values())
    ]
    assert found == []


def test_unit_tests_know_few_modules() -> None:
    """A name that a unit test needs is exported by its room, or the test goes: as a case of tests/plans, or through the room's interface."""
    units = [source for path, source in SOURCES.items() if path.startswith("unit/")]
    modules = {module_of(module, name) for source in units for _, module, name in imports_of(source)}
    assert len(modules) <= MODULES_MAX, sorted(modules)
