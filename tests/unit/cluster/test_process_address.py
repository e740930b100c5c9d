from __future__ import annotations

import socket

import pytest

import secateur
from secateur.cluster.sockets import ProcessAddress, address_at, machine_address


@pytest.mark.parametrize(
    ("host", "bind_host", "advertised_host"),
    [(None, "10.0.0.7", "10.0.0.7"), ("0.0.0.0", "0.0.0.0", "10.0.0.7"), ("10.1.0.7", "10.1.0.7", "10.1.0.7")],
)
def test_others_are_told_an_address_that_leads_here(host: str | None, bind_host: str, advertised_host: str) -> None:
    assert address_at("10.0.0.7", host) == ProcessAddress(bind_host, advertised_host, "10.0.0.7")


def test_every_interface_is_advertised_as_the_address_of_the_machine() -> None:
    with secateur.start(members=1, runtime="embedded", host="0.0.0.0") as cluster, cluster.connect() as conn:
        assert cluster.address.startswith(f"secateur://{machine_address()}:")
        ((address, node),) = conn.execute("SELECT address, node FROM secateur.members").fetchall()
        assert address.startswith(f"{machine_address()}:")
        assert node == machine_address()
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=10).close()
