"""In-memory tables, partitioned over members; SQL and jobs run only on the members whose partitions they need.

:func:`start` starts a cluster, :func:`connect` opens a connection (PEP 249). Parts that a thin client does not need
(the cluster, the DAG classes, Spark) are imported at their first use. So is the client itself, with PyArrow and NumPy,
and ``import secateur`` alone loads nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

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
    from secateur.client.jobs.job import Job, JobInfo, JobStatus
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

_LATER: Final = {
    "BINARY": "secateur.client.dbapi.pep249",
    "Binary": "secateur.client.dbapi.pep249",
    "Cluster": "secateur.cluster",
    "Connection": "secateur.client",
    "CostModel": "secateur.planner.cost_model",
    "Cursor": "secateur.client",
    "DAG": "secateur.dag",
    "DATETIME": "secateur.client.dbapi.pep249",
    "DataError": "secateur.errors",
    "DatabaseError": "secateur.errors",
    "Date": "secateur.client.dbapi.pep249",
    "DateFromTicks": "secateur.client.dbapi.pep249",
    "EngineLimits": "secateur.engine_limits",
    "Error": "secateur.errors",
    "Explain": "secateur.client",
    "IntegrityError": "secateur.errors",
    "InterfaceError": "secateur.errors",
    "InternalError": "secateur.errors",
    "Job": "secateur.client",
    "JobConfig": "secateur.dag",
    "JobInfo": "secateur.client",
    "JobStatus": "secateur.client",
    "Jwt": "secateur.wire",
    "LightJob": "secateur.client",
    "MemberInfo": "secateur.cluster",
    "NUMBER": "secateur.client.dbapi.pep249",
    "NotSupportedError": "secateur.errors",
    "OperationalError": "secateur.errors",
    "Pipeline": "secateur.pipeline",
    "ProgrammingError": "secateur.errors",
    "QueryStats": "secateur.client",
    "ROWID": "secateur.client.dbapi.pep249",
    "STRING": "secateur.client.dbapi.pep249",
    "TableHandle": "secateur.client",
    "Time": "secateur.client.dbapi.pep249",
    "TimeFromTicks": "secateur.client.dbapi.pep249",
    "Timestamp": "secateur.client.dbapi.pep249",
    "TimestampFromTicks": "secateur.client.dbapi.pep249",
    "Tls": "secateur.wire",
    "Warning": "secateur.errors",
    "apilevel": "secateur.client.dbapi.pep249",
    "attach": "secateur.cluster",
    "between": "secateur.dag",
    "connect": "secateur.client.connect",
    "from_": "secateur.dag",
    "load_ipython_extension": "secateur.notebook",
    "paramstyle": "secateur.client.dbapi.pep249",
    "start": "secateur.cluster",
    "threadsafety": "secateur.client.dbapi.pep249",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _LATER:
        raise AttributeError(f"module 'secateur' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
