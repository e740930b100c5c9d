"""The thin client: knows the partition function and the owners, and sends statements straight to the owning member."""

from __future__ import annotations

from secateur.client.connect import connect
from secateur.client.dbapi.connection import Connection
from secateur.client.dbapi.cursor import Cursor
from secateur.client.dbapi.explain import Explain
from secateur.client.dbapi.stats import QueryStats
from secateur.client.jobs.job import Job, JobInfo
from secateur.client.jobs.job_status import JobStatus
from secateur.client.jobs.light_job import LightJob
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.client.loads.table_handle import TableHandle

__all__ = [
    "Connection",
    "Cursor",
    "Explain",
    "Job",
    "JobInfo",
    "JobStatus",
    "LightJob",
    "QueryStats",
    "ResolvedPlan",
    "TableHandle",
    "connect",
]
