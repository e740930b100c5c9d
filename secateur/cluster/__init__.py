"""A running cluster: controller, members, and the runtimes that give them a place to live."""

from __future__ import annotations

from secateur.cluster.cluster import Cluster, MemberInfo, start
from secateur.cluster.settings import DEFAULTS, ClusterSettings

__all__ = ["DEFAULTS", "Cluster", "ClusterSettings", "MemberInfo", "start"]
