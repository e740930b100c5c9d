"""A cluster over three Ray nodes, each on a machine with an address of its own; a link is cut, and a machine lost.

The machines are network namespaces, which only root may make: elsewhere the test is skipped.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from namespaces import Machines, machines, why_not
from several_hosts_driver import KEYS, MACHINES, MEMBERS, ROWS

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

PORT = 6379
DRIVER = Path(__file__).with_name("several_hosts_driver.py")
ANSWERS = {
    "pruned": [[7]],
    "all": [[ROWS, ROWS * (ROWS - 1) // 2]],
    "join": [[KEYS // 2, (KEYS // 2) * (KEYS // 2 - 1) // 2]],
    "job": KEYS,
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machines, dict[str, str]]]:
    if reason := why_not():
        pytest.skip(f"several hosts are NOT tested here: {reason}")
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(24), "RAY_USAGE_STATS_ENABLED": "0"}
    # The paths of Ray's sockets have to be short.
    directory = Path("/tmp") / f"sct-{secrets.token_hex(3)}"
    try:
        with machines(MACHINES) as made:
            start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=2"]
            start.append("--object-store-memory=100000000")
            head = ["--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={directory}"]
            first = made.start(0, *start, f"--node-ip-address={made.address(0)}", *head, **secret)
            assert first.stdout is not None
            for line in first.stdout:
                if "will now block" in line:
                    break
            for number in range(1, MACHINES):
                join = [f"--address={made.address(0)}:{PORT}", f"--node-ip-address={made.address(number)}"]
                made.start(number, *start, *join, own_folder=str(directory), **secret)
            yield made, secret
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def said(driver: Popen[str], key: str) -> dict[str, Any]:
    """The next document of the driver that has a key."""
    assert driver.stdout is not None
    lines = []
    for line in driver.stdout:
        lines.append(line)
        if line.startswith("{") and key in (document := json.loads(line)):
            return dict(document)
    raise AssertionError("".join(lines)[-5000:])


def test_a_cut_link_and_a_lost_machine_lose_no_row(hosts: tuple[Machines, dict[str, str]]) -> None:
    made, secret = hosts
    addresses = [made.address(number) for number in range(MACHINES)]
    spark = "spark" if shutil.which("java") else "no spark"
    driver = made.start(
        0,
        sys.executable,
        str(DRIVER),
        f"{addresses[0]}:{PORT}",
        addresses[0],
        spark,
        SPARK_LOCAL_IP="127.0.0.1",
        **secret,
    )

    def go_on() -> None:
        assert driver.stdin is not None
        driver.stdin.write("\n")
        driver.stdin.flush()

    begun = said(driver, "address")
    assert begun["address"].startswith(f"secateur://{addresses[0]}:")
    assert len(begun["members"]) == MEMBERS
    assert {address.partition(":")[0] for address in begun["members"]} == set(addresses)
    assert begun["nodes"] == [addresses] * len(begun["nodes"]), "the copies of a partition are on different nodes"
    assert begun["answers"] == ANSWERS
    assert begun["spark"] in (None, 1_000)

    for do, act in [("cut", made.cut), ("join", made.join)]:
        assert said(driver, "do") == {"do": do}
        act(2)
        go_on()
    assert said(driver, "after") == {"after": "cut", "answers": ANSWERS}
    assert said(driver, "do") == {"do": "kill"}
    made.kill(1)
    go_on()
    assert said(driver, "after") == {"after": "kill", "answers": ANSWERS}

    ended = said(driver, "acknowledged")
    assert min(ended["acknowledged"]) > 100
    assert ended["missing"] == ended["wrong"] == ended["not_retryable"] == []
    assert ended["longest_s"] < 15.0
    print(ended)
    assert driver.wait(60) == 0
