"""Names that mislead: a public class name that means two things, and private names that tests reach into."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "secateur"
TESTS = ROOT / "tests"

# To parse all sources takes seconds; these say which lines may matter.
PUBLIC_CLASS = re.compile(r"^class ([A-Za-z]\w*)[(:]", re.MULTILINE)
PERHAPS_A_PATCH = re.compile(r"\.(setattr|delattr|object)\b|\._\w*\s*=(?!=)")


def classes_of(package: Path) -> dict[str, list[str]]:
    """Public class name -> the files that define one at their top level."""
    found = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for name in PUBLIC_CLASS.findall(path.read_text(encoding="utf-8")):
            found[name].append(path.relative_to(package).as_posix())
    return dict(found)


def test_no_public_class_name_is_defined_twice() -> None:
    twice = {name: paths for name, paths in classes_of(PACKAGE).items() if len(paths) > 1}
    assert twice == {}, "one word has one meaning: call one of them by the word that its field has for it"


def is_private(name: str) -> bool:
    """Whether a dotted name has a part that belongs to a module or a class alone."""
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def patches_of(source: str) -> Iterator[int]:
    """Lines that set a private name: ``monkeypatch.setattr(x, "_y", ...)``, ``monkeypatch.setattr("a._b", ...)`` and
    ``x._y = ...`` unless ``x`` is self.
    """
    for node in ast.walk(ast.parse(source)) if PERHAPS_A_PATCH.search(source) else ():
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr" | "object"), args=[target, *rest]):
                names = [
                    part.value
                    for part in (target, *rest[:1])
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                ]
                if any(is_private(name) for name in (*names, ast.unparse(target))):
                    yield node.lineno
            case ast.Assign(targets=targets):
                for target in targets:
                    if (
                        isinstance(target, ast.Attribute)
                        and is_private(target.attr)
                        and ast.unparse(target.value) not in ("self", "cls")
                    ):
                        yield node.lineno


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param('monkeypatch.setattr(module, "_LIMIT", 3)', 1, id="a constant of a module"),
        pytest.param(
            'monkeypatch.setattr("secateur.client.loads.load._RETRY_S", 0.1)', 1, id="a constant by its dotted name"
        ),
        pytest.param('monkeypatch.setattr(module._Class, "cost", 3)', 1, id="an attribute of a private class"),
        pytest.param("connection._session = None", 1, id="an attribute"),
        pytest.param("class A:\n    def __init__(self):\n        self._x = 1", 0, id="its own attribute"),
        pytest.param('monkeypatch.setattr(time, "monotonic", clock)', 0, id="a public name"),
    ],
)
def test_the_rule_finds_what_it_forbids(source: str, count: int) -> None:
    assert len(list(patches_of(source))) == count


def test_no_test_sets_a_private_name() -> None:
    found = {
        path.relative_to(TESTS).as_posix(): lines
        for path in sorted(TESTS.rglob("*.py"))
        if (lines := list(patches_of(path.read_text(encoding="utf-8"))))
    }
    assert found == {}, (
        "what a test needs to be smaller is a documented setting: CostModel for the planner, EngineLimits for the"
        " engine"
    )
