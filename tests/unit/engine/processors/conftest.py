"""Tables for jobs of processors."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from secateur.partitioning.build import build_scheme
from secateur.partitioning.scheme import HashComponent
from secateur.partitioning.table import Column, TableDef
from secateur.partitioning.types import type_of_arrow


@pytest.fixture
def table_of() -> Callable[[pa.Table, str], TableDef]:
    """Describes a table ``rows`` with the columns of some rows, by its primary key: 7 partitions."""

    def describe(rows: pa.Table, key: str) -> TableDef:
        types = {field.name: type_of_arrow(field.type) for field in rows.schema}
        scheme = build_scheme(hashes=[HashComponent((key,), 7)], types=types, primary_key=(key,), table="rows")
        return TableDef("rows", 1, tuple(Column(name, kind, nullable=name != key) for name, kind in types.items()), (key,), scheme, backups=0)

    return describe
