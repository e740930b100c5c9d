"""The partitions that a pipeline needs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.connectors import collect
from secateur.dag import Param
from secateur.errors import DagError, ParameterError
from secateur.partitioning.build import build_scheme
from secateur.partitioning.scheme import HashComponent
from secateur.partitioning.table import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.pipeline import Pipeline, Stage
from secateur.pipeline.required import required_partitions
from secateur.pipeline.step import steps_of

TYPES = {"k": parse_type("BIGINT"), "n": parse_type("BIGINT")}


def table(name: str, *, replicated: bool = False) -> TableDef:
    scheme = build_scheme(hashes=[HashComponent(("k",), 8)], types=TYPES, primary_key=("k", "n"), table=name)
    columns = tuple(Column(column, kind, nullable=False) for column, kind in TYPES.items())
    return TableDef(name, 1, columns, ("k", "n"), scheme, backups=0, replicated=replicated)


TABLES = {"t": table("t"), "u": table("u"), "everywhere": table("everywhere", replicated=True)}
OF_7 = TABLES["t"].scheme.partition_of({"k": 7})
OF_8 = TABLES["t"].scheme.partition_of({"k": 8})
BY_KEY = Pipeline().read_table("t", keys=[{"k": Param(0)}])
IN_HAND = pa.table({"k": [1]})


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        pytest.param(BY_KEY, {"t": {OF_7}}, id="key"),
        pytest.param(Pipeline().read_table("t", keys=[{"k": 7, "n": 1}, {"k": 8, "n": 1}]), {"t": {OF_7, OF_8}}, id="keys"),
        pytest.param(Pipeline().read_table("t", keys=[{"k": None}]), {"t": set()}, id="null-matches-nothing"),
        pytest.param(Pipeline().read_table("t", where={"k": [7, 8], "n": range(3)}), {"t": {OF_7, OF_8}}, id="where"),
        pytest.param(Pipeline().read_table("t", where={"k": Param(0)}), {"t": {OF_7}}, id="where-parameter"),
        pytest.param(Pipeline().read_table("t", where={"k": []}), {"t": set()}, id="where-nothing"),
        pytest.param(Pipeline().read_table("t", partitions=[3, 1]), {"t": {1, 3}}, id="partitions"),
        pytest.param(Pipeline().read_table("t"), None, id="whole-table"),
        pytest.param(BY_KEY.union(Pipeline().read_table("u")), {"t": {OF_7}, "u": set(range(8))}, id="key-and-whole-table"),
        pytest.param(BY_KEY.union(Pipeline().read_table("t", partitions=[0])), {"t": {OF_7, 0}}, id="one-table-twice"),
        pytest.param(BY_KEY.union(Pipeline().read_table("everywhere")), {"t": {OF_7}}, id="replicated"),
        pytest.param(BY_KEY.union(Pipeline().read_batches(IN_HAND), Pipeline().read_rows([{"k": 1}])), {"t": {OF_7}}, id="rows-in-hand"),
        pytest.param(BY_KEY.union(Pipeline().read_files("*.csv")), {"t": {OF_7}}, id="shared-files"),
        pytest.param(BY_KEY.union(Pipeline().read_files("*.csv", shared=False)), None, id="files-of-each-member"),
        pytest.param(BY_KEY.union(Pipeline().read_generator(lambda context: ())), None, id="generator-everywhere"),
        pytest.param(Pipeline().read_batches(IN_HAND), None, id="no-table"),
    ],
)
def test_required_partitions(stage: Stage, expected: dict[str, set[int]] | None) -> None:
    assert required_partitions(steps_of(stage.write_to(collect()).sinks), TABLES.__getitem__, [7]) == expected


def test_what_cannot_be_bound_is_refused() -> None:
    with pytest.raises(ParameterError, match="needs the parameter 0"):
        required_partitions(steps_of([BY_KEY.step]), TABLES.__getitem__, [])
    with pytest.raises(DagError, match=r"vertex 'read t': the keys name n, but a row's partition in t also depends on k"):
        required_partitions(steps_of([Pipeline().read_table("t", keys=[{"n": 1}]).step]), TABLES.__getitem__, [])
