"""Decimals are computed in ``partitioning/types/decimals.py`` alone.

Python rounds ``-value`` and ``abs(value)`` of a Decimal to the digits of the thread's decimal context. That other
modules do not compute with one is held twice: here by the words of the source, and by ``tests/conftest.py``, which lets
every test run in a context of five digits in which rounding raises.
"""

from __future__ import annotations

import ast
import decimal
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "secateur"
HOME = PACKAGE / "partitioning" / "types" / "decimals.py"
ROUNDING = frozenset(
    {
        *(
            "quantize",
            "scaleb",
            "fma",
            "normalize",
            "to_integral_value",
            "to_integral_exact",
            "to_integral",
            "remainder_near",
            "next_plus",
            "next_minus",
        ),
        *("next_toward", "logb", "create_decimal", "create_decimal_from_float", "from_float"),
    }
)
"""Methods of Decimal and Context whose result depends on a context, or has no place outside of the one module."""
CLASSES = frozenset({"Decimal", "DecimalException", "Inexact"})
"""What other modules may import."""


MENTIONED = re.compile("|".join(("decimal", "Decimal", *(f"{method}[(]" for method in sorted(ROUNDING)))))
"""What a source has that breaks the rule; most sources have none of it and need not be parsed."""


def breaches_of(source: str) -> Iterator[str]:
    """What of a module computes with decimals. ``-x`` and ``abs(x)`` count in modules that know the class, unless ``x``
    is written out or a name of units.
    """
    if not MENTIONED.search(source):
        return
    tree = ast.parse(source)
    imported = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "decimal"
        for name in node.names
    ]
    for name in imported:
        if name.name not in CLASSES:
            yield f"imports decimal.{name.name}"
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(name.name == "decimal" for name in names):
                yield f"{node.lineno}: imports decimal as a whole"
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in ROUNDING:
                yield f"{node.lineno}: calls .{attribute}()"
            case ast.BinOp(left=left, right=right) if imported and any(_makes_decimal(side) for side in (left, right)):
                yield f"{node.lineno}: arithmetic on Decimal(...)"
            case ast.Call(func=ast.Name(id="abs" | "sum" | "round" | "divmod" | "pow"), args=[argument, *_]) if (
                _makes_decimal(argument)
            ):
                yield f"{node.lineno}: arithmetic on Decimal(...)"
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand) if _makes_decimal(operand):
                yield f"{node.lineno}: arithmetic on Decimal(...)"
            case _:
                pass


def _makes_decimal(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Decimal"


def test_no_other_module_computes_with_decimals() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py")) if path != HOME}
    assert len(sources) > 500
    assert [(str(path), breach) for path, source in sources.items() for breach in breaches_of(source)] == []


@pytest.mark.parametrize(
    "source",
    [
        "from decimal import Context",
        "import decimal",
        "value.quantize(step)",
        "from decimal import Decimal\nx = Decimal(text) - 1",
        "from decimal import Decimal\nx = -Decimal(text)",
        "from decimal import Decimal\nx = abs(Decimal(text))",
    ],
)
def test_the_rule_sees_arithmetic(source: str) -> None:
    assert list(breaches_of(source))


def test_every_test_runs_in_a_context_that_refuses_to_round() -> None:
    seen: list[decimal.Context] = []
    thread = threading.Thread(target=lambda: seen.append(decimal.getcontext().copy()))
    thread.start()
    thread.join()
    for context in (decimal.getcontext(), *seen):
        with pytest.raises(decimal.Inexact), decimal.localcontext(context):
            -decimal.Decimal("1234567")
