"""A running cluster: the controller, the members, and the runtimes that host them.

What starts and stops a cluster is imported at its first use: the process of a member needs neither the client nor the
controller, which take it most of a second to import.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from secateur.cluster.settings import DEFAULTS, ClusterSettings

if TYPE_CHECKING:
    from secateur.cluster.cluster import Cluster, MemberInfo, attach, start

__all__ = ["DEFAULTS", "Cluster", "ClusterSettings", "MemberInfo", "attach", "start"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'secateur.cluster' has no attribute {name!r}")
    return getattr(importlib.import_module("secateur.cluster.cluster"), name)
