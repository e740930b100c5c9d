"""What DuckDB says, said by our errors: which one, and without what is about DuckDB alone."""

from __future__ import annotations

import duckdb
import pytest

from secateur import errors
from secateur.engine.kernels.duckdb import translated, unreadable


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        pytest.param(
            "SELECT 1 FROM", errors.SqlSyntaxError, 'syntax error at or near "FROM"', id="syntax, without the excerpt"
        ),
        pytest.param(
            "SELECT CAST('x' AS INTEGER)", errors.DataError, "Could not convert string 'x' to INT32", id="a conversion"
        ),
        pytest.param(
            "SELECT (SELECT * FROM range(2))",
            errors.DataError,
            "More than one row returned by a subquery used as an expression - scalar subqueries can only return a"
            " single row.",
            id="no advice to change a setting",
        ),
        pytest.param(
            "SELECT 1 ORDER BY ?",
            errors.ParameterError,
            "Parameter not supported in ORDER BY clause",
            id="a parameter where none may be",
        ),
        pytest.param(
            "SELECT list(reduce([], lambda q, i: q))",
            errors.DataError,
            "Cannot perform list_reduce on an empty input list",
            id="a kind without a class",
        ),
        pytest.param(
            "SELECT TRY_CAST((repeat('9', 60))::BIGNUM AS UHUGEINT)",
            errors.DataError,
            "Positive bignum too large for type",
            id="not expected to fail",
            marks=pytest.mark.skipif(duckdb.__version__ != "2.0.0", reason="NULL since DuckDB 2.0.1"),
        ),
        pytest.param(
            "SELECT * FROM nowhere",
            errors.UnknownTableError,
            "Table with name nowhere does not exist",
            id="no advice to read DuckDB's catalog",
        ),
    ],
)
def test_translated(sql: str, kind: type[errors.Error], message: str) -> None:
    with duckdb.connect() as connection:
        with pytest.raises(duckdb.Error) as caught:
            connection.execute(sql, [1] if "?" in sql else None).fetchall()
        found = translated(caught.value)
    assert type(found) is kind
    assert found.message.split("\n")[0].rstrip("!") == message


def test_reading_files_is_not_for_statements() -> None:
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        with pytest.raises(duckdb.Error) as caught:
            connection.execute("FROM read_csv('/nowhere.csv')")
        found = translated(caught.value)
    assert isinstance(found, errors.ProgrammingError)
    assert found.message.endswith(
        "statements cannot read files, load extensions or change the configuration of the members"
    )


def test_a_message_that_is_cut_off_inside_of_a_character() -> None:
    with duckdb.connect() as connection, pytest.raises((UnicodeDecodeError, duckdb.Error)) as caught:
        connection.execute("SELECT json_exists(repeat('ä', 300), 'a')").fetchall()
    # Some releases of Python know the class of the error and not its message, others the message alone.
    if isinstance(caught.value, UnicodeDecodeError):
        found: errors.Error = unreadable(caught.value)
        assert found.message.startswith("Malformed JSON at byte 0 of input")
    else:
        found = translated(caught.value)
        assert found.message == "DuckDB raised InvalidInputException; its message is not valid UTF-8"
    assert type(found) is errors.DataError


def test_an_error_of_duckdb_itself_is_a_bug() -> None:
    for error in (duckdb.InternalException("INTERNAL Error: x"), duckdb.FatalException("FATAL Error: x")):
        assert type(translated(error)) is errors.InternalError
