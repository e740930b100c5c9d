"""Each request that clients may make stands in the one table of roles."""

from __future__ import annotations

import pytest

from secateur.protocol import Operation, Role, TokenRole

READS = {
    "BOUND_CHANGES",
    "CLOSE_RESULT",
    "CLOSE_SNAPSHOT",
    "EXECUTE",
    "EXECUTE_FIRST_STAGE",
    "EXECUTE_MANY",
    "EXPLAIN",
    "GET_JOB_METRICS",
    "GET_JOB_PLAN",
    "GET_OWNERS",
    "GET_OWNER_PAGES",
    "GET_RANGES",
    "GET_ROWS",
    "GET_TABLES",
    "GET_TABLE_VERSIONS",
    "GET_TOPOLOGY",
    "HELLO",
    "LIST_JOBS",
    "NEXT_ROWS",
    "OPEN_SNAPSHOT",
    "PREPARE",
    "PROFILE",
    "READ_CHANGES",
    "READ_SNAPSHOT",
    "REFRESH_STATISTICS",
    "WAIT_FOR_JOB",
}


def test_a_reader_may_make_the_requests_that_change_nothing() -> None:
    assert {operation.name for operation in Operation if operation.role is TokenRole.READ} == READS


def test_what_clients_may_not_request_needs_the_highest_role() -> None:
    assert {operation.role for operation in Operation if Role.CLIENT not in operation.callers} == {TokenRole.CODE}
    assert max(TokenRole) is TokenRole.CODE


@pytest.mark.parametrize("role", TokenRole)
def test_roles_have_a_title(role: TokenRole) -> None:
    assert role.title == role.name.lower()
