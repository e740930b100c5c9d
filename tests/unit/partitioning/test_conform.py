from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from secateur.errors import DataError, NullKeyError, UnknownColumnError
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.tables.conform import MissingColumns, conform, made_default_name
from secateur.partitioning.types import parse_type

FLIGHTS = TableDef(
    name="flights",
    table_id=1,
    columns=(
        Column("tailnum", parse_type("VARCHAR"), nullable=False),
        Column("Day", parse_type("DATE")),
        Column("delay", parse_type("SMALLINT")),
    ),
    primary_key=("tailnum",),
    scheme_or_reference=PartitionScheme(),
)
EXACT = pa.table(
    {"tailnum": ["N1", "N2"], "Day": pa.array([0, None], pa.date32()), "delay": pa.array([1, 2], pa.int16())},
    schema=FLIGHTS.arrow_schema,
)


def test_what_fits_is_handed_back_as_it_is() -> None:
    assert conform(EXACT, FLIGHTS) is EXACT


def test_only_the_schema_changes_when_the_types_fit() -> None:
    loose = pa.table({name: EXACT[name] for name in EXACT.column_names})
    result = conform(loose, FLIGHTS)
    assert result.schema.equals(FLIGHTS.arrow_schema, check_metadata=True)
    assert result["tailnum"].chunk(0).buffers()[2].address == EXACT["tailnum"].chunk(0).buffers()[2].address


def test_columns_are_found_by_name_in_any_order_and_case() -> None:
    given = pa.table({"DELAY": [1, 2], "day": pa.array([0, None], pa.date32()), "TailNum": ["N1", "N2"]})
    assert conform(given, FLIGHTS).equals(EXACT)
    assert conform(given.to_batches()[0], FLIGHTS).equals(EXACT)


def test_metadata_of_pandas_is_dropped() -> None:
    assert conform(EXACT.replace_schema_metadata({"pandas": "{}"}), FLIGHTS).schema.metadata is None


def test_missing_nullable_columns_become_null() -> None:
    result = conform(pa.table({"tailnum": ["N1"]}), FLIGHTS)
    assert result.to_pylist() == [{"tailnum": "N1", "Day": None, "delay": None}]
    assert result.schema == FLIGHTS.arrow_schema


def test_missing_columns_are_kept_or_refused() -> None:
    result = conform(pa.table({"delay": [1, 2], "tailnum": ["N1", "N2"]}), FLIGHTS, MissingColumns.KEPT)
    assert result.schema == pa.schema([FLIGHTS.arrow_schema.field("tailnum"), FLIGHTS.arrow_schema.field("delay")])
    assert conform(EXACT, FLIGHTS, MissingColumns.KEPT) is EXACT
    with pytest.raises(DataError, match="table flights: the data lack Day, delay: give the columns, or pass missing="):
        conform(pa.table({"tailnum": ["N1"]}), FLIGHTS, MissingColumns.REFUSED)
    for missing in MissingColumns:
        with pytest.raises(NullKeyError, match="column tailnum is NOT NULL and the data lack it"):
            conform(pa.table({"delay": [1]}), FLIGHTS, missing)


def test_columns_with_a_default_need_not_be_there() -> None:
    told = TableDef(
        "told",
        1,
        (
            Column("k", parse_type("INTEGER"), nullable=False),
            Column("name", parse_type("VARCHAR"), nullable=False, default="'new'"),
            Column("u", parse_type("UUID"), default="uuid()"),
            Column("made", parse_type("TIMESTAMP"), default="now()"),
            Column("nothing", parse_type("INTEGER"), default="NULL"),
        ),
        ("k",),
        PartitionScheme(),
    )
    now = datetime(2024, 2, 29, 12, tzinfo=UTC)
    for missing in (MissingColumns.NULL, MissingColumns.REFUSED):
        rows = conform(pa.table({"K": [1, 2]}), told, missing, now=now)
        assert rows.schema == told.arrow_schema
        (first, second) = rows.to_pylist()
        assert first.pop("u") != second.pop("u")
        expected = {"name": "new", "made": datetime(2024, 2, 29, 12), "nothing": None}
        assert (first, second) == ({"k": 1, **expected}, {"k": 2, **expected})
    kept = conform(pa.table({"k": [1, 2]}), told, MissingColumns.KEPT, now=now)
    assert kept.schema.names == ["k", made_default_name("u"), made_default_name("made")]
    assert conform(kept, told, MissingColumns.KEPT).equals(kept), "they are made once"
    with pytest.raises(NullKeyError, match="column name is NOT NULL, but 1 of 1 rows"):
        conform(pa.table({"k": [1], "name": pa.nulls(1, pa.string())}), told)


def test_rows_are_counted_as_the_caller_counts_them() -> None:
    with pytest.raises(DataError, match="column delay, row 102: 40000"):
        conform(pa.table({"tailnum": ["N1", "N2"], "delay": [1, 40_000]}), FLIGHTS, first_row=101)
    with pytest.raises(NullKeyError, match="1 of 2 rows are NULL there, the first is row 102"):
        conform(pa.table({"tailnum": ["N1", None]}), FLIGHTS, first_row=101)


def test_no_rows() -> None:
    assert conform(pa.table({}), FLIGHTS).equals(FLIGHTS.arrow_schema.empty_table())
    assert conform(EXACT.slice(0, 0), FLIGHTS).num_rows == 0


def test_an_unknown_column() -> None:
    with pytest.raises(
        UnknownColumnError,
        match="table flights has no column 'origin', which the data have; it has tailnum, Day, delay",
    ):
        conform(pa.table({"tailnum": ["N1"], "origin": ["JFK"]}), FLIGHTS)


def test_a_column_given_twice() -> None:
    with pytest.raises(DataError, match="table flights: the data have column TAILNUM twice"):
        conform(pa.table({"tailnum": ["N1"], "TAILNUM": ["N1"]}), FLIGHTS)


def test_a_missing_not_null_column() -> None:
    with pytest.raises(NullKeyError, match="table flights: column tailnum is NOT NULL and the data lack it") as raised:
        conform(pa.table({"delay": [1]}), FLIGHTS)
    assert raised.value.details == {"table": "flights", "column": "tailnum"}


def test_a_null_in_a_not_null_column() -> None:
    chunks = pa.chunked_array([pa.array(["N1"]), pa.array(["N2", None, None])])
    with pytest.raises(
        NullKeyError, match="column tailnum is NOT NULL, but 2 of 4 rows are NULL there, the first is row 3"
    ) as raised:
        conform(pa.table({"tailnum": chunks}), FLIGHTS)
    assert raised.value.details == {"table": "flights", "column": "tailnum"}


def test_a_value_that_does_not_fit() -> None:
    with pytest.raises(
        DataError,
        match=(
            r"column delay, row 2: 40000 \(int64\) does not fit SMALLINT, which holds whole numbers from -32768 to"
            r" 32767"
        ),
    ):
        conform(pa.table({"tailnum": ["N1", "N2"], "delay": [1, 40_000]}), FLIGHTS)
