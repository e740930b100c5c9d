"""Tools for tests: conformance kits for processors and connectors, and an in-memory cluster for whole jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports

if TYPE_CHECKING:
    from secateur.testing.connector_verification import verify_connector
    from secateur.testing.local_cluster import LocalCluster
    from secateur.testing.verify import verify_processor

__all__ = ["LocalCluster", "verify_connector", "verify_processor"]

_FILES = {
    "connector_verification": ["verify_connector"],
    "local_cluster": ["LocalCluster"],
    "verify": ["verify_processor"],
}

_, __getattr__ = exports(__name__, _FILES)
