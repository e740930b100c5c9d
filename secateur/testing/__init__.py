"""Tools for tests: conformance kits for processors and connectors, and an in-memory cluster for whole jobs."""

from __future__ import annotations

from secateur.testing.local_cluster import LocalCluster
from secateur.testing.verify import verify_processor
from secateur.testing.verify_connector import verify_connector

__all__ = ["LocalCluster", "verify_connector", "verify_processor"]
