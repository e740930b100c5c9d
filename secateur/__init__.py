"""In-memory tables, partitioned over members; SQL and jobs run only on the members whose partitions they need.

:func:`start` starts a cluster, :func:`connect` opens a connection (PEP 249). Parts that a thin client does not need
(the cluster, the DAG classes, Spark) are imported at their first use. So is the client itself, with PyArrow and NumPy,
and ``import secateur`` alone loads nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from secateur.exports import exports

if TYPE_CHECKING:
    import secateur.aio as aio
    import secateur.connectors as connectors
    import secateur.connectors.spark as spark
    import secateur.processors as processors
    from secateur.client.connect import connect
    from secateur.client.dbapi.connection import Connection, Explain
    from secateur.client.dbapi.cursor import Cursor
    from secateur.client.dbapi.pep249 import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
        apilevel,
        paramstyle,
        threadsafety,
    )
    from secateur.client.dbapi.stats import QueryStats
    from secateur.client.jobs.job import Job
    from secateur.client.jobs.light_job import LightJob
    from secateur.client.loads.table_handle import TableHandle
    from secateur.cluster import Cluster, MemberInfo, attach, start
    from secateur.dag import DAG, JobConfig, between, from_
    from secateur.engine_limits import EngineLimits
    from secateur.errors import (
        DatabaseError,
        DataError,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Warning,
    )
    from secateur.pipeline import Pipeline
    from secateur.planner.cost_model import CostModel
    from secateur.protocol.jobs import JobInfo, JobStatus
    from secateur.wire import Jwt, Tls

__all__ = [
    "BINARY",
    "DAG",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Cluster",
    "Connection",
    "CostModel",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "EngineLimits",
    "Error",
    "Explain",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Job",
    "JobConfig",
    "JobInfo",
    "JobStatus",
    "Jwt",
    "LightJob",
    "MemberInfo",
    "NotSupportedError",
    "OperationalError",
    "Pipeline",
    "ProgrammingError",
    "QueryStats",
    "TableHandle",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Tls",
    "Warning",
    "aio",
    "apilevel",
    "attach",
    "between",
    "connect",
    "connectors",
    "from_",
    "paramstyle",
    "processors",
    "spark",
    "start",
    "threadsafety",
]

__version__ = "0.1.0.dev0"

_MODULES: Final = {
    "aio": "secateur.aio",
    "client": "secateur.client",
    "connectors": "secateur.connectors",
    "errors": "secateur.errors",
    "processors": "secateur.processors",
    "spark": "secateur.connectors.spark",
}
"""Modules that are imported when they are asked for by their short names."""

_FILES = {
    "client": [
        "Connection",
        "Cursor",
        "Explain",
        "Job",
        "LightJob",
        "QueryStats",
        "TableHandle",
    ],
    "client.connect": ["connect"],
    "client.dbapi.pep249": [
        "BINARY",
        "Binary",
        "DATETIME",
        "Date",
        "DateFromTicks",
        "NUMBER",
        "ROWID",
        "STRING",
        "Time",
        "TimeFromTicks",
        "Timestamp",
        "TimestampFromTicks",
        "apilevel",
        "paramstyle",
        "threadsafety",
    ],
    "cluster": ["Cluster", "MemberInfo", "attach", "start"],
    "dag": ["DAG", "JobConfig", "between", "from_"],
    "engine_limits": ["EngineLimits"],
    "errors": [
        "DataError",
        "DatabaseError",
        "Error",
        "IntegrityError",
        "InterfaceError",
        "InternalError",
        "NotSupportedError",
        "OperationalError",
        "ProgrammingError",
        "Warning",
    ],
    "notebook": ["load_ipython_extension"],
    "pipeline": ["Pipeline"],
    "planner.cost_model": ["CostModel"],
    "protocol.jobs": ["JobInfo", "JobStatus"],
    "wire": ["Jwt", "Tls"],
}

_, _later = exports(__name__, _FILES)


def __getattr__(name: str) -> Any:
    return importlib.import_module(_MODULES[name]) if name in _MODULES else _later(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
