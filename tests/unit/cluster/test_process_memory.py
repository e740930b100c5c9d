"""Arrays of a megabyte are made in memory that is there."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

ARRAYS = """
import resource
import numpy as np
from secateur.cluster.runtimes.member_actor import keep_freed_memory

def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        arrays = [np.zeros(1 << 17) + 1 for _ in range(4)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
new_pages()
print(new_pages())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_memory_of_arrays_is_kept() -> None:
    found = subprocess.run([sys.executable, "-c", ARRAYS], check=True, capture_output=True, text=True)
    assert int(found.stdout) < 2_000  # fresh pages for each would be 50,000
