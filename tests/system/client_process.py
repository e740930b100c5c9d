"""Runs code as a client in a process of its own, which does not know the tables that members in this process have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from secateur.cluster import Cluster

_BEGIN = """
import json, os, sys
import secateur
from secateur.errors import NoRangeError
from secateur.partitioning.schemes import scheme as schemes

def known():
    '''The number of ranges that this process knows of the scheme of which it knows most.'''
    return max((len(book.scheme.partial.ranges) for book in schemes._books.values()), default=0)

out = {}
with secateur.connect(os.environ["ADDRESS"]) as conn:
"""


def in_client(cluster: Cluster, code: str) -> dict[str, Any]:
    """Run code that has a connection ``conn`` and puts what it finds out into ``out``; returns that."""
    indented = "".join(f"    {line}\n" for line in code.strip().splitlines())
    found = subprocess.run(
        [sys.executable, "-c", f"{_BEGIN}{indented}print(json.dumps(out))"],
        env={**os.environ, "ADDRESS": cluster.address, "SECATEUR_TOKEN": cluster.token or ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    result: dict[str, Any] = json.loads(found.stdout)
    return result
