"""One table of a connection on an event loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, overload

import pyarrow as pa

from secateur.aio.proxy import Proxy, awaited
from secateur.client.loads import table_handle
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.statistics import TableStatistics
from secateur.partitioning.tables.table import Column


class AsyncTableHandle(Proxy[table_handle.TableHandle]):
    """One table, by :meth:`AsyncConnection.table`. As :class:`secateur.TableHandle`, with methods that are awaited.

    Each ``get`` has a row as it is then, ``put`` writes one, and ``load`` many: a load reads its data in a thread.
    """

    @property
    def name(self) -> str:
        """The name of the table, as it was written when it was created."""
        return self._blocking.name

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return self._blocking.schema

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return self._blocking.columns

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The names of the columns of the key."""
        return self._blocking.primary_key

    @property
    def scheme(self) -> PartitionScheme:
        """How the table is partitioned."""
        return self._blocking.scheme

    @overload
    async def get(self, key: Mapping[str, Any], /) -> dict[str, Any] | None: ...

    @overload
    async def get(self, key: Any, /) -> tuple[Any, ...] | None: ...

    @overload
    async def get(self, /, **columns: Any) -> dict[str, Any] | None: ...

    async def get(self, key: Any = None, /, **columns: Any) -> tuple[Any, ...] | dict[str, Any] | None:
        """The row with a primary key. See :meth:`secateur.TableHandle.get`."""
        return await self._waits.run(lambda: self._blocking.get(key, **columns))

    async def get_many(self, keys: Iterable[Any]) -> list[Any]:
        """The rows with some primary keys, None for those that are not there.

        See :meth:`secateur.TableHandle.get_many`.
        """
        return await self._waits.run(self._blocking.get_many, keys)

    put = awaited(table_handle.TableHandle.put)
    put_many = awaited(table_handle.TableHandle.put_many)
    delete = awaited(table_handle.TableHandle.delete)
    delete_many = awaited(table_handle.TableHandle.delete_many)
    load = awaited(table_handle.TableHandle.load)
    owner_of = awaited(table_handle.TableHandle.owner_of)
    partition_of = awaited(table_handle.TableHandle.partition_of)

    async def statistics(self) -> TableStatistics:
        """As :meth:`secateur.TableHandle.statistics`."""
        return await self._waits.run(self._blocking.statistics)
