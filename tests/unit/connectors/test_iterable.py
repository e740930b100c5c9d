"""Python iterables as sources."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import iterable_source
from secateur.errors import DagError, DataError


class Squares:
    """Iterates where the job runs, as often as it is asked to."""

    def __iter__(self) -> Any:
        return ({"x": x, "square": x * x} for x in range(5))


@pytest.mark.parametrize(
    ("items", "options", "expected"),
    [
        pytest.param([{"x": 1}, {"x": 2}], {}, {"x": [1, 2]}, id="dicts"),
        pytest.param(Squares(), {}, {"x": [0, 1, 2, 3, 4], "square": [0, 1, 4, 9, 16]}, id="reads-when-iterated"),
        pytest.param([{"x": 1, "y": "a"}, {"y": "b"}], {}, {"x": [1, None], "y": ["a", "b"]}, id="missing-is-null"),
        pytest.param(range(0), {}, {}, id="nothing"),
        pytest.param([], {"schema": pa.schema([("x", pa.float32())])}, {"x": []}, id="nothing-of-a-schema"),
        pytest.param([pa.record_batch({"x": [1]}), pa.table({"x": [2, 3]})], {}, {"x": [1, 2, 3]}, id="arrow"),
        pytest.param([{"x": 1}, pa.record_batch({"x": [2]}), {"x": 3}], {}, {"x": [1, 2, 3]}, id="mixed-keeps-order"),
        pytest.param(
            [{"x": n} for n in range(7)], {"batch_rows": 3}, {"x": [0, 1, 2, 3, 4, 5, 6]}, id="several-batches"
        ),
        pytest.param(
            [{"x": 1}],
            {"schema": pa.schema([("x", pa.float32()), ("y", pa.string())])},
            {"x": [1.0], "y": [None]},
            id="schema",
        ),
    ],
)
def test_what_it_makes(read: Any, items: Any, options: dict[str, Any], expected: dict[str, list[Any]] | None) -> None:
    result = read(iterable_source(items, **options))
    assert {name: table.to_pydict() for name, table in result.tables.items()} == {"out": expected}
    assert result.members_touched == ("m1",)


@pytest.mark.parametrize(
    ("items", "options", "message"),
    [
        pytest.param((x for x in ()), {}, "generator, which cannot travel", id="generator"),
        pytest.param("abc", {}, "given a str", id="string"),
        pytest.param({"x": 1}, {}, "given a dict", id="mapping"),
        pytest.param(7, {}, "given a int", id="number"),
        pytest.param([], {"batch_rows": 0}, "batch_rows is 0", id="no-batch"),
    ],
)
def test_what_is_refused_at_once(items: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DagError, match=message):
        iterable_source(items, **options)


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        pytest.param([1, 2], DagError, r"made a int; make a dict .*vertex 'source' on member m1", id="no-rows"),
        pytest.param([{"x": 1}, {"x": "a"}], DataError, "rows 0 to 1 do not fit", id="two-types"),
        pytest.param([{"x": 1}] * 2 + [{"y": 1}], DataError, "from number 2 on has the column 'y'", id="new-column"),
        pytest.param(
            [{"x": 1}] * 2 + [{"x": "a"}],
            DataError,
            "rows 2 to 2 do not fit.*expected x int64",
            id="type-of-later-batch",
        ),
        pytest.param(
            [{"x": "a"}, pa.record_batch({"x": pa.array([b"b", b"\xff"], pa.binary()).view(pa.string())})],
            DataError,
            r"column x, row 3: b'\\xff' is no UTF-8",
            id="no-utf-8",
        ),
    ],
)
def test_what_fails_the_job(read: Any, items: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(iterable_source(items, batch_rows=2))
