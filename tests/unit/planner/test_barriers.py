"""What may fail in a statement is computed of the rows that row policies let pass, and of no others."""

from __future__ import annotations

from typing import Any

import pytest

from described_tables import DescribedTables
from secateur.planner import PlannedSelect
from secateur.planner.binding import Viewer
from secateur.protocol import AccessRecord, GrantedToken, Policy, PolicyCommand, Rights, RowCondition, TokenRole

POLICY = RowCondition(("tenant = ", "tenant", ""), ("tenant",))


@pytest.fixture
def tables() -> DescribedTables:
    return DescribedTables.of(
        [
            "CREATE TABLE notes (tenant TEXT PRIMARY KEY, note TEXT, v INT) PARTITION BY HASH (tenant) PARTITIONS 8",
            "CREATE TABLE open (id BIGINT PRIMARY KEY, note VARCHAR) PARTITION BY HASH (id) PARTITIONS 8",
        ]
    )


def barriers(tables: DescribedTables, sql: str, params: Any = ()) -> set[bool]:
    """Whether the fragments that read ``notes`` read it behind a barrier, for a reader under a policy."""
    table = tables.table("notes")
    policy = Policy("own_rows", table.origin, PolicyCommand.ALL, (), POLICY)
    token = GrantedToken("t1", TokenRole.READ, principal="ada", claims={"tenant": "C1"})
    rights = Rights.of(token, AccessRecord((), (), (policy,), (table.origin,)))
    statement = tables.planner.prepare(sql, params, tables, viewer=Viewer({"tenant": "C1"}, rights, tables.known.get))
    assert isinstance(statement, PlannedSelect)
    plan = statement.plan
    fragments = [plan.local, *(stage.fragment for stage in (*plan.stages, *plan.gathered, *plan.undivided))]
    scans = {scan.relation for scan in plan.scans if scan.table == "notes"}
    return {bool(fragment.barriers) for fragment in fragments if scans & set(fragment.relations)}


@pytest.mark.parametrize(
    ("sql", "is_behind"),
    [
        ("SELECT * FROM notes", False),
        ("SELECT * FROM notes WHERE v > 3 AND note = 'a'", False),
        ("SELECT note, count(*) FROM notes WHERE v IN (1, 2) GROUP BY note ORDER BY 2", False),
        ("SELECT CAST(note AS INTEGER) FROM notes", False),  # of the rows that are left
        ("SELECT * FROM notes WHERE CAST(note AS INTEGER) > 0", True),
        ("SELECT * FROM notes WHERE 1 // v > 0 OR note LIKE 'a%' ESCAPE note", True),
        ("SELECT * FROM notes WHERE v + 1 > 3", True),
        ("SELECT * FROM notes WHERE TRY_CAST(note AS INTEGER) > 0 AND error(note) IS NULL", True),
        ("SELECT * FROM (SELECT CAST(note AS INTEGER) AS n, v FROM notes) WHERE n = v", True),
        ("SELECT * FROM notes JOIN open ON CAST(notes.note AS BIGINT) = open.id", True),
    ],
)
def test_what_may_fail_is_behind_a_barrier(tables: DescribedTables, sql: str, *, is_behind: bool) -> None:
    assert barriers(tables, sql) == {is_behind}
