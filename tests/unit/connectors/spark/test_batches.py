from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql.types import ArrayType, BinaryType, DataType, LongType, StringType, StructField, StructType

from secateur.connectors.spark.load import batches_bounded_in_rows

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
UNBOUNDED = "2147483647"


class Conf(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


class Session:
    def __init__(self, **conf: str) -> None:
        self.conf = Conf(conf)


def frame(session: Session, *types: DataType) -> SimpleNamespace:
    return SimpleNamespace(
        sparkSession=session, schema=StructType([StructField(f"c{i}", type_) for i, type_ in enumerate(types)])
    )


def test_the_bound_is_lifted_and_put_back_also_after_an_exception() -> None:
    session = Session()
    seen = {}

    def fail() -> None:
        with batches_bounded_in_rows(frame(session, LongType(), StringType())):
            seen.update(session.conf)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (seen, session.conf) == ({BYTES: UNBOUNDED}, {})


def test_the_last_of_several_writes_puts_it_back() -> None:
    session, other = Session(), Session()
    first, second = (
        batches_bounded_in_rows(frame(session, LongType())),
        batches_bounded_in_rows(frame(session, LongType())),
    )
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (session.conf, other.conf) == ({BYTES: UNBOUNDED}, {})
    second.__exit__(None, None, None)
    assert session.conf == {}


@pytest.mark.parametrize(
    ("conf", "type_"),
    [
        pytest.param({BYTES: "1000"}, LongType(), id="the-user-bounds-bytes"),
        pytest.param({ROWS: "0"}, LongType(), id="the-user-does-not-bound-rows"),
        pytest.param({}, BinaryType(), id="binary"),
        pytest.param({}, ArrayType(LongType()), id="array"),
    ],
)
def test_what_needs_the_bound_keeps_it(conf: dict[str, str], type_: DataType) -> None:
    session = Session(**conf)
    with batches_bounded_in_rows(frame(session, StringType(), type_)):
        assert session.conf == conf
    assert session.conf == conf
