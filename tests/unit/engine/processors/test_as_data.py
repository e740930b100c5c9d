"""Processors without functions travel as data: to clusters that accept no code, and in plans of SQL statements."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.dag import ProcessorMetaSupplier, ProcessorSupplier, ReplicatedMetaSupplier, meta_supplier_of
from secateur.dag.codec import decode_supplier, encode_supplier
from secateur.processors import (
    accumulate,
    aggregate,
    avg_of,
    combine,
    count_distinct_of,
    count_rows,
    desc,
    distinct,
    hash_join,
    key_by,
    list_of,
    merge,
    sort,
    sort_runs,
    sum_of,
    top_n,
    union,
)
from secateur.testing import verify_processor

ROWS = pa.table({"k": ["b", "a", "b", None], "v": [1, 2, 1, 3]})

STAGES = [
    pytest.param(sort("k", desc("v", nulls_first=True)), id="sort"),
    pytest.param(sort_runs("k", desc("v")), id="sort_runs"),
    pytest.param(top_n(2, desc("v")), id="top_n"),
    pytest.param(distinct("k", "v", bytes_max=12_345), id="distinct"),
    pytest.param(aggregate(["k"], {"n": count_rows(), "mean": avg_of("v")}, schema=ROWS.schema), id="aggregate"),
    pytest.param(aggregate([], {"all": list_of("v")}), id="aggregate without keys"),
    pytest.param(accumulate(["k"], {"kinds": count_distinct_of("v")}), id="accumulate"),
    pytest.param(combine(["k"], {"v": sum_of("v")}, bytes_max=123_456), id="combine"),
    pytest.param(hash_join({"k": "k"}, "semi", build_schema=ROWS.schema, build_suffix="2"), id="hash_join"),
    pytest.param(merge("v", inputs=2), id="merge"),
    pytest.param(key_by({"key": "v"}, keep=False), id="key_by"),
    pytest.param(union(), id="union"),
    pytest.param(union(ROWS.schema), id="union with schema"),
]


@pytest.mark.parametrize("stage", STAGES)
def test_a_supplier_of_data_comes_back_the_same(stage: ProcessorSupplier | ProcessorMetaSupplier) -> None:
    meta = meta_supplier_of(stage)
    encoded = encode_supplier(meta, allow_code=False, vertex="v")
    decoded = decode_supplier(encoded, ProcessorMetaSupplier, allow_code=False, vertex="v")
    assert encode_supplier(decoded, allow_code=False, vertex="v") == encoded
    verify_processor(decoded, [ROWS.sort_by("v"), ROWS.sort_by("v")], priorities=[1, 0])


def test_what_a_replicated_meta_supplier_says_travels_too() -> None:
    meta = ReplicatedMetaSupplier(sort("k"), preferred_local_parallelism=3, works_without_input=True, one_in_job=True)
    encoded = encode_supplier(meta, allow_code=False, vertex="v")
    decoded = decode_supplier(encoded, ProcessorMetaSupplier, allow_code=False, vertex="v")
    assert isinstance(decoded, ReplicatedMetaSupplier)
    assert (decoded.preferred_local_parallelism, decoded.works_without_input, decoded.one_in_job) == (3, True, True)
    assert decoded.placement() == meta.placement()
