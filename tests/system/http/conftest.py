"""One HTTP server over the shared cluster, and a client that has its token."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from secateur.cluster import Cluster
from secateur.server import HttpServer


@pytest.fixture(scope="session")
def server(cluster: Cluster) -> Iterator[HttpServer]:
    with HttpServer(cluster.address) as running:
        yield running


@pytest.fixture(scope="session")
def http(cluster: Cluster, server: HttpServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=90) as client:
        yield client
