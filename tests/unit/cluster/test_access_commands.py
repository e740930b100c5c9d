"""What becomes of grants and policies when their table is dropped, renamed, replaced or altered."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from secateur.cluster.controller import check_columns, check_replacement, with_renamed, without_grants, without_table
from secateur.errors import ProgrammingError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import (
    AccessRecord,
    DefinedRole,
    GrantedToken,
    Policy,
    PolicyCommand,
    Privilege,
    RowCondition,
    TableGrant,
    TokenRole,
)

COLUMNS = (Column("tenant", parse_type("VARCHAR"), False), Column("v", parse_type("INTEGER"), True))
SCHEME = PartitionScheme((HashComponent(("tenant",), 8),), None, (("tenant", parse_type("VARCHAR")),))
TABLE = TableDef("Orders", 7, COLUMNS, ("tenant",), SCHEME)
POLICY = Policy("own", TABLE.origin, PolicyCommand.ALL, (), RowCondition(("tenant = ", "tenant", ""), ("tenant",)))


def record(*, is_secured: bool) -> AccessRecord:
    orders, items = TableGrant("orders", Privilege.SELECT), TableGrant("items", Privilege.SELECT)
    tokens = tuple(
        GrantedToken(name, TokenRole.READ, tables=grants)
        for name, grants in (("both", (orders, items)), ("orders", (orders,)), ("items", (items,)))
    )
    roles = (DefinedRole("reader", (orders, items)), DefinedRole("clerk", (orders,)))
    return AccessRecord(tokens, roles, (POLICY,) if is_secured else (), (TABLE.origin,) if is_secured else ())


def granted(access: AccessRecord) -> dict[str, Any]:
    return {
        **{token.id: [grant.table for grant in token.tables] for token in access.tokens},
        **{role.name: [grant.table for grant in role.grants] for role in access.roles},
    }


def test_grants_on_a_secured_table_end_with_it() -> None:
    """One that is created later under its name would have them, and no policy."""
    after = without_grants(record(is_secured=True), TABLE)
    assert granted(after) == {"both": ["items"], "items": ["items"], "reader": ["items"], "clerk": []}


def test_grants_on_a_table_without_row_security_stay_with_its_name() -> None:
    access = record(is_secured=False)
    assert without_grants(access, TABLE) == access


def test_grants_follow_the_name_of_their_table() -> None:
    access, renamed = record(is_secured=True), replace(TABLE, name="Sales")
    after = granted(with_renamed(access, TABLE, renamed))
    assert after == {
        "both": ["sales", "items"],
        "orders": ["sales"],
        "items": ["items"],
        "reader": ["sales", "items"],
        "clerk": ["sales"],
    }
    assert with_renamed(access, TABLE, TABLE) == access


def test_policies_end_with_their_table() -> None:
    after = without_table(record(is_secured=True), TABLE.origin)
    assert (after.policies, after.secured) == ((), ())
    assert without_table(record(is_secured=True), 99) == record(is_secured=True)


def test_a_secured_table_is_not_replaced_in_passing() -> None:
    check_replacement(record(is_secured=False), TABLE)
    with pytest.raises(ProgrammingError, match="Orders"):
        check_replacement(record(is_secured=True), TABLE)


def test_columns_that_a_policy_reads_stay_as_they_are() -> None:
    access = record(is_secured=True)
    other_type = replace(TABLE, columns=(replace(COLUMNS[0], type=parse_type("BIGINT")), COLUMNS[1]))
    for after in (replace(TABLE, columns=COLUMNS[1:]), other_type):
        with pytest.raises(ProgrammingError, match="own"):
            check_columns(access, TABLE, after)
    check_columns(access, TABLE, replace(TABLE, columns=COLUMNS[:1]))
