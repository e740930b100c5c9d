from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from secateur.engine.kernels.duckdb import Binder, DuckDBKernel
from secateur.errors import UnknownColumnError


@pytest.fixture(params=[False, True], ids=["views", "tables"])
def binder(request: pytest.FixtureRequest) -> Iterator[Binder]:
    with duckdb.connect() as connection:
        yield Binder(connection, has_tables=request.param)


def test_a_relation_has_the_columns_of_the_last_call(binder: Binder) -> None:
    for kind in ("INTEGER", "HUGEINT", "STRUCT(a INTEGER, b ENUM('x', 'y'))", "INTEGER"):
        assert binder.describe("SELECT * FROM s0", {"s0": {"k": kind}}, ()) == (("k", kind),)
    assert binder.describe('SELECT "a ""b" FROM s0', {"s0": {'a "b': "DATE"}}, ()) == (('a "b', "DATE"),)


def test_a_relation_of_another_call_is_not_there(binder: Binder) -> None:
    schema = {"k": "INTEGER"}
    assert binder.describe("SELECT s0.k FROM s0, s1", {"s0": schema, "s1": schema}, ()) == (("k", "INTEGER"),)
    with pytest.raises(duckdb.CatalogException, match="S1"):
        binder.describe("SELECT s0.k FROM s0, S1", {"s0": schema}, ())


def test_a_relation_whose_type_is_none_leaves_nothing_behind(binder: Binder) -> None:
    with pytest.raises(duckdb.Error):
        binder.describe("SELECT 1 AS x FROM s0, s1", {"s0": {"k": "INTEGER"}, "s1": {"k": "NOSUCHTYPE"}}, ())
    with pytest.raises(duckdb.CatalogException):
        binder.describe("SELECT k FROM s0", {}, ())
    assert binder.describe("SELECT k FROM s1", {"s1": {"k": "INTEGER"}}, ()) == (("k", "INTEGER"),)


def test_a_row_has_no_number() -> None:
    kernel = DuckDBKernel()
    for are_tables in (False, True):
        for text in ("SELECT rowid FROM s0", 'SELECT s0."RowID" FROM s0'):
            with pytest.raises(UnknownColumnError, match=r"(?i)rowid"):
                kernel.describe(text, {"s0": {"k": "INTEGER"}}, are_tables=are_tables)
    kernel.close()


def test_tables_of_several_statements_are_told_apart() -> None:
    kernel = DuckDBKernel()
    schemas: list[dict[str, dict[str, str]]] = [
        {"s0": {"a": "INTEGER"}},
        {"s0": {"b": "VARCHAR", "a": "DATE"}},
        {"s0": {"a": "INTEGER"}, "s1": {"a": "BIGINT"}},
        {"s0": {"a": '"NULL"'}},
    ]
    for schema in [*schemas, *reversed(schemas)] * 2:
        ((_, kind),) = kernel.describe("SELECT s0.a FROM s0", schema, are_tables=True)
        assert kind == {'"NULL"': "INTEGER"}.get(schema["s0"]["a"], schema["s0"]["a"])
        assert (b"error_type" in kernel.plan("SELECT s1.a FROM s1", schema)) == ("s1" not in schema)
    kernel.close()


def test_parameters_decide_types(binder: Binder) -> None:
    assert binder.describe("SELECT $2 AS x FROM s0", {"s0": {"k": "INTEGER"}}, [1, "a"]) == (("x", "VARCHAR"),)
    assert binder.describe("SELECT $2 AS x FROM s0", {"s0": {"k": "INTEGER"}}, [1, 2.5]) == (("x", "DOUBLE"),)
