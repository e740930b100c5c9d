"""openapi.json is the contract: requests that it allows and forbids are answered as it says, and never by a bug."""

from __future__ import annotations

import re

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import just

from secateur.cluster import Cluster
from secateur.server import HttpServer

# What a text of SQL means, the form cannot say: texts that it allows may be refused. An answer of DELETE is that a
# statement was cancelled, and it is known on.
NOT_OF_THE_FORM = {"positive_data_acceptance", "use_after_free", "ensure_resource_availability"}


@pytest.mark.slow
def test_requests_are_answered_as_the_document_says(cluster: Cluster, server: HttpServer) -> None:
    import schemathesis  # takes a second to load, in every process that collects this file
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    headers = {"Authorization": f"Bearer {cluster.token}"}
    schema = schemathesis.openapi.from_url(server.url + "/openapi.json", headers=headers)
    excluded = CHECKS.get_by_names(NOT_OF_THE_FORM)
    labels = []
    for found in schema.get_all_operations():
        operation = found.ok()
        labels.append(operation.label)

        @settings(
            max_examples=3,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), is_data=just(True))
        def ask(case: schemathesis.Case, is_data: bool) -> None:
            """Nobody waits here for statements."""
            for given_values in (case.body, case.query):
                if isinstance(given_values, dict) and not isinstance(given_values.get("wait", True), bool):
                    given_values["wait"] = 0
            case.call_and_validate(headers=headers, excluded_checks=excluded, timeout=60)

        ask()
    assert {"POST /api/v1/statements", "GET /api/v1/jobs/{job_id}/logs"} <= set(labels)


def test_the_page_lists_every_operation_and_loads_nothing(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    page = http.get("/docs").text
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"{method.upper()} {path}" in page
    assert not re.search(r"<(script|link|img|iframe)\b|https?://|@import", page)


def test_every_operation_says_what_it_does(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["summary"]
            assert operation["description"]
            assert "default" in operation["responses"]
            assert operation.get("security", document["security"]) == [{"token": []}]
