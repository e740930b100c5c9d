"""The engine: runs jobs on members, with execution plans, queues, exchange, tasklets and kernels.

Import from its modules; nothing is loaded here, so that reading a plan stays cheap.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "failure": ["lost_member"],
    "scheduler": ["Scheduler"],
    "threads": [
        "ElasticThreads",
        "NICENESS",
        "call_with_low_priority",
        "in_thread",
        "lower_priority",
    ],
}

__all__, __getattr__ = exports(__name__, _FILES)
