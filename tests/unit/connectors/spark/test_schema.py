from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from secateur.connectors.spark.schema import arrow_type, check_columns, column_type, keys_of
from secateur.errors import DataError, Error, NullKeyError, UnknownColumnError
from secateur.partitioning.tables import TableDef


@pytest.fixture
def table(define: Callable[..., TableDef]) -> TableDef:
    return define(
        "orders",
        "id BIGINT NOT NULL, name VARCHAR NOT NULL, amount DOUBLE, small SMALLINT, at TIMESTAMP, tags VARCHAR[]",
        "id",
    )


def schema(**columns: spark.DataType) -> spark.StructType:
    return spark.StructType([spark.StructField(name, type_) for name, type_ in columns.items()])


ID, NAME = spark.LongType(), spark.StringType()


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"id": ID, "name": NAME}, id="nullable-columns-missing"),
        pytest.param({"NAME": NAME, "Id": ID}, id="other-order-and-case"),
        pytest.param({"id": spark.ShortType(), "name": spark.VarcharType(10)}, id="narrower-types"),
        pytest.param(
            {"id": spark.DecimalType(20, 0), "name": NAME, "small": spark.LongType()},
            id="wider-types-are-judged-by-value",
        ),
        pytest.param({"id": ID, "name": NAME, "at": spark.TimestampType()}, id="instant"),
        pytest.param({"id": ID, "name": NAME, "at": spark.TimestampNTZType()}, id="local-time"),
        pytest.param({"id": ID, "name": NAME, "amount": spark.NullType()}, id="void"),
        pytest.param({"id": ID, "name": NAME, "tags": spark.ArrayType(NAME)}, id="array"),
    ],
)
def test_columns_that_fit(table: TableDef, columns: dict[str, spark.DataType]) -> None:
    check_columns(schema(**columns), table)


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        pytest.param({"id": ID}, NullKeyError, ["orders", "lacks name", "it has id"], id="missing"),
        pytest.param({}, NullKeyError, ["lacks id, name", "no columns"], id="all-missing"),
        pytest.param({"id": ID, "name": NAME, "nmae": NAME}, UnknownColumnError, ["orders", "'nmae'"], id="unknown"),
        pytest.param({"id": ID, "name": NAME, "ID": ID}, DataError, ["ID twice"], id="twice"),
        pytest.param(
            {"id": ID, "name": NAME, "amount": spark.DateType()},
            DataError,
            ["amount", "date32", "DOUBLE", "cast"],
            id="no-conversion",
        ),
        pytest.param(
            {"id": ID, "name": NAME, "amount": spark.MapType(NAME, ID)},
            DataError,
            ["amount", "map<string, int64>", "DOUBLE"],
            id="map",
        ),
        pytest.param({"id": spark.NullType(), "name": NAME}, NullKeyError, ["column id", "only NULLs"], id="void-key"),
        pytest.param(
            {"id": ID, "name": NAME, "tags": spark.ArrayType(spark.VariantType())},
            DataError,
            ["tags", "variant"],
            id="array-of-variant",
        ),
    ],
)
def test_columns_that_do_not_fit(
    table: TableDef, columns: dict[str, spark.DataType], error: type[Error], words: list[str]
) -> None:
    with pytest.raises(error) as caught:
        check_columns(schema(**columns), table)
    assert [word for word in words if word not in caught.value.message] == []


@pytest.mark.parametrize(
    ("spark_type", "expected"),
    [
        (spark.BooleanType(), pa.bool_()),
        (spark.ByteType(), pa.int8()),
        (spark.FloatType(), pa.float32()),
        (spark.DecimalType(38, 6), pa.decimal128(38, 6)),
        (spark.CharType(3), pa.string()),
        (spark.StringType("UTF8_LCASE"), pa.string()),
        (spark.BinaryType(), pa.binary()),
        (spark.DateType(), pa.date32()),
        (spark.TimeType(6), pa.time64("ns")),
        (spark.TimestampType(), pa.timestamp("us", "UTC")),
        (spark.DayTimeIntervalType(), pa.duration("us")),
        (spark.ArrayType(spark.ArrayType(spark.IntegerType())), pa.list_(pa.list_(pa.int32()))),
        (spark.MapType(NAME, spark.TimeType(6)), pa.map_(pa.string(), pa.time64("ns"))),
        (
            spark.StructType([spark.StructField("a", ID, nullable=False), spark.StructField("b", spark.BinaryType())]),
            pa.struct([("a", pa.int64()), ("b", pa.binary())]),
        ),
    ],
    ids=str,
)
def test_arrow_types(spark_type: spark.DataType, expected: pa.DataType) -> None:
    assert arrow_type(spark_type, column="c") == expected


@pytest.mark.parametrize(
    ("spark_type", "expected"),
    [
        (spark.TimeType(6), "TIME"),
        (spark.DecimalType(38, 6), "DECIMAL(38,6)"),
        (spark.TimestampNTZType(), "TIMESTAMP"),
        (spark.TimestampType(), "TIMESTAMP WITH TIME ZONE"),
        (spark.DayTimeIntervalType(), "INTERVAL"),
        (
            spark.ArrayType(
                spark.StructType([spark.StructField("select", spark.MapType(ID, spark.ArrayType(spark.TimeType(6))))])
            ),
            'STRUCT("select" MAP(BIGINT, TIME[]))[]',
        ),
    ],
    ids=str,
)
def test_types_of_columns_that_are_created(spark_type: spark.DataType, expected: str) -> None:
    assert str(column_type(spark_type, column="c")) == expected


@pytest.mark.parametrize(
    "spark_type",
    [
        spark.NullType(),
        spark.VariantType(),
        spark.StructType([]),
        spark.StructType([spark.StructField("a", ID), spark.StructField("A", ID)]),
    ],
    ids=str,
)
def test_types_without_a_column(spark_type: spark.DataType) -> None:
    with pytest.raises(DataError, match="column c: a table column cannot hold"):
        column_type(spark_type, column="c")


def test_of_keys_to_delete_the_other_columns_do_not_matter(table: TableDef) -> None:
    keys = keys_of(table)
    assert tuple(column.name for column in keys.columns) == table.primary_key
    check_columns(schema(id=ID), table, keys_only=True)
    check_columns(schema(ID=ID, amount=spark.VariantType()), table, keys_only=True)
    check_columns(schema(id=ID, reason=NAME, age=spark.CalendarIntervalType()), table, keys_only=True)
    with pytest.raises(NullKeyError, match="lacks id, which must not be NULL; it has name"):
        check_columns(schema(name=NAME), table, keys_only=True)
