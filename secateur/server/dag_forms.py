"""The forms of jobs, which openapi.json describes; a DAG in JSON, of the processors that are delivered with secateur.

Every processor here travels as data, so a cluster that accepts no code runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, assert_never

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from secateur.client.loads.arrow_data import as_table
from secateur.connectors.functions import batch_source, collect
from secateur.connectors.table import table_sink, table_source
from secateur.dag.dag import DAG, FrozenDAG
from secateur.dag.edge import Edge, from_
from secateur.dag.processor import Param
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier
from secateur.engine.processors.aggregate import accumulate, aggregate, combine, distinct
from secateur.engine.processors.aggregates import AggregateExpression, AggregateKind
from secateur.engine.processors.hash_join import hash_join
from secateur.engine.processors.merge import merge, union
from secateur.engine.processors.order_and_limit import SortKey
from secateur.engine.processors.row_functions import key_by
from secateur.engine.processors.sort import merge_runs, sort, sort_runs, top_n
from secateur.errors import DagError, DataError
from secateur.http.json_values import parameters_of
from secateur.protocol.job_description import RESULT_BYTES_MAX, JobConfig
from secateur.protocol.jobs import JobStatus
from secateur.server.forms import EXAMPLE, Params, ResultRows, Settings, SqlText

_NUMBER_MAX: Final = 2**31 - 1
_Name = Annotated[str, Field(min_length=1, max_length=256)]
_Values = list[Any] | dict[str, Any]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Vertex(_Form):
    name: _Name
    local_parallelism: int | None = Field(
        default=None, ge=1, le=1024, description="processors on each member; null: what the processor prefers"
    )


class TableSourceForm(_Vertex):
    """Reads the rows of a table; see `secateur.connectors.table_source`."""

    processor: Literal["table_source"]
    table: _Name
    where: str | None = Field(
        default=None,
        description="a condition of SQL: the partitions and keys are read that a SELECT with it would read",
    )
    params: _Values = Field(
        default=[],
        description='the values of the placeholders of `where`; `{"param": "name"}` is a parameter of the job',
    )
    keys: list[dict[str, Any]] | None = Field(default=None, description="only the rows with these values")
    partitions: list[Annotated[int, Field(ge=0, le=_NUMBER_MAX)]] | None = None
    columns: list[_Name] | None = Field(default=None, description="the columns wanted; null for all")


class RowsSourceForm(_Vertex):
    """Rows that travel with the job: at least one, as objects with the same names."""

    processor: Literal["rows_source"]
    rows: Annotated[list[dict[str, Any]], Field(min_length=1)]


class KeyByForm(_Vertex):
    """Puts key columns in front of its rows, each from another column."""

    processor: Literal["key_by"]
    keys: dict[str, str]
    keep: bool = True


class AggregateColumnForm(_Form):
    """A column of a result: an aggregate function of a column."""

    function: AggregateKind
    column: str | None = Field(default=None, description="its argument; null for `count_rows`")


class AggregateForm(_Vertex):
    """Aggregates for each key: whole, or in two stages, of which `combine` gets what `accumulate` makes."""

    processor: Literal["aggregate", "accumulate", "combine"]
    by: list[str] = []
    aggregates: dict[str, AggregateColumnForm]


class OrderForm(_Form):
    """One column of an order."""

    column: str
    descending: bool = False
    nulls_first: bool = False


class SortForm(_Vertex):
    """Orders its rows; `sort_runs` where the rows are and `merge_runs` behind it share the work."""

    processor: Literal["sort", "sort_runs", "merge_runs"]
    by: Annotated[list[str | OrderForm], Field(min_length=1)]


class MergeForm(_Vertex):
    """Merges ordered inputs."""

    processor: Literal["merge"]
    by: Annotated[list[str | OrderForm], Field(min_length=1)]
    inputs: Annotated[int, Field(ge=1, le=1024)]


class TopNForm(_Vertex):
    """The first rows in an order."""

    processor: Literal["top_n"]
    n: Annotated[int, Field(ge=0, le=_NUMBER_MAX)]
    by: Annotated[list[str | OrderForm], Field(min_length=1)]


class DistinctForm(_Vertex):
    """The first of the rows that are equal in some columns, or in all."""

    processor: Literal["distinct"]
    columns: list[str] = []


class HashJoinForm(_Vertex):
    """Joins input 0 with input 1, which is read first and kept in memory."""

    processor: Literal["hash_join"]
    on: list[str] | dict[str, str] = Field(description="columns of both sides, or for each of input 0 that of input 1")
    how: Literal["inner", "semi", "anti"] = "inner"
    build_suffix: str = "_build"


class UnionForm(_Vertex):
    """Passes on the rows of all inputs."""

    processor: Literal["union"]


class TableSinkForm(_Vertex):
    """Writes rows into a table."""

    processor: Literal["table_sink"]
    table: _Name
    mode: Literal["upsert", "append"] = "upsert"
    missing: Literal["null"] | None = None


class CollectForm(_Vertex):
    """Keeps its rows as a result of the job."""

    processor: Literal["collect"]


VertexForm = Annotated[
    TableSourceForm
    | RowsSourceForm
    | KeyByForm
    | AggregateForm
    | SortForm
    | MergeForm
    | TopNForm
    | DistinctForm
    | HashJoinForm
    | UnionForm
    | TableSinkForm
    | CollectForm,
    Field(discriminator="processor"),
]


class EdgeForm(_Form):
    """An edge: it says which rows of one vertex reach which processors of another."""

    source: _Name
    destination: _Name
    source_ordinal: int = Field(default=0, ge=0, le=1024)
    destination_ordinal: int = Field(default=0, ge=0, le=1024)
    routing: Literal["unicast", "partitioned", "broadcast", "isolated", "all_to_one", "fan_out"] = "unicast"
    columns: list[str] = Field(default=[], description="of `partitioned`: the key")
    table: str | None = Field(default=None, description="of `partitioned`: rows go to the owners of this table's rows")
    key: str = Field(default="", description="of `all_to_one`: edges with equal keys meet")
    distributed: bool = Field(default=False, description="whether rows may leave their member")
    member: str | None = Field(default=None, description="the only member that they go to")
    priority: int = Field(default=0, ge=-_NUMBER_MAX, le=_NUMBER_MAX, description="smaller numbers are read first")


class DagForm(_Form):
    """A DAG."""

    vertices: Annotated[list[VertexForm], Field(min_length=1, max_length=1024)]
    edges: Annotated[list[EdgeForm], Field(max_length=4096)] = []


def dag_of_form(form: DagForm) -> FrozenDAG:
    """The DAG that a form describes.

    Raises:
        DagError: It is not valid; says which vertex or edge, and why.
        ParameterError: A value of a source is none.
    """
    dag = DAG()
    for vertex in form.vertices:
        dag.new_vertex(vertex.name, _supplier(vertex), local_parallelism=vertex.local_parallelism)
    for edge in form.edges:
        dag.edge(_edge(edge))
    return dag.freeze()


def _supplier(vertex: VertexForm) -> ProcessorMetaSupplier | ProcessorSupplier:
    match vertex:
        case TableSourceForm():
            return table_source(
                vertex.table,
                keys=None if vertex.keys is None else [_named(key) for key in vertex.keys],
                where=vertex.where,
                params=_values(vertex.params),
                partitions=vertex.partitions,
                columns=vertex.columns,
            )
        case RowsSourceForm():
            return batch_source(_table(vertex))
        case KeyByForm():
            return key_by(vertex.keys, keep=vertex.keep)
        case AggregateForm():
            make = {"aggregate": aggregate, "accumulate": accumulate, "combine": combine}[vertex.processor]
            aggregates = {name: _aggregate(vertex.name, name, of) for name, of in vertex.aggregates.items()}
            return make(vertex.by, aggregates)
        case SortForm():
            order = {"sort": sort, "sort_runs": sort_runs, "merge_runs": merge_runs}[vertex.processor]
            return order(*_order(vertex.by))
        case MergeForm():
            return merge(*_order(vertex.by), inputs=vertex.inputs)
        case TopNForm():
            return top_n(vertex.n, *_order(vertex.by))
        case DistinctForm():
            return distinct(*vertex.columns)
        case HashJoinForm():
            return hash_join(vertex.on, vertex.how, build_suffix=vertex.build_suffix)
        case UnionForm():
            return union()
        case TableSinkForm():
            return table_sink(vertex.table, mode=vertex.mode, missing=vertex.missing)
        case CollectForm():
            return collect()
        case _:
            assert_never(vertex)


def _edge(form: EdgeForm) -> Edge:
    edge = from_(form.source, form.source_ordinal).to(form.destination, form.destination_ordinal)
    if (form.columns or form.table is not None) and form.routing != "partitioned":
        raise DagError(f"edge {edge.name} has columns or a table, which only 'partitioned' takes: it is {form.routing}")
    match form.routing:
        case "partitioned":
            edge = edge.partitioned(*form.columns, table=form.table)
        case "all_to_one":
            edge = edge.all_to_one(form.key)
        case name:
            edge = getattr(edge, name)()
    if form.member is not None:
        edge = edge.distribute_to(form.member)
    elif form.distributed:
        edge = edge.distributed()
    return edge.with_priority(form.priority)


def _aggregate(vertex: str, name: str, form: AggregateColumnForm) -> AggregateExpression:
    if (form.column is None) != (form.function is AggregateKind.COUNT_ROWS):
        raise DagError(
            f"vertex {vertex!r}: aggregate {name!r} is {form.function.value} of"
            f" {'no column' if form.column is None else repr(form.column)}; count_rows takes none, all others take one"
        )
    return AggregateExpression(form.function, form.column)


def _order(by: Sequence[str | OrderForm]) -> list[SortKey]:
    return [
        SortKey(one) if isinstance(one, str) else SortKey(one.column, one.descending, one.nulls_first) for one in by
    ]


def _values(values: _Values) -> list[Any] | dict[str, Any]:
    return (
        _named(values) if isinstance(values, Mapping) else [_value(str(n), value) for n, value in enumerate(values, 1)]
    )


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(name, value) for name, value in values.items()}


def _value(name: str, value: Any) -> Any:
    match value:
        case {"param": str() | int() as key, **rest} if not rest and not isinstance(key, bool):
            return Param(key)
        case _:
            return parameters_of({name: value})[name]  # type: ignore[call-overload]


def _table(vertex: RowsSourceForm) -> pa.Table:
    rows = [parameters_of(row) for row in vertex.rows]
    try:
        return as_table(rows)
    except DataError as error:
        raise DagError(f"vertex {vertex.name!r}: its rows make no table: {error}") from error


class JobConfigForm(BaseModel):
    """The settings of a run of a job: `JobConfig` of the Python client."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    required_partitions: dict[str, list[Annotated[int, Field(ge=0, le=2**31)]]] | None = Field(
        default=None, description="the partitions that it can touch, by table; only their owners take part"
    )
    member_pruning: bool = True
    pruning: bool = True
    timeout_s: Annotated[float, Field(gt=0, le=10**9, allow_inf_nan=False)] | None = None
    result_bytes_max: Annotated[int, Field(ge=1, le=RESULT_BYTES_MAX)] = RESULT_BYTES_MAX
    kernel_bytes_max: Annotated[int, Field(ge=1, le=2**50)] | None = None
    on_member_lost: Literal["restart", "fail"] = "restart"

    def to_config(self) -> JobConfig:
        """The value that a submission takes."""
        values = self.model_dump()
        if self.required_partitions is not None:
            values["required_partitions"] = {name: frozenset(ids) for name, ids in self.required_partitions.items()}
        return JobConfig(**values)


