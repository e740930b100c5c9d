"""Operations that only members or the controller need are refused to everybody else, and each has a handler."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from raw_frames import RawConnection

import secateur
from secateur.cluster import Cluster, ClusterSettings
from secateur.errors import AuthenticationError
from secateur.protocol import (
    CONTROLLER_OPERATIONS,
    MEMBER_OPERATIONS,
    Hello,
    Operation,
    OperationBase,
    Role,
    Server,
    encode,
)

CLIENTS_MAY = {
    "HELLO",
    "GET_TOPOLOGY",
    "GET_TABLES",
    "GET_TABLE_VERSIONS",
    "REFRESH_STATISTICS",
    "PREPARE",
    "EXPLAIN",
    "DROP_UNUSED_TABLE",
    "MAKE_RANGES",
    "PUBLISH_LOAD",
    "ABORT_LOAD",
    "CHANGE_SEVERAL_PARTITIONS",
    "CHANGE_TABLE",
    "READ_CHANGES",
    "BOUND_CHANGES",
    "NEW_JOB",
    "WAIT_FOR_JOB",
    "CANCEL_JOB",
    "GET_JOB_PLAN",
    "LIST_JOBS",
    "REGISTER_EXTERNAL_TABLE",
    "EXECUTE",
    "EXECUTE_FIRST_STAGE",
    "EXECUTE_MANY",
    "PROFILE",
    "NEXT_ROWS",
    "CLOSE_RESULT",
    "SUBMIT_JOB",
    "RESOLVE_JOB",
    "STOP_JOB",
    "GET_JOB_METRICS",
    "GET_JOB_RESULT",
    "CHANGE_ONE_PARTITION",
    "CHANGE_MANY",
    "GET_RETURNED_ROWS",
    "WRITE_ROWS",
    "WRITE_MANY",
    "STAGE_ROWS",
    "GET_OWNERS",
    "GET_OWNER_PAGES",
    "GET_RANGES",
    "GET_JOB_LOGS",
    "GET_ROWS",
    "OPEN_SNAPSHOT",
    "READ_SNAPSHOT",
    "CLOSE_SNAPSHOT",
    "CREATE_TOKEN",
    "LIST_TOKENS",
    "REVOKE_TOKEN",
}
REFUSED = [operation for operation in Operation if Role.CLIENT not in operation.callers and operation.reply is not None]


@pytest.fixture
def own() -> Iterator[Cluster]:
    with secateur.start(members=1, runtime="embedded") as cluster:
        yield cluster


def test_every_operation_has_a_handler_at_its_server_and_types_of_its_own(own: Cluster) -> None:
    """What a new operation needs: a line in the enumeration with its request, which names its reply, and a handler."""
    runtime = own._runtime
    handlers = {
        Server.CONTROLLER: (CONTROLLER_OPERATIONS, runtime._controller.handlers),  # type: ignore[attr-defined]
        Server.MEMBER: (MEMBER_OPERATIONS, runtime._members["m1"].handlers),  # type: ignore[attr-defined]
    }
    for known, handled in handlers.values():
        assert set(handled) == {operation for operation in known.values() if operation.reply is not None}
    codes = [operation.code for operation in Operation]
    assert len(set(codes)) == len(codes)
    assert len({operation.request for operation in Operation}) == len(codes)


@pytest.mark.smoke
def test_clients_may_ask_what_statements_loads_and_jobs_need_and_nothing_else() -> None:
    assert {operation.name for operation in Operation if Role.CLIENT in operation.callers} == CLIENTS_MAY


@pytest.mark.parametrize("operation", REFUSED, ids=lambda operation: operation.title)
@pytest.mark.sampled(one_in=3)
@pytest.mark.smoke
def test_what_is_not_theirs_is_refused_to_clients(cluster: Cluster, operation: OperationBase) -> None:
    servers = {
        Server.CONTROLLER: [cluster.address],
        Server.MEMBER: [cluster.members()[0].address],
        Server.ANY: [cluster.address, cluster.members()[0].address],
    }
    for address in servers[operation.at]:
        with RawConnection(cluster, address) as connection:
            refused = f"'{operation.title}' may be asked by .* of this cluster only, .* as client; nothing was done"
            with pytest.raises(AuthenticationError, match=refused):
                connection.ask(operation, b"\x80")
            connection.ask(Operation.HELLO, encode(Hello()))  # the connection is usable


def test_the_secret_of_a_cluster_is_its_own_and_is_not_shown() -> None:
    one, other = (ClusterSettings() for _ in range(2))
    assert len(one.secret) >= 32
    assert one.secret != other.secret
    assert one.secret not in repr(one)
