from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import UnknownTableError

DESCRIBED = ["column_name", "column_type", "null", "key", "default", "extra"]
ALL_TABLES = ["database", "schema", "name", "column_names", "column_types", "temporary"]


@pytest.mark.parametrize(
    ("sql", "names", "read"),
    [
        ("SHOW TABLES", ["name"], ("tables",)),
        ("show tables from main", ["name"], ("tables",)),
        ("SHOW ALL TABLES", ALL_TABLES, ("columns",)),
        ("SHOW", ALL_TABLES, ("columns",)),
        ("DESCRIBE", ALL_TABLES, ("columns",)),
        ("SHOW DATABASES", ["database_name"], ()),
        ("SHOW SCHEMAS", ["database_name", "schema_name", "current"], ()),
        ("SHOW CREATE TABLE orders", ["sql"], ("tables",)),
        ("SHOW orders", DESCRIBED, ()),
        ("SHOW COLUMNS FROM main.orders", DESCRIBED, ()),
        ("DESCRIBE TABLE orders", DESCRIBED, ()),
        ("DESC SELECT 1 AS a", DESCRIBED, ()),
    ],
)
def test_they_are_queries(context: Any, sql: str, names: list[str], read: tuple[str, ...]) -> None:
    plan = context.select(sql).plan
    assert [name for name, _ in plan.columns] == names
    assert plan.system_tables == read


@pytest.mark.parametrize("name", ["members", "jobs", "statements", "partitions"])
def test_system_tables_are_listed_by_their_bare_names(context: Any, name: str) -> None:
    listed = context.select(f"SHOW {name.upper()}").plan
    assert listed.columns == context.select(f"FROM secateur.{name}").plan.columns
    assert listed.system_tables == (name,)


@pytest.mark.parametrize("sql", ["SHOW COLUMNS FROM members", "SHOW main.members", "SHOW TABLE members"])
def test_a_longer_form_is_about_a_table_of_the_user(context: Any, sql: str) -> None:
    with pytest.raises(UnknownTableError, match="'members' does not exist"):
        context.select(sql)


def test_a_described_query_is_answered_without_a_member(context: Any) -> None:
    plan = context.select("DESCRIBE SELECT * FROM orders").plan
    assert plan.scans == ()
    assert plan.empty is not None


def test_parameters_of_the_query(context: Any) -> None:
    described = context.select("DESCRIBE SELECT ? AS x FROM orders WHERE id = ?", [1, 2]).plan
    assert [name for name, _ in described.columns] == DESCRIBED
    summarized = context.select("SUMMARIZE SELECT amount FROM orders WHERE customer_id = ?", ["C2"]).plan
    assert summarized.parameter_count == 1


@pytest.mark.parametrize(
    "sql", ["SUMMARIZE orders", "SUMMARIZE SELECT * FROM orders", "SELECT * FROM (SUMMARIZE orders)"]
)
def test_all_columns_are_summarized(context: Any, sql: str) -> None:
    (scan,) = context.select(sql).plan.scans
    assert scan.columns == ("customer_id", "id", "priority", "amount", "day")
