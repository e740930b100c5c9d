"""What the sources of a DAG need, as a client knows it before the job starts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.connectors import collect, generator_source, table_source
from secateur.dag import DAG, Param, Processor, between, force_total_parallelism_one, lazy_total_parallelism_one
from secateur.dag.supplier import SourceQuery
from secateur.errors import DagError, ParameterError, UnknownTableError
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.pipeline import Pipeline, Stage
from secateur.protocol import JobRequirements

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


def found(name: str) -> TableDef:
    try:
        return TABLES[name]
    except KeyError:
        raise UnknownTableError(name) from None


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        pytest.param(BY_KEY, {"t": {OF_7}}, id="key"),
        pytest.param(
            Pipeline().read_table("t", keys=[{"k": 7, "n": 1}, {"k": 8, "n": 1}]), {"t": {OF_7, OF_8}}, id="keys"
        ),
        pytest.param(Pipeline().read_table("t", keys=[{"n": 1}]), {"t": set(range(8))}, id="no-partitioning-column"),
        pytest.param(Pipeline().read_table("t", keys=[{"k": None}]), {"t": set()}, id="null-matches-nothing"),
        pytest.param(Pipeline().read_table("t", where={"k": [7, 8], "n": range(3)}), {"t": {OF_7, OF_8}}, id="where"),
        pytest.param(Pipeline().read_table("t", where={"k": Param(0)}), {"t": {OF_7}}, id="where-parameter"),
        pytest.param(Pipeline().read_table("t", where={"k": []}), {"t": set()}, id="where-nothing"),
        pytest.param(Pipeline().read_table("t", partitions=[3, 1]), {"t": {1, 3}}, id="partitions"),
        pytest.param(Pipeline().read_table("t"), {"t": set(range(8))}, id="whole-table"),
        pytest.param(
            BY_KEY.union(Pipeline().read_table("u")), {"t": {OF_7}, "u": set(range(8))}, id="key-and-whole-table"
        ),
        pytest.param(BY_KEY.union(Pipeline().read_table("t", partitions=[0])), {"t": {OF_7, 0}}, id="one-table-twice"),
        pytest.param(BY_KEY.union(Pipeline().read_table("everywhere")), {"t": {OF_7}}, id="replicated"),
        pytest.param(
            BY_KEY.union(Pipeline().read_batches(IN_HAND), Pipeline().read_rows([{"k": 1}])),
            {"t": {OF_7}},
            id="rows-in-hand",
        ),
        pytest.param(BY_KEY.union(Pipeline().read_files("*.csv")), {"t": {OF_7}}, id="shared-files"),
        pytest.param(BY_KEY.union(Pipeline().read_files("*.csv", shared=False)), {}, id="files-of-each-member"),
        pytest.param(BY_KEY.union(Pipeline().read_generator(lambda context: ())), {}, id="generator-everywhere"),
        pytest.param(
            BY_KEY.union(Pipeline().read_generator(lambda context: (), everywhere=False)),
            {"t": {OF_7}},
            id="one-generator",
        ),
        pytest.param(BY_KEY.union(Pipeline().read_from(Processor)), {}, id="source-of-ones-own"),
        pytest.param(Pipeline().read_batches(IN_HAND), {}, id="no-table"),
    ],
)
def test_what_a_pipeline_needs(stage: Stage, expected: dict[str, set[int]]) -> None:
    assert stage.write_to(collect()).to_dag().needs([7], found) == JobRequirements(
        {name: frozenset(ids) for name, ids in expected.items()}
    )


def test_what_a_dag_built_by_hand_needs() -> None:
    dag = DAG()
    dag.new_vertex("read", table_source("t", keys=[{"k": 7}]))
    dag.new_vertex("combine", lazy_total_parallelism_one(Processor, "u", {"k": Param("who")}))
    dag.new_vertex("there", force_total_parallelism_one(Processor, "m3"))
    dag.new_vertex("sink", Processor)
    dag.edge(between("read", "combine").distributed()).edge(between("combine", "there").distributed()).edge(
        between("there", "sink").distribute_to("m4")
    )
    assert dag.freeze().needs({"who": 8}, found) == JobRequirements(
        {"t": frozenset({OF_7}), "u": frozenset({OF_8})}, frozenset({"m3", "m4"})
    )


def test_what_a_condition_needs_is_asked_of_the_planner() -> None:
    asked = []

    def needs_of(query: SourceQuery) -> JobRequirements:
        asked.append(query)
        return JobRequirements({"group": frozenset({3})})

    stage = Pipeline().read_table("t", where="k = ? AND n > ?", params=[Param(0), 5], columns=["n", 'a"b'])
    dag = stage.union(BY_KEY).write_to(collect()).to_dag()
    assert dag.needs([7], found, needs_of) == JobRequirements({"group": frozenset({3}), "t": frozenset({OF_7})})
    assert asked == [SourceQuery('SELECT "n", "a""b" FROM "t" WHERE (\nk = ? AND n > ?\n)', [7, 5])]
    assert dag.needs([7], found) == JobRequirements(), "nobody who could plan it: it may need every member"
    one = DAG()
    one.new_vertex("read", force_total_parallelism_one(table_source("t", where="k = $of", params={"of": 1}), "m1"))
    one.freeze().needs([], found, needs_of)
    assert asked[1:] == [SourceQuery('SELECT * FROM "t" WHERE (\nk = $of\n)', {"of": 1})]


def test_a_table_of_many_partitions_names_some() -> None:
    scheme = build_scheme(hashes=[HashComponent(("k",), 10_000)], types=TYPES, primary_key=("k", "n"), table="wide")
    wide = TableDef("wide", 2, TABLES["t"].columns, ("k", "n"), scheme, backups=0, replicated=False)
    needs = table_source("wide").needs("read", (), lambda _: wide)
    assert len(needs.partitions["wide"]) == 512
    assert generator_source(lambda context: ()).needs("read", (), found) is None


def test_what_cannot_be_bound_is_refused() -> None:
    with pytest.raises(ParameterError, match="needs the parameter 0"):
        BY_KEY.write_to(collect()).to_dag().needs([], found)
    with pytest.raises(DagError, match="table t has no partition 8"):
        Pipeline().read_table("t", partitions=[8]).write_to(collect()).to_dag().needs([], found)
    with pytest.raises(UnknownTableError):
        Pipeline().read_table("nobody").write_to(collect()).to_dag().needs([], found)
