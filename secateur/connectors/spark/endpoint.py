"""The address and token of the cluster, from arguments, the Spark session or the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession

from secateur.client.address import parse_address
from secateur.client.connect import ADDRESS_VARIABLE, token_for
from secateur.client.session import Session
from secateur.errors import InterfaceError

__all__ = ["Endpoint"]

_ADDRESS_CONF: Final = "spark.secateur.address"
_TOKEN_CONF: Final = "spark.secateur.token"
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A cluster, reached through its controller. Travels to Spark's processes, which connect for themselves.

    Attributes:
        address: ``secateur://host:port``.
        token: The secret of the cluster, if it has one.
    """

    address: str
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, spark: SparkSession, address: str | None, token: str | None) -> Endpoint:
        """Return the endpoint that the arguments name, or else the one set in the Spark session or the environment.

        Raises:
            InterfaceError: No address is given anywhere, or the given one is invalid.
        """
        found = address or spark.conf.get(_ADDRESS_CONF, None) or os.environ.get(ADDRESS_VARIABLE)
        if not found:
            raise InterfaceError(
                "the address of the cluster is missing: pass address=cluster.address, or set"
                f" {_ADDRESS_CONF} in the Spark session or {ADDRESS_VARIABLE} in the environment"
            )
        return cls(found, token_for(*parse_address(found), token or spark.conf.get(_TOKEN_CONF, None)))

    @contextmanager
    def session(self, *, timeout_s: float = _TIMEOUT_S) -> Iterator[Session]:
        """A connection for as long as the block runs; an answer may take ``timeout_s`` seconds.

        Raises:
            UnreachableError: The cluster cannot be reached at the address.
            AuthenticationError: The token is missing or wrong.
        """
        host, port = parse_address(self.address)
        session = Session(host, port, token=self.token, timeout_s=timeout_s)
        try:
            yield session
        finally:
            session.close()
