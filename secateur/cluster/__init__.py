"""A running cluster: the controller, the members, and the runtimes that host them.

What starts and stops a cluster is imported at its first use: the process of a member needs neither the client nor the
controller, which take it most of a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports

if TYPE_CHECKING:
    from secateur.cluster.cluster import Cluster, attach, start
    from secateur.cluster.settings import DEFAULTS, ClusterSettings
    from secateur.protocol.membership import MemberInfo

__all__ = ["DEFAULTS", "Cluster", "ClusterSettings", "MemberInfo", "attach", "start"]

_FILES = {
    "cluster": ["Cluster", "MemberInfo", "attach", "start"],
    "settings": ["DEFAULTS", "ClusterSettings"],
}

_, __getattr__ = exports(__name__, _FILES)
