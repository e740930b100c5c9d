"""Operations that only members or the controller need are refused to everybody else, and every operation says whose it
is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

import secateur
from secateur.cluster import Cluster
from secateur.cluster.callers import CONTROLLER_CALLERS, MEMBER_CALLERS, NOTICE_CALLERS
from secateur.cluster.request_args import CONTROLLER_ARGS, MEMBER_ARGS
from secateur.engine.exchange import OPS
from secateur.errors import AuthenticationError
from secateur.wire import Channel, Role

CLIENTS_MAY = {
    "controller": {
        "change", "change_whole", "catalog", "explain", "hello", "job_cancel", "job_new", "job_plan", "job_wait", "jobs",
        "load_abort", "load_publish", "make_ranges", "prepare", "table_statistics", "table_versions", "topology",
    },
    "member": {
        "change", "change_returned", "execute", "hello", "job_metrics", "job_resolve", "job_result", "job_stop", "job_submit",
        "owners", "profile", "result_close", "result_next", "stage", "write",
    },
}  # fmt: skip


@pytest.fixture
def own() -> Iterator[Cluster]:
    with secateur.start(members=1, runtime="embedded") as cluster:
        yield cluster


def test_every_operation_says_who_may_ask_for_it(own: Cluster) -> None:
    runtime = own._runtime
    assert set(runtime._controller._ops) == CONTROLLER_CALLERS.keys()  # type: ignore[attr-defined]
    assert set(runtime._members["m1"]._ops) == MEMBER_CALLERS.keys()  # type: ignore[attr-defined]
    assert NOTICE_CALLERS.keys() == OPS
    assert CONTROLLER_ARGS.keys() <= CONTROLLER_CALLERS.keys()
    assert MEMBER_ARGS.keys() <= MEMBER_CALLERS.keys()


def test_clients_may_ask_what_statements_loads_and_jobs_need_and_nothing_else() -> None:
    assert {op for op, callers in CONTROLLER_CALLERS.items() if Role.CLIENT in callers} == CLIENTS_MAY["controller"]
    assert {op for op, callers in MEMBER_CALLERS.items() if Role.CLIENT in callers} == CLIENTS_MAY["member"]
    assert not any(Role.CLIENT in callers for callers in NOTICE_CALLERS.values())


@pytest.mark.parametrize("op", sorted(CONTROLLER_CALLERS.keys() - CLIENTS_MAY["controller"]))
def test_the_controller_refuses_to_clients_what_is_not_theirs(cluster: Cluster, op: str) -> None:
    refused(cluster, cluster.address.removeprefix("secateur://"), op)


@pytest.mark.parametrize("op", sorted(MEMBER_CALLERS.keys() - CLIENTS_MAY["member"]))
def test_a_member_refuses_to_clients_what_is_not_theirs(cluster: Cluster, op: str) -> None:
    refused(cluster, cluster.members()[0].address, op)


def refused(cluster: Cluster, address: str, op: str) -> None:
    host, _, port = address.rpartition(":")
    with closing(Channel(host, int(port), token=cluster._settings.token)) as channel:
        with pytest.raises(
            AuthenticationError, match=f"'{op}' may be asked by .* of this cluster only, .* as client; nothing was done"
        ):
            channel.request(op)
        channel.request("hello")  # the connection is usable


def test_the_secret_of_a_cluster_is_its_own_and_is_not_shown() -> None:
    one, other = (secateur.cluster.settings.ClusterSettings() for _ in range(2))
    assert len(one.secret) >= 32
    assert one.secret != other.secret
    assert one.secret not in repr(one)
