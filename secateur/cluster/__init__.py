"""A running cluster: the controller, the members, and the runtimes that host them."""

from __future__ import annotations

from secateur.cluster.cluster import Cluster, MemberInfo, attach, start
from secateur.cluster.settings import DEFAULTS, ClusterSettings

__all__ = ["DEFAULTS", "Cluster", "ClusterSettings", "MemberInfo", "attach", "start"]
