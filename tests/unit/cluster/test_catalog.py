"""The catalog: names, ids, versions."""

from __future__ import annotations

import pytest

from secateur.cluster.catalog import Catalog
from secateur.errors import NotSupportedError, TableExistsError, UnknownTableError
from secateur.partitioning.scheme import PartitionScheme
from secateur.partitioning.table import TableDef


def named(name: str) -> TableDef:
    return TableDef(name, 0, (), (), PartitionScheme())


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
        (["flights", "planes"], "zzz", "table 'zzz' does not exist; there is flights, planes"),
    ],
    ids=["none", "near", "far"],
)
def test_an_unknown_name_is_answered_with_known_ones(names: list[str], asked: str, message: str) -> None:
    catalog = Catalog()
    for name in names:
        catalog, _ = catalog.with_table(named(name))
    with pytest.raises(UnknownTableError) as caught:
        catalog.table(asked)
    assert caught.value.message == message


@pytest.mark.parametrize("name", ["", "main.t"])
def test_a_name_has_no_schema(name: str) -> None:
    with pytest.raises(NotSupportedError, match="schemas are not supported"):
        Catalog().with_table(named(name))


def test_a_catalog_that_somebody_holds_does_not_change() -> None:
    empty = Catalog()
    empty.with_table(named("t"))
    assert empty.tables() == ()