class JobForm(BaseModel):
    """A job to be run: exactly one of `sql`, `dag` and `encoded_dag`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    sql: SqlText | None = Field(
        default=None,
        description="a statement. The server runs it, and keeps its rows; it has no record in the cluster, and ends"
        " with the server",
    )
    dag: DagForm | None = Field(default=None, description="a DAG of the processors that are delivered with secateur")
    encoded_dag: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="a DAG as the Python client sends it, `dag.freeze().encoded()` in base 64. Functions in it run only"
        " in a cluster that was started with `allow_code=True`; the server itself never loads them",
    )
    params: Params = []
    config: JobConfigForm = Field(default=JobConfigForm(), description="of `dag` and `encoded_dag`")
    settings: Settings = Field(default={}, description="of `sql`: settings of a connection")


class JobStatusForm(BaseModel):
    """A job as it was at one moment."""

    id: str
    kind: Literal["sql", "dag"]
    name: str | None = None
    status: JobStatus = Field(description="`completed`, `failed` and `cancelled` are final")
    attempt: int = Field(description="how often it was begun")
    coordinator: str | None = Field(default=None, description="the member that runs it; null for `sql`")
    submitted: str | None
    ended: str | None = None
    reason: str | None = Field(default=None, description="why it failed, or began again last")


class JobList(BaseModel):
    """Jobs, the newest first."""

    items: list[JobStatusForm]


class JobMetricsList(BaseModel):
    """The work of each vertex on each member: `job.metrics()` of the Python client."""

    items: list[dict[str, Any]]


class JobLogLineForm(BaseModel):
    """A line that a processor of a job has logged."""

    time: str = Field(description="by the clock of its member, in UTC")
    level: str
    member: str
    vertex: str
    attempt: int
    logger: str
    message: str


class JobLogForm(BaseModel):
    """The log lines of the processors of a job, by time: `job.logs()` of the Python client."""

    items: list[JobLogLineForm]
    dropped: int = Field(description="further lines, which members have not kept or the limit leaves out")
    silent: list[str] = Field(description="members that could not be asked")


class JobResultPage(ResultRows, JobStatusForm):
    """A job that has completed, with rows of one of its results."""

    sinks: list[str] = Field(description="the vertices that have collected rows")
