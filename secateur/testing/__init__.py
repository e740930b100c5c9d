"""Tools for the tests of processors and DAGs: a conformance kit for one processor, and a cluster in memory for whole
jobs.
"""

from __future__ import annotations

from secateur.testing.local_cluster import LocalCluster
from secateur.testing.verify import verify_processor

__all__ = ["LocalCluster", "verify_processor"]
