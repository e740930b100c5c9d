"""Requests and replies about external tables."""

from __future__ import annotations

from typing import Any

import msgspec

from secateur.partitioning.pruning.row_predicate import OpenPredicate
from secateur.partitioning.tables.external_table import ExternalTable
from secateur.partitioning.tables.table import Column
from secateur.protocol.hello import Versions
from secateur.protocol.message import Message


class RegisterExternalTable(Message[Versions], frozen=True):
    """Make an external table.

    Attributes:
        name: Its name.
        connector: Its encoded connector.
        or_replace: Whether it may replace an external table of that name.
    """

    name: str
    connector: bytes
    or_replace: bool = False


class ConnectorDescription(msgspec.Struct, frozen=True):
    """The table that a connector offers, in its own words.

    Attributes:
        columns: The columns of its table.
        title: Itself in words.
        settled: The encoded connector that the table is to keep; None for the one that was asked.
    """

    columns: tuple[Column, ...]
    title: str
    settled: bytes | None = None


class DescribeConnector(Message[ConnectorDescription], frozen=True):
    """Ask a connector for the columns of the table of that name."""

    table: str
    connector: bytes


class ExternalTableAnswer(msgspec.Struct, frozen=True):
    """An external table."""

    table: ExternalTable


class GetExternalTable(Message[ExternalTableAnswer], frozen=True):
    """An external table by its id, for a member that is about to read it."""

    table_id: int


class ListedPartitions(msgspec.Struct, frozen=True):
    """The partitions of an external table at one moment.

    Attributes:
        total: How many it has.
        kept: How many can hold a row that is needed; None where that depends on parameters that are not known.
        keys: The keys of the first of these, as text.
        columns: The columns whose values its partitions declare.
    """

    total: int
    kept: int | None
    keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


class ListExternalPartitions(Message[ListedPartitions], frozen=True):
    """List the partitions of an external table, for EXPLAIN.

    Attributes:
        table: The table.
        predicate: The rows that the statement needs.
        params: The values of its parameters; None where they are not known.
    """

    table: ExternalTable
    predicate: OpenPredicate
    params: list[Any] | None
