from __future__ import annotations

from typing import Any

import pytest

from secateur.client.connect import parse_address
from secateur.errors import InterfaceError


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param("secateur://127.0.0.1:7077", ("127.0.0.1", 7077), id="ipv4"),
        pytest.param("secateur://db.example:1/", ("db.example", 1), id="name, slash"),
        pytest.param("secateur://[::1]:65535", ("::1", 65535), id="ipv6"),
        pytest.param("SECATEUR://Host:80", ("host", 80), id="case"),
    ],
)
def test_addresses_that_read(address: str, expected: tuple[str, int]) -> None:
    assert parse_address(address) == expected


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        pytest.param("127.0.0.1:7077", "does not start with secateur://", id="no scheme"),
        pytest.param("http://127.0.0.1:7077", "does not start with secateur://", id="other scheme"),
        pytest.param("secateur:127.0.0.1", "does not start with secateur://", id="no slashes"),
        pytest.param("secateur://127.0.0.1", "has no port", id="no port"),
        pytest.param("secateur://127.0.0.1:0", "has no port", id="port 0"),
        pytest.param("secateur://:7077", "has no host", id="no host"),
        pytest.param("secateur://h:70770", "does not parse", id="port too large"),
        pytest.param("secateur://h:x", "does not parse", id="port no number"),
        pytest.param("secateur://[::1:7", "does not parse", id="open bracket"),
        pytest.param("secateur://h:1/db", "has text after the port", id="path"),
        pytest.param("", "does not start with secateur://", id="empty"),
        pytest.param(None, "is a NoneType", id="none"),
    ],
)
def test_addresses_that_do_not(address: Any, reason: str) -> None:
    with pytest.raises(InterfaceError, match=reason) as caught:
        parse_address(address)
    assert "use the form secateur://host:port" in str(caught.value)


def test_a_secret_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InterfaceError, match="pass the secret as token=") as caught:
        parse_address("secateur://user:hunter2@h:1")
    assert "hunter2" not in str(caught.value)
