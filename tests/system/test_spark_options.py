"""What the options of a read stand for, and what they must not be."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType

from secateur.connectors.spark.read_options import (
    check_secrets,
    given_options,
    option_of_params,
    read_options,
    with_options,
)
from secateur.connectors.spark.stream_reader import BatchLimit, stream_options
from secateur.errors import InterfaceError, ProgrammingError
from secateur.wire import Tls

AT = {"address": "secateur://localhost:1"}


@pytest.mark.parametrize(
    ("options", "sql"),
    [
        pytest.param({"table": "t"}, 'SELECT * FROM "t"', id="table"),
        pytest.param({"TABLE": "secateur.members"}, 'SELECT * FROM "secateur"."members"', id="system table"),
        pytest.param(
            {"table": "t", "columns": 'a, "b,c",d'}, 'SELECT "a", "b,c", "d" FROM "t"', id="columns with commas"
        ),
        pytest.param(
            {"table": "t", "where": "a = 1 -- one"}, 'SELECT * FROM "t" WHERE (\na = 1 -- one\n)', id="condition"
        ),
        pytest.param({"query": "SELECT 1"}, "SELECT 1", id="query"),
        pytest.param({"path": "t"}, 'SELECT * FROM "t"', id="load(name)"),
        pytest.param({"Path": "t", "table": "T"}, 'SELECT * FROM "T"', id="load(name) and the same table"),
    ],
)
def test_options_stand_for_a_query(options: dict[str, str], sql: str) -> None:
    endpoint, read = read_options({**AT, "token": "hush", **options})
    assert (endpoint.address, endpoint.token, read.sql) == ("secateur://localhost:1", "hush", sql)


def test_tls_is_an_option_of_reads_writes_and_streams() -> None:
    options = {**AT, "table": "t", "tlsCa": "/etc/ca.pem", "tlsServerName": "secateur"}
    tls = Tls(ca="/etc/ca.pem", server_name="secateur")
    assert read_options(options)[0].tls == tls
    assert stream_options({**options, "changeFeed": "true"})[0].tls == tls


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"maxRowsPerTrigger": "10"}, ReadMaxRows(10), id="rows"),
        pytest.param({"maxBytesPerTrigger": "11"}, ReadMaxBytes(11), id="bytes"),
    ],
)
def test_a_stream_may_have_a_limit(options: dict[str, str], limit: Any) -> None:
    *_, found = stream_options({**AT, "table": "t", "changeFeed": "true", **options})
    assert BatchLimit.to_spark(found) == (ReadAllAvailable() if limit is None else limit)
    assert BatchLimit.of_spark(BatchLimit.to_spark(found)) == found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"maxRowsPerTrigger": "0"}, "maxRowsPerTrigger='0': expected a positive", id="nothing"),
        pytest.param({"maxRowsPerTrigger": "1", "maxBytesPerTrigger": "1"}, "leave one out", id="two"),
        pytest.param({"changeFeed": "false"}, "a stream is of the changes of a table", id="no feed"),
        pytest.param({"maxFilesPerTrigger": "1"}, "no option maxfilespertrigger to read a stream with", id="unknown"),
    ],
)
def test_options_of_streams_that_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        stream_options({**AT, "table": "t", "changeFeed": "true", **options})


def test_parameters_travel_as_text() -> None:
    params = [1, "a", None, 2.5, [1, 2]]
    _, read = read_options({**AT, "query": "SELECT 1", "params": option_of_params(params)})
    assert read.params == params


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({}, "needs to know what to read", id="neither table nor query"),
        pytest.param({"table": "t", "query": "SELECT 1"}, "leave one out", id="both"),
        pytest.param({"table": "t", "path": "u"}, "start names 'u': leave one out", id="two tables"),
        pytest.param(
            {"path": "t", "query": "SELECT 1"}, "option table as well: leave one out", id="load(name) and query"
        ),
        pytest.param({"where": "a = 1", "query": "SELECT 1"}, "option where as well", id="a condition of a query"),
        pytest.param({"table": "t", "colums": "a"}, "has no option colums to read with", id="unknown option"),
        pytest.param({"table": "t", "columns": "a,,b"}, "names that are divided by commas", id="columns"),
        pytest.param({"table": "t", "taskBytes": "0"}, "taskBytes='0': expected a positive", id="task bytes"),
        pytest.param({"table": "t", "snapshotSeconds": "1.5"}, "snapshotSeconds='1.5': expected", id="seconds"),
    ],
)
def test_options_that_say_nothing_readable(options: dict[str, str], message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        read_options({**AT, **options})


def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECATEUR_ADDRESS", raising=False)
    with pytest.raises(InterfaceError, match="the address of the cluster is missing"):
        read_options({"table": "t"})
    monkeypatch.setenv("SECATEUR_ADDRESS", "secateur://elsewhere:2")
    monkeypatch.setenv("SECATEUR_TOKEN", "secret")
    endpoint, _ = read_options({"table": "t"})
    assert (endpoint.address, endpoint.token) == ("secateur://elsewhere:2", "secret")


def test_tables_of_the_catalog_keep_their_options_in_their_columns() -> None:
    schema = StructType([StructField("a", LongType()), StructField("b", LongType())])
    created = {"provider": "secateur", "owner": "me", "option.table": "t", "table": "t", **AT}
    kept = with_options(schema, created)
    assert given_options({}, kept) == {"table": "t", **AT}
    assert with_options(schema, {"table": "t", **AT}) == schema
    # What is said elsewhere counts: columns of such a table may be read and then written to another one.
    assert given_options({"table": "u"}, kept) == {"table": "u"}
    # Spark gives it a path in its warehouse, which is not the name of a table.
    assert given_options({**created, "path": "file:/warehouse/t"}) == {"table": "t", **AT}
    check_secrets(created)
    check_secrets({"table": "t", "token": "hush", **AT})
    with pytest.raises(ProgrammingError, match="cannot keep a token secret"):
        check_secrets({**created, "token": "hush"})
