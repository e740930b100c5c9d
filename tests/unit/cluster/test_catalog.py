"""The catalog: names, ids, versions."""

from __future__ import annotations

import pytest
from msgspec import structs

from secateur.cluster.controller import Catalog
from secateur.errors import NotSupportedError, ProgrammingError, TableExistsError, UnknownTableError
from secateur.partitioning.schemes import PartitionScheme, RangeComponent, RangePartition
from secateur.partitioning.tables import Column, ExternalTable, TableDef
from secateur.partitioning.types import parse_type


def named(name: str) -> TableDef:
    return TableDef(name, 0, (), (), PartitionScheme())


def with_columns(*columns: str) -> TableDef:
    named_and_typed = (column.partition(" ") for column in columns)
    return TableDef(
        "t", 0, tuple(Column(name, parse_type(kind)) for name, _, kind in named_and_typed), (), PartitionScheme()
    )


def test_names_are_matched_without_regard_to_case() -> None:
    catalog, table = Catalog().with_table(named("Flights"))
    assert catalog.table("FLIGHTS") is table
    assert table.name == "Flights"
    with pytest.raises(TableExistsError, match="table 'flights' exists already"):
        catalog.with_table(named("flights"))


def test_an_id_is_never_used_again() -> None:
    catalog, first = Catalog().with_table(named("a"))
    catalog, dropped = catalog.without_table("A")
    catalog, second = catalog.with_table(named("a"))
    assert (first.table_id, dropped.table_id, second.table_id) == (1, 1, 2)
    assert catalog.version == 4


@pytest.mark.parametrize(
    ("names", "asked", "message"),
    [
        ([], "t", "table 't' does not exist; there are no tables yet"),
        (["flights", "planes"], "flihgts", "table 'flihgts' does not exist; did you mean flights?"),
        (
            ["flights"],
            "a's.Parquet",
            "table \"a's.Parquet\" does not exist; a file is read where the client is: COPY table FROM 'a''s.Parquet'",
        ),
        (["flights", "planes"], "zzz", "table 'zzz' does not exist; there is flights, planes"),
        (["t"], "Events", "table 'Events' does not exist; the system table is secateur.events"),
        (["t"], "PROCESSLIST", "table 'PROCESSLIST' does not exist; the system table is secateur.running_statements"),
        (
            ["t"],
            "sqlite_master",
            (
                "table 'sqlite_master' does not exist; pandas takes the connection for SQLite: pass a SELECT to"
                " read_sql, and a DataFrame to conn.create_table(name, df, primary_key=[...]).load(df)"
            ),
        ),
        (
            ["t"],
            "indexes",
            "table 'indexes' does not exist; the system table is secateur.indexes",
        ),
    ],
    ids=["none", "near", "a file", "far", "a system table", "processes", "pandas", "indexes"],
)
def test_an_unknown_name_is_answered_with_known_ones(names: list[str], asked: str, message: str) -> None:
    catalog = Catalog()
    for name in names:
        catalog, _ = catalog.with_table(named(name))
    with pytest.raises(UnknownTableError) as caught:
        catalog.table(asked)
    assert caught.value.message == message


def test_a_name_has_no_schema() -> None:
    with pytest.raises(NotSupportedError, match="schemas are not supported"):
        Catalog().with_table(named("main.t"))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (named(""), "a table has a name of at least one character"),
        (with_columns("k INTEGER", " BIGINT"), "table t: column 2 has an empty name"),
        (with_columns("k INTEGER", 's STRUCT("" BIGINT)'), "table t: column s has a STRUCT with a field of an empty"),
        (with_columns('s MAP(BIGINT, STRUCT(a STRUCT("" BIGINT)[]))'), "column s has a STRUCT with a field of an"),
    ],
    ids=["table", "column", "field", "inside"],
)
def test_a_name_that_no_statement_can_write_is_refused(table: TableDef, message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        Catalog().with_table(table)
    with pytest.raises(ProgrammingError, match=message):
        Catalog().with_external_table(ExternalTable(table, b"", "files"))


def test_a_catalog_that_somebody_holds_does_not_change() -> None:
    empty = Catalog()
    empty.with_table(named("t"))
    assert empty.tables() == ()


def test_changed_ranges_are_a_new_version_of_the_same_table() -> None:
    catalog, before = Catalog().with_table(named("a"))
    after_catalog, after = catalog.with_scheme("A", PartitionScheme())
    assert (after.table_id, after.version, after_catalog.version) == (before.table_id, 2, catalog.version + 1)
    assert catalog.table("a") is before


def test_a_large_scheme_is_known_by_a_reference_that_nobody_else_has() -> None:
    ranges = tuple(RangePartition(number, (number,), (number + 1,)) for number in range(65))
    large = PartitionScheme(range=RangeComponent(("k",), ranges), types=(("k", parse_type("BIGINT")),))
    small = PartitionScheme(range=RangeComponent(("k",), ranges[:64]), types=large.types)
    catalog, first = Catalog().with_table(structs.replace(named("a"), scheme_or_reference=large))
    _, elsewhere = Catalog().with_table(structs.replace(named("a"), scheme_or_reference=large))
    changed_catalog, changed = catalog.with_scheme("a", first.scheme)
    references = {first.scheme.reference, elsewhere.scheme.reference, changed.scheme.reference}
    assert None not in references
    assert len(references) == 3
    assert changed_catalog.with_scheme("a", small)[1].scheme.reference is None
