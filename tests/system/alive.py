"""Which members serve, whatever a busy machine makes the controller suspect."""

from __future__ import annotations

from secateur.cluster import Cluster

__all__ = ["alive"]


def alive(cluster: Cluster) -> list[str]:
    """The members that serve, in order; one of them may be suspected for a moment."""
    return [member.id for member in cluster.members() if member.is_alive]
