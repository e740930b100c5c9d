"""What members answer to requests that only processes of the cluster make."""

from __future__ import annotations

from contextlib import closing
from typing import TypeVar

from secateur.cluster import Cluster
from secateur.protocol import GetMemberStats, Message, Role
from secateur.wire import Channel, hello

__all__ = ["ask_members", "executions"]

R = TypeVar("R")


def ask_members(cluster: Cluster, message: Message[R], *, only_living: bool = False) -> dict[str, R]:
    """What each member answers, by its id."""
    answers = {}
    for member in cluster.members():
        if only_living and not member.is_alive:
            continue
        host, _, port = member.address.rpartition(":")
        identity = cluster._settings.identity(Role.CONTROLLER)
        with closing(Channel(host, int(port), hello(cluster.token, identity=identity))) as channel:
            answers[member.id] = channel.request(message).message
    return answers


def executions(cluster: Cluster, *, only_living: bool = False) -> int:
    """The executions that members are busy with: statements, results that are being read, and jobs."""
    stats = ask_members(cluster, GetMemberStats(), only_living=only_living)
    return sum(member.open_results + member.running_jobs for member in stats.values())
