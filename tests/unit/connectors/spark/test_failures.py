from __future__ import annotations

import sys
import traceback

import pytest

from secateur.connectors.spark.failures import error_behind, noted_errors
from secateur.errors import (
    DataError,
    DuplicateKeyError,
    Error,
    LoadFailedError,
    NullKeyError,
    OperationalError,
    TopologyChangedError,
)


def text_of(error: Error) -> str:
    """What Spark's driver gets to read when a worker raises this error."""
    try:
        with noted_errors():
            raise error
    except Error:
        return (
            f"Job aborted due to stage failure: Task 1 in stage 3.0 failed\n{traceback.format_exc()}\n\tat"
            " org.apache.spark.api.python.Runner(x.scala:1)"
        )


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(NullKeyError("flights.tailnum is NULL", table="flights", column="tailnum"), id="details"),
        pytest.param(
            DuplicateKeyError("key ('ä', \"b\")\nin two lines {", table="t", key=["ä", 7, None, True]),
            id="newlines-and-quotes",
        ),
        pytest.param(TopologyChangedError("partition 3 has moved"), id="no-details"),
        pytest.param(DataError("secateur-error: in the message itself"), id="the-mark-in-the-message"),
    ],
)
def test_error_of_a_worker_arrives_as_it_was(error: Error) -> None:
    found = error_behind(RuntimeError(text_of(error)), table="t")
    assert type(found) is type(error)
    assert (found.message, found.details, found.retry_safe) == (error.message, error.details, error.retry_safe)


def test_the_note_is_one_line_below_the_message() -> None:
    lines = text_of(DataError("a\nb", column="c\nd")).splitlines()
    assert 'secateur-error: {"error": "DataError", "details": {"column": "c\\nd"}}' in lines


def test_what_caused_an_error_is_not_taken_for_it() -> None:
    try:
        try:
            with noted_errors():
                raise DataError("of the cause", column="c")
        except DataError as cause:
            cause.__notes__.clear()
            raise LoadFailedError("of the load") from cause
    except LoadFailedError as error:
        found = error_behind(RuntimeError(text_of(error)), table="t")
    assert (type(found), found.message, found.details) == (LoadFailedError, "of the load", {})


def test_other_exceptions_of_a_worker_get_no_note() -> None:
    with pytest.raises(ZeroDivisionError) as caught, noted_errors():
        raise ZeroDivisionError
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    "text",
    [
        "ModuleNotFoundError: No module named 'secateur'",
        "ModuleNotFoundError: No module named 'secateur.connectors'",
        "ModuleNotFoundError: No module named 'pyarrow'",
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11",
        'java.io.IOException: Cannot run program "python4": error=2, No such file or directory',
    ],
)
def test_workers_in_another_environment_are_named_as_the_cause(text: str) -> None:
    found = error_behind(RuntimeError(text), table="t")
    assert type(found) is OperationalError
    assert sys.executable in found.message
    assert "PYSPARK_PYTHON" in found.message
    assert text in found.message


def test_anything_else_is_a_failed_load_that_can_be_repeated() -> None:
    found = error_behind(RuntimeError("[USER_RAISED_EXCEPTION]   boom\n" + "x" * 1000), table="flights")
    assert type(found) is LoadFailedError
    assert found.retry_safe
    assert found.message.startswith(
        "Spark could not write to flights, and the table is unchanged: [USER_RAISED_EXCEPTION] boom xxx"
    )
    assert len(found.message) < 600
