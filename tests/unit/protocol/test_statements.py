"""Prepared statements as bytes and back."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, get_args, get_origin

import msgspec
import pytest

from secateur.errors import ProtocolError
from secateur.partitioning.pruning import (
    Box,
    Choice,
    Comparison,
    Constraint,
    Keys,
    Parameter,
    ParameterComparison,
    PartitionTree,
)
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import (
    BackupTo,
    BatchInsert,
    ChangeKind,
    ChangeStatement,
    CoordinatedChange,
    CopyFile,
    CopyFormat,
    CopyFrom,
    CopyTo,
    CreateTableAs,
    CreateTableFrom,
    Done,
    DuplicateMatchPolicy,
    ForgetTenant,
    InsertMode,
    InsertRows,
    InsertSelect,
    InsertTemplate,
    Literal,
    PlanText,
    PreparedAnswer,
    PreparedStatement,
    Pruning,
    QueryPart,
    QueryStep,
    RestoreFrom,
    ResultColumn,
    RoutedScan,
    SelectStatement,
    SetOption,
    SetPruning,
    SetTimeout,
    Setting,
    ShowSettings,
    SteppedQuery,
    SubqueryUse,
    TenantTable,
    decode,
    encode,
)

BIGINT = parse_type("BIGINT")
SCHEME = PartitionScheme((HashComponent(("k",), 8),), None, (("k", BIGINT),))
TABLE = TableDef("t", 7, (Column("k", BIGINT, False), Column("v", parse_type("VARCHAR"))), ("k",), SCHEME)
ONE_KEY = Keys(Box.of({"k": Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (Parameter(0),)),)),))}))
SCAN = RoutedScan("t", "a", 7, 1, SCHEME.affinity_group(), False, PartitionTree("t", SCHEME, ONE_KEY, 8, 1000))
SELECT = SelectStatement("p", (SCAN,), (ResultColumn("v", "VARCHAR"),), 2, ("x",), b"rows", True, 3, True, ([1, "a"],))
NESTED = SteppedQuery((QueryStep(QueryPart("a"), SubqueryUse.LIST, 9),), QueryPart("b"))
STEPPED = SteppedQuery((QueryStep(QueryPart("s", NESTED), SubqueryUse.KEYS, 9),), QueryPart("o"), (0,))
TEMPLATE = InsertTemplate(("k", "v"), ((0, Literal(date(2024, 1, 1))), (1, Literal(Decimal("1.5")))), 2, ())

EXAMPLES: list[Any] = [
    SELECT,
    msgspec.structs.replace(SELECT, empty=None, steps=STEPPED, first_scans=(SCAN,)),
    Done("table created"),
    CreateTableAs(TABLE, True, False, "CREATE TABLE ...", SELECT),
    CreateTableAs(TABLE, True, False, "CREATE TABLE ...", None),
    CreateTableFrom("t", ("k",), "BACKUPS 1", "t.parquet", False, True, True),
    CopyFrom(TABLE, ("v", "k"), CopyFile("x", CopyFormat.JSON, (("SKIP", 1), ("HEADER", True), ("NULL", ("", "-"))))),
    CopyTo(SELECT, CopyFile("x.csv", CopyFormat.CSV)),
    InsertRows(TABLE, InsertMode.UPSERT, 3),
    InsertRows(TABLE, InsertMode.APPEND, 3, TEMPLATE),
    InsertSelect(TABLE, ("k",), SELECT, InsertMode.IGNORE),
    ChangeStatement(TABLE, ChangeKind.DELETE, SELECT),
    CoordinatedChange(TABLE, SELECT, DuplicateMatchPolicy.FIRST),
    CoordinatedChange(
        TABLE, SELECT, DuplicateMatchPolicy.REFUSED, SELECT, True, True, BatchInsert("INSERT ...", ((0, "k"),), True)
    ),
    BackupTo("folder", ("t", "u")),
    RestoreFrom("folder", (), or_replace=True),
    ForgetTenant("C2", "tenant", (TenantTable("t", "k", True),)),
    SetPruning(Pruning.VERIFY),
    SetTimeout("5s", 5000),
    SetOption("disabled_rules", ""),
    ShowSettings((Setting("pruning", "on", "what it does"),), is_single=True),
    PlanText(("one", "two"), True, "SELECT 1", 0.5),
]


def answer(statement: Any) -> PreparedAnswer:
    return PreparedAnswer(catalog_version=1, topology_version=2, statistics_version=3, statement=statement)


@pytest.mark.parametrize("statement", EXAMPLES, ids=lambda statement: type(statement).__name__)
def test_a_prepared_statement_comes_back_as_it_was(statement: Any) -> None:
    assert decode(encode(answer(statement)), PreparedAnswer) == answer(statement)


def test_every_kind_has_an_example() -> None:
    kinds = {get_origin(kind) or kind for kind in get_args(PreparedStatement)}
    assert {type(example) for example in EXAMPLES} == kinds


@pytest.mark.parametrize("statement", EXAMPLES, ids=lambda statement: type(statement).__name__)
def test_a_field_of_another_type_is_refused_by_name(statement: Any) -> None:
    plain = msgspec.msgpack.decode(encode(answer(statement)))  # noqa: TID251 - in one thread
    for name in set(plain["statement"]) - {"type"}:
        damaged = {**plain, "statement": {**plain["statement"], name: {"no": "such value"}}}
        with pytest.raises(ProtocolError, match=rf"PreparedAnswer cannot be read.*statement\.{name}"):
            decode(msgspec.msgpack.encode(damaged), PreparedAnswer)
