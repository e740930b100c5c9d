"""DAGs on the wire: data always, code only where it is allowed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from secateur.dag import DAG, EdgeConfig, Processor, ProcessorMetaSupplier, ProcessorSupplier, between, from_
from secateur.dag.codec import decode_dag, decode_part, encode_dag, encode_part, portable, registered_kind
from secateur.dag.edge import UnmatchedRows
from secateur.errors import DagError, ProtocolError, SerializationError
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.types import parse_type
from secateur.protocol import pack, unpack

SCHEME = build_scheme(
    hashes=[HashComponent(("a",), 4)], types={"a": parse_type("BIGINT")}, primary_key=("a",), table="t"
)


@portable("test-codec-source")
class PortableSource(ProcessorMetaSupplier):
    def __init__(self, value: int) -> None:
        self.value = value

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {}

    def to_spec(self) -> Any:
        return [self.value]

    @classmethod
    def from_spec(cls, spec: Any) -> PortableSource:
        (value,) = spec
        return cls(value)


class Emptied(Processor):
    """Another processor."""


def round_trip(dag: DAG, *, allow_code: bool) -> Any:
    return decode_dag(unpack(pack(encode_dag(dag.freeze(), allow_code=allow_code))), allow_code=allow_code)


def test_a_dag_of_data_travels_without_code() -> None:
    dag = DAG()
    for name in "abcdefg":
        dag.new_vertex(name, PortableSource(7), 3 if name == "a" else None)
    dag.edge(from_("a", 0).to("g", 0).partitioned("x").distributed().with_config(EdgeConfig(3, 4, 5)))
    dag.edge(from_("a", 1).to("g", 1).partitioned("x", scheme=SCHEME, unmatched=UnmatchedRows.DROP))
    dag.edge(from_("a", 2).to("g", 7).partitioned(table="t"))
    dag.edge(from_("b").to("g", 2).broadcast().with_priority(2)).edge(from_("c").to("g", 3).isolated()).edge(
        from_("d").to("g", 4).all_to_one("k").distribute_to("m9")
    )
    dag.edge(from_("e").to("g", 5).fan_out().distributed()).edge(from_("f").to("g", 6))
    decoded = round_trip(dag, allow_code=False)
    assert decoded.edges == dag.freeze().edges
    assert [(v.name, v.local_parallelism, v.meta_supplier.value) for v in decoded.vertices] == [
        (v.name, v.local_parallelism, 7) for v in dag.freeze().vertices
    ]


def test_code_travels_only_where_it_is_allowed() -> None:
    dag = DAG()
    dag.new_vertex("mine", lambda: Processor())
    with pytest.raises(SerializationError, match=r"vertex 'mine'.*allow_code=True"):
        encode_dag(dag.freeze(), allow_code=False)
    encoded = encode_dag(dag.freeze(), allow_code=True)
    with pytest.raises(SerializationError, match=r"vertex 'mine' carries code"):
        decode_dag(encoded, allow_code=False)
    assert [v.name for v in decode_dag(encoded, allow_code=True).vertices] == ["mine"]


def test_a_function_that_cannot_be_pickled_is_named_by_its_vertex() -> None:
    lock = threading.Lock()
    dag = DAG()
    dag.new_vertex("locked", lambda: Processor() if lock.locked() else Emptied())
    with pytest.raises(SerializationError, match=r"vertex 'locked': its functions cannot be pickled \(TypeError"):
        encode_dag(dag.freeze(), allow_code=True)


def test_code_that_does_not_load_is_named_by_its_vertex() -> None:
    with pytest.raises(SerializationError, match=r"vertex 'v': its code does not load"):
        decode_part({"code": b"\x80garbage"}, allow_code=True, vertex="v")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        pytest.param({"kind": "nobody", "spec": None}, "unknown kind 'nobody'", id="unknown kind"),
        pytest.param({}, "unknown kind", id="no kind"),
        pytest.param(
            {"kind": "test-codec-source"}, "specification of its 'test-codec-source' cannot be read", id="no spec"
        ),
        pytest.param({"kind": "test-codec-source", "spec": [1, 2]}, "cannot be read", id="wrong spec"),
    ],
)
def test_data_that_are_not_ours_are_a_protocol_error(part: dict[str, Any], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        decode_part(part, allow_code=True, vertex="v")


def test_a_kind_of_ours_is_found_by_a_process_that_has_not_imported_it() -> None:
    code = (
        "from secateur.dag.codec import decode_part; import sys; assert 'secateur.connectors.table' not in sys.modules;"
        "part = {'kind': 'table-source', 'module': 'secateur.connectors.table', 'spec': ['t', None, None, None]};"
        "print(type(decode_part(part, allow_code=False, vertex='v')).__name__)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        == "TableSource\n"
    )


@pytest.mark.parametrize("module", ["this", "secateur.nowhere", "secateur.dag.__init__", "secateur/dag", ""])
def test_a_name_on_the_wire_loads_nothing_but_our_modules(module: str) -> None:
    with pytest.raises(ProtocolError, match="unknown kind 'nobody'"):
        decode_part({"kind": "nobody", "module": module, "spec": None}, allow_code=False, vertex="v")
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"vertices": [1], "edges": []}, id="a vertex that is none"),
        pytest.param({"vertices": [], "edges": [["a"]]}, id="an edge that is none"),
    ],
)
def test_a_dag_that_is_not_ours_is_a_protocol_error(data: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        decode_dag(data, allow_code=True)


def test_a_decoded_dag_is_validated_again() -> None:
    dag = DAG()
    dag.new_vertex("a", PortableSource(1))
    dag.new_vertex("b", PortableSource(1))
    dag.edge(between("a", "b"))
    encoded = encode_dag(dag.freeze(), allow_code=False)
    encoded["edges"][0][0] = "nobody"
    with pytest.raises(DagError, match="'nobody', which is not in the DAG"):
        decode_dag(encoded, allow_code=False)


def test_an_unknown_routing_is_a_protocol_error() -> None:
    dag = DAG()
    dag.new_vertex("a", PortableSource(1))
    dag.new_vertex("b", PortableSource(1))
    dag.edge(between("a", "b"))
    encoded = encode_dag(dag.freeze(), allow_code=False)
    encoded["edges"][0][4] = ["teleport"]
    with pytest.raises(ProtocolError, match=r"unknown routing \['teleport'\]"):
        decode_dag(encoded, allow_code=False)


def test_a_kind_has_one_class() -> None:
    assert registered_kind(PortableSource) == "test-codec-source"
    assert registered_kind(Processor) is None
    with pytest.raises(ValueError, match="taken by PortableSource"):
        portable("test-codec-source")(type("Other", (PortableSource,), {}))


def test_a_subclass_of_a_portable_class_does_not_travel_as_its_parent() -> None:
    class Child(PortableSource):
        pass

    with pytest.raises(SerializationError, match="Child is code"):
        encode_part(Child(1), allow_code=False, vertex="v")
