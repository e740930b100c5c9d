"""Rows that a principal under row policies writes are compared with the policies, in whatever form they come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.cluster.member import RowGuards
from secateur.errors import PolicyError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import (
    AccessRecord,
    GrantedToken,
    Policy,
    PolicyCommand,
    Rights,
    RowCondition,
    TokenRole,
    WriteKind,
)
from secateur.storage import FewRows, TableLayout
from secateur.wire import ShortTable

COLUMNS = (
    Column("id", parse_type("BIGINT"), False),
    Column("tenant", parse_type("VARCHAR"), False),
    Column("v", parse_type("INTEGER"), True),
)
SCHEME = PartitionScheme((HashComponent(("tenant",), 8),), None, (("tenant", parse_type("VARCHAR")),))
TABLE = TableDef("orders", 7, COLUMNS, ("id", "tenant"), SCHEME)
OWN = RowCondition(("tenant = ", "tenant", ""), ("tenant",))
"""One column is compared with a claim, as nearly always."""
OWN_WRITTEN_OTHERWISE = RowCondition(("coalesce(tenant = ", "tenant", ", false)"), ("tenant",))
FORMS = ["values", "few", "arrow"]


def rights(condition: RowCondition | None, tenant: str | None = "A") -> Rights:
    policies = () if condition is None else (Policy("own", TABLE.origin, PolicyCommand.ALL, (), condition),)
    claims = {} if tenant is None else {"tenant": tenant}
    found = Rights.of(
        GrantedToken("t1", TokenRole.WRITE, roles=("clerk",), claims=claims),
        AccessRecord((), (), policies, (TABLE.origin,)),
    )
    assert found is not None
    return found


def rows_of(form: str, tenants: list[Any], *, are_keys: bool = False) -> Any:
    columns: list[list[Any]] = [list(range(len(tenants))), tenants, *([] if are_keys else [[None] * len(tenants)])]
    short, layout = ShortTable(columns, len(tenants)), TableLayout.of(TABLE)
    if form == "values":
        return short
    few = FewRows.admit(layout, columns, are_keys=are_keys)
    return few if form == "few" else few.to_table()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("condition", [OWN, OWN_WRITTEN_OTHERWISE], ids=["compared", "computed"])
@pytest.mark.parametrize("kind", list(WriteKind))
@pytest.mark.parametrize(
    ("tenants", "claim", "passes"),
    [
        (["A", "A"], "A", True),
        ([], "A", True),
        (["A", "B"], "A", False),
        (["a"], "A", False),
        (["A "], "A", False),
        (["A"], None, False),
        ([""], "", True),
        ([""], None, False),
        ([], None, True),
    ],
)
def test_rows_pass_whose_tenant_is_that_of_the_token(
    form: str, condition: RowCondition, kind: WriteKind, tenants: list[str], claim: str | None, *, passes: bool
) -> None:
    rows = rows_of(form, tenants, are_keys=kind is WriteKind.DELETE)
    if passes:
        RowGuards(lambda _: None).check(rights(condition, claim), TABLE, kind, rows)
        return
    with pytest.raises(PolicyError, match=r"row policies of the table \(own\).*nothing was changed"):
        RowGuards(lambda _: None).check(rights(condition, claim), TABLE, kind, rows)


@pytest.mark.parametrize("form", FORMS)
def test_without_a_policy_no_row_passes(form: str) -> None:
    RowGuards(lambda _: None).check(rights(None), TABLE, WriteKind.INSERT, rows_of(form, []))
    with pytest.raises(PolicyError, match="none of which lets this principal write"):
        RowGuards(lambda _: None).check(rights(None), TABLE, WriteKind.INSERT, rows_of(form, ["A"]))


@pytest.mark.parametrize("value", [None, b"A", 65, 1.0, True, ["A"], {"A": 1}])
def test_values_that_are_no_text_are_not_the_tenant(value: Any) -> None:
    with pytest.raises(PolicyError):
        RowGuards(lambda _: None).check(rights(OWN), TABLE, WriteKind.INSERT, rows_of("values", [value]))


def test_rows_with_too_few_columns_do_not_pass() -> None:
    with pytest.raises(PolicyError):
        RowGuards(lambda _: None).check(rights(OWN), TABLE, WriteKind.INSERT, ShortTable([[1]], 1))


def test_a_check_is_that_of_its_claims_and_kind() -> None:
    guards = RowGuards(lambda _: None)
    for _ in range(2):
        for claim, other in (("A", "B"), ("B", "A")):
            for kind in (WriteKind.INSERT, WriteKind.DELETE):
                guards.check(rights(OWN, claim), TABLE, kind, rows_of("values", [claim], are_keys=kind is kind.DELETE))
                with pytest.raises(PolicyError):
                    guards.check(
                        rights(OWN, claim), TABLE, kind, rows_of("values", [other], are_keys=kind is kind.DELETE)
                    )


def test_owners_are_not_checked() -> None:
    RowGuards(lambda _: None).check(None, TABLE, WriteKind.INSERT, rows_of("arrow", ["B"]))
    assert RowGuards(lambda _: None).of(None, TABLE, WriteKind.INSERT) is None
    assert isinstance(rows_of("arrow", ["B"]), pa.Table)
