"""The control of what Ray costs: an empty call of an idle actor, from the process that has started Ray."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import ray

from benchmarks.peers.caller import Call, serve_calls
from benchmarks.peers.statements import Statement


class _Idle:
    def nothing(self) -> None:
        return None


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
        self._nothing = ray.remote(num_cpus=0)(_Idle).remote().nothing

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        return None

    def call(self, statement: Statement) -> Call:
        return lambda _: ray.get(self._nothing.remote()) or []

    def close(self) -> None:
        ray.shutdown()


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    serve_calls(_Caller())
