"""The thin client: knows the partition function and the owners, not the planner; sends a statement straight to the owning member."""

from __future__ import annotations

from secateur.client.connect import connect
from secateur.client.connection import Connection
from secateur.client.cursor import Cursor
from secateur.client.explain import Explain
from secateur.client.job import Job, JobInfo
from secateur.client.job_status import JobStatus
from secateur.client.light_job import LightJob
from secateur.client.resolved_plan import ResolvedPlan
from secateur.client.stats import QueryStats
from secateur.client.table_handle import TableHandle

__all__ = ["Connection", "Cursor", "Explain", "Job", "JobInfo", "JobStatus", "LightJob", "QueryStats", "ResolvedPlan", "TableHandle", "connect"]
