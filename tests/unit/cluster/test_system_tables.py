"""System tables whose rows are the fields of a message: each column has its field, and each field its column."""

from __future__ import annotations

import msgspec
import pytest

from secateur.planner.system import SYSTEM_TABLES
from secateur.protocol import MemberInfo, StatementEntry

OF_STATEMENTS = {
    *("statement", "system", "fingerprint", "tree", "prunable", "pruned", "reason"),
    *("members_touched", "members_total", "executions", "mean_ms", "p50_ms", "p99_ms", "max_ms"),
}
"""What the controller knows of the statements that members list."""


@pytest.mark.parametrize(
    ("table", "row", "added"),
    [
        pytest.param("members", MemberInfo, set(), id="members"),
        pytest.param("statements", StatementEntry, {"member", "id", *OF_STATEMENTS}, id="statements"),
    ],
)
def test_columns_are_the_fields_of_the_rows(table: str, row: type[msgspec.Struct], added: set[str]) -> None:
    """A column without a field would be NULL in every row, and a field without a column would be dropped."""
    columns = {column.name for column in SYSTEM_TABLES[table].columns}
    assert columns == {*row.__struct_fields__, *added}
