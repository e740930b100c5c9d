from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from secateur.engine.kernels.duckdb import Binder


@pytest.fixture
def binder() -> Iterator[Binder]:
    with duckdb.connect() as connection:
        yield Binder(connection)


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


def test_a_row_has_no_number(binder: Binder) -> None:
    with pytest.raises(duckdb.BinderException, match="rowid"):
        binder.describe("SELECT rowid FROM s0", {"s0": {"k": "INTEGER"}}, ())


def test_parameters_decide_types(binder: Binder) -> None:
    assert binder.describe("SELECT $2 AS x FROM s0", {"s0": {"k": "INTEGER"}}, [1, "a"]) == (("x", "VARCHAR"),)
    assert binder.describe("SELECT $2 AS x FROM s0", {"s0": {"k": "INTEGER"}}, [1, 2.5]) == (("x", "DOUBLE"),)
