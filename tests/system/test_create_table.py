"""conn.create_table: a table with the columns of data that Python has."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import secateur
from secateur.errors import Error, NotSupportedError, ParameterError, SchemeError, SqlSyntaxError, TableExistsError

DATA = {"id": [1, 2], "Who": ["a", None], "at": [1.5, 2.5]}
EMPTY_FIELD = pa.schema([("id", pa.int64()), ("s", pa.list_(pa.struct([("", pa.int64())])))])


@pytest.mark.parametrize(
    "like",
    [
        pytest.param(pa.table(DATA), id="arrow"),
        pytest.param(pa.table(DATA).schema, id="schema"),
        pytest.param(pd.DataFrame(DATA), id="pandas"),
        pytest.param(pl.DataFrame(DATA), id="polars"),
        pytest.param(pl.DataFrame(DATA).lazy(), id="lazy"),
        pytest.param(DATA, id="columns"),
    ],
)
def test_columns_are_those_of_the_data(conn: secateur.Connection, table_name: str, like: Any) -> None:
    table = conn.create_table(
        table_name, like, primary_key=["ID"], partition_by="HASH (id) PARTITIONS 5", backups=1, change_feed=True
    )
    assert [(field.name, str(field.type), field.nullable) for field in table.schema] == [
        ("id", "int64", False),
        ("Who", "string", True),
        ("at", "double", True),
    ]
    assert (table.primary_key, table.partitions) == (("id",), 5)
    assert table.load(DATA) == 2
    copy = conn.create_table(f"{table_name}_copy", table, primary_key=["id"], replicated=True)
    assert copy.schema == table.schema
    with pytest.raises(TableExistsError):
        conn.create_table(table_name, like, primary_key=["id"])
    for name in (table_name, f"{table_name}_copy"):
        conn.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"primary_key": "id"}, ParameterError, "a list of the columns"),
        ({"primary_key": ["nope"]}, ParameterError, "there is no column 'nope'; there is id, Who, at"),
        ({"primary_key": ["id"], "replicated": True, "backups": 1}, ParameterError, "no backups"),
        ({"primary_key": ["id"], "partition_by": "HASH (at) PARTITIONS 4"}, SchemeError, "at"),
        ({"primary_key": ["id"], "like": {"id": [1], "d": [pa.scalar(1, pa.duration("s"))]}}, NotSupportedError, "'d'"),
        ({"primary_key": ["id"], "like": {"id": [1], "": [2]}}, SqlSyntaxError, "not an empty one"),
        ({"primary_key": [""], "like": {"id": [1], "": [2]}}, SqlSyntaxError, "not an empty one"),
        (
            {"primary_key": ["id"], "like": EMPTY_FIELD},
            SqlSyntaxError,
            "the name of a field of column 's', not an empty one",
        ),
    ],
)
def test_what_is_wrong_is_said(
    conn: secateur.Connection, table_name: str, arguments: dict[str, Any], error: type[Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        conn.create_table(table_name, **{"like": DATA, **arguments})
