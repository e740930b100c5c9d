"""The forms of jobs: what openapi.json describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from secateur.client.jobs.job_status import JobStatus
from secateur.protocol.job_config import RESULT_BYTES_MAX, JobConfig
from secateur.server.dag_forms import DagForm
from secateur.server.forms import EXAMPLE, Params, ResultRows, Settings, SqlText


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
