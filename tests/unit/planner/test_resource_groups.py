"""CREATE, ALTER and DROP RESOURCE GROUP as they are read."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import ProgrammingError, SqlSyntaxError
from secateur.planner import AlterResourceGroup, CreateResourceGroup, DropResourceGroup
from secateur.protocol import ResourceGroup

G = ResourceGroup("g")


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("CREATE RESOURCE GROUP g", CreateResourceGroup(G, if_not_exists=False)),
        (
            """CREATE RESOURCE GROUP IF NOT EXISTS G WITH (weight = 2, max_running = 4, statement_timeout = '5s',
            max_memory = '1GB', max_rows = 1000000, rate = 0.5) FOR Gold, silver""",
            CreateResourceGroup(
                ResourceGroup("g", ("gold", "silver"), 2.0, 4, 5000, 1_000_000_000, 1_000_000, 0.5), if_not_exists=True
            ),
        ),
        (
            "CREATE RESOURCE GROUP g WITH (max_memory = 4096) FOR PUBLIC",
            CreateResourceGroup(ResourceGroup("g", max_memory=4096), if_not_exists=False),
        ),
        ("ALTER RESOURCE GROUP g WITH (weight = 3)", AlterResourceGroup("g", {"weight": 3.0}, None)),
        (
            "ALTER RESOURCE GROUP g WITH (rate = DEFAULT, weight = DEFAULT, statement_timeout = 0) FOR gold",
            AlterResourceGroup("g", {"rate": None, "weight": 1.0, "statement_timeout_ms": None}, ("gold",)),
        ),
        ("ALTER RESOURCE GROUP g FOR PUBLIC", AlterResourceGroup("g", {}, ())),
        ("DROP RESOURCE GROUP IF EXISTS g", DropResourceGroup("g", if_exists=True)),
    ],
)
def test_statements(context: Any, sql: str, statement: Any) -> None:
    assert context.prepare(sql) == statement


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("size = 4", "a resource group has no 'size': there is weight, max_running, statement_timeout"),
        ("weight = 0", "weight is a number above 0 and up to 1,000"),
        ("weight = 'much'", "weight is a number above 0"),
        ("max_running = 1.5", "max_running is a whole number from 1 to"),
        ("max_rows = 0", "max_rows is a whole number from 1 to"),
        ("max_memory = '1 pound'", "max_memory is a number of bytes, or a size such as '1GB'"),
        ("statement_timeout = 5", "statement_timeout is a time with its unit"),
        ("rate = 0", "rate is a number above 0"),
    ],
)
def test_values_that_cannot_be(context: Any, limits: str, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        context.prepare(f"CREATE RESOURCE GROUP g WITH ({limits})")


def test_an_alteration_says_what(context: Any) -> None:
    with pytest.raises(SqlSyntaxError, match=r"expected WITH \(\.\.\.\) or FOR"):
        context.prepare("ALTER RESOURCE GROUP g")
