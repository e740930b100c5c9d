from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.errors import DataError, NullKeyError, TopologyChangedError, UnknownColumnError
from secateur.storage import TableLayout


def test_admits_rows_of_the_schema(layout: TableLayout, rows: Any) -> None:
    assert layout.admit(rows((1, "x", 2))).to_pydict() == {"a": [1], "b": ["x"], "v": [2]}


def test_nullability_and_metadata_of_the_sender_do_not_matter(layout: TableLayout) -> None:
    sent = pa.table({"a": pa.array([1]), "b": ["x"], "v": pa.array([None], pa.int64())}).replace_schema_metadata(
        {"pandas": "{}"}
    )
    assert layout.admit(sent).schema.equals(layout.schema, check_metadata=True)


def test_admits_a_record_batch(layout: TableLayout, rows: Any) -> None:
    assert layout.admit(rows((1, "x", 2)).to_batches()[0]).num_rows == 1


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({"a": pa.array([1]), "v": pa.array([1])}, id="key-missing"),
        pytest.param({"b": pa.array(["x"]), "a": pa.array([1]), "v": pa.array([1])}, id="other-order"),
        pytest.param({"a": pa.array([1], pa.int32()), "b": pa.array(["x"]), "v": pa.array([1])}, id="other-type"),
        pytest.param(
            {"a": pa.array([1]), "b": pa.array(["x"], pa.large_string()), "v": pa.array([1])}, id="large-string"
        ),
    ],
)
def test_refuses_another_schema(layout: TableLayout, sent: dict[str, pa.Array]) -> None:
    with pytest.raises(
        DataError, match=r"^t: expected the columns \(a int64, b string, v int64\), got .*; conform the rows"
    ):
        layout.admit(pa.table(sent))


@pytest.mark.parametrize("column", ["a", "b"])
def test_refuses_null_in_a_key(layout: TableLayout, column: str) -> None:
    sent = {"a": pa.array([1, 2]), "b": pa.array(["x", "y"]), "v": pa.array([1, 2])}
    sent[column] = pa.array([sent[column][0].as_py(), None], sent[column].type)
    with pytest.raises(NullKeyError, match=rf"t\.{column} is NOT NULL, but 1 of 2 rows have NULL there") as caught:
        layout.admit(pa.table(sent))
    assert caught.value.details == {"table": "t", "column": column}


@pytest.mark.parametrize(
    ("offsets", "data"),
    [
        pytest.param([0, 2**30, 3], b"abc", id="offset-past-the-end"),
        pytest.param([0, 3, 2], b"abc", id="descending-offsets"),
        pytest.param([0, 1, 3], b"a\xff\xfe", id="not-utf8"),
    ],
)
def test_refuses_arrays_that_would_end_the_process(layout: TableLayout, offsets: list[int], data: bytes) -> None:
    broken = pa.StringArray.from_buffers(2, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(data))
    with pytest.raises(DataError, match=r"^t: the rows are malformed: "):
        layout.admit(pa.Table.from_arrays([pa.array([1, 2]), broken, pa.array([1, 2])], schema=layout.schema))


def test_keys_are_picked_from_any_table_that_has_them(layout: TableLayout, rows: Any) -> None:
    assert layout.admit_keys(rows((1, "x", 2)).select(["v", "b", "a"])).to_pydict() == {"a": [1], "b": ["x"]}


def test_keys_without_a_key_column(layout: TableLayout, rows: Any) -> None:
    with pytest.raises(DataError, match="t: keys to delete need the columns a, b; missing b"):
        layout.admit_keys(rows((1, "x", 2)).select(["a"]))


def test_keys_in_key_order_when_it_differs_from_the_columns(make_table: Any) -> None:
    layout = TableLayout.of(make_table({"x": "BIGINT", "y": "BIGINT"}, ["y", "x"]))
    assert layout.admit_keys(pa.table({"x": [1], "y": [2]})).to_pydict() == {"y": [2], "x": [1]}


def test_column_positions(layout: TableLayout) -> None:
    assert layout.column_positions(["v", "A", "a"]) == [2, 0, 0]
    with pytest.raises(UnknownColumnError, match="no column 'w'"):
        layout.column_positions(["v", "w"])


def test_rows_sent_to_another_partition_are_refused(make_table: Any) -> None:
    layout = TableLayout.of(make_table({"k": "BIGINT"}, ["k"], partitions=16))
    sent = pa.table({"k": [5]}, schema=layout.schema)
    right = layout.tdef.scheme.partition_of({"k": 5})
    layout.check_partition(sent, right)
    with pytest.raises(
        TopologyChangedError, match=rf"key \(k=5\) belongs to partition {right}, not {(right + 1) % 16}"
    ):
        layout.check_partition(sent, (right + 1) % 16)


def test_a_table_without_components_has_one_partition_for_all(layout: TableLayout, rows: Any) -> None:
    layout.check_partition(rows((1, "x", 2)), 0)
    layout.check_partition(rows(), 0)


def test_dates_that_python_cannot_hold_are_not_sampled(make_table: Any) -> None:
    layout = TableLayout.of(make_table({"d": "DATE"}, ["d"], partitions=4))
    far = pa.Table.from_arrays([pa.array([2_000_000_000], pa.int32()).cast(pa.date32())], schema=layout.schema)
    layout.check_partition(far, 0)
