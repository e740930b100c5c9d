"""Tools for tests of processors and DAGs: a conformance kit for processors, and an in-memory cluster for whole jobs."""

from __future__ import annotations

from secateur.testing.local_cluster import LocalCluster
from secateur.testing.verify import verify_processor

__all__ = ["LocalCluster", "verify_processor"]
