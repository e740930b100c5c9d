"""DAGs on the wire: data always, code only where it is allowed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import structs

from secateur.dag import (
    DAG,
    EdgeConfig,
    FactorySupplier,
    FrozenDAG,
    Processor,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    ReplicatedMetaSupplier,
    between,
    from_,
)
from secateur.dag.codec import (
    EncodedCode,
    EncodedDag,
    EncodedData,
    EncodedReplication,
    carries_code,
    decode_supplier,
    encode_supplier,
    portable,
)
from secateur.dag.edge import UnmatchedRows
from secateur.errors import DagError, ProtocolError, SerializationError
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode, pack, unpack

SCHEME = build_scheme(
    hashes=[HashComponent(("a",), 4)], types={"a": parse_type("BIGINT")}, primary_key=("a",), table="t"
)


@portable("test-codec-source")
@dataclass(eq=False)
class PortableSource(ProcessorMetaSupplier):
    value: int

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {}


class Emptied(Processor):
    """Another processor."""


def round_trip(dag: DAG, *, allow_code: bool) -> Any:
    return FrozenDAG.decoded(dag.freeze().encoded(allow_code=allow_code), allow_code=allow_code)


def data(value: object) -> EncodedData:
    """A source of this file with a value that need not be one."""
    return EncodedData("test-codec-source", __name__, pack({"value": value}))


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
        dag.freeze().encoded(allow_code=False)
    encoded = dag.freeze().encoded(allow_code=True)
    with pytest.raises(SerializationError, match=r"vertex 'mine' carries code"):
        FrozenDAG.decoded(encoded, allow_code=False)
    assert [v.name for v in FrozenDAG.decoded(encoded, allow_code=True).vertices] == ["mine"]


@pytest.mark.parametrize(
    ("source", "is_code"),
    [
        pytest.param(lambda: Processor(), True, id="a function"),
        pytest.param(ReplicatedMetaSupplier(FactorySupplier(Processor)), True, id="a supplier without a kind"),
        pytest.param(PortableSource(1), False, id="data"),
    ],
)
def test_whether_a_dag_carries_code_is_known_without_loading_it(source: Any, is_code: bool) -> None:
    dag = DAG()
    dag.new_vertex("a", source)
    assert carries_code(dag.freeze().encoded()) is is_code


def test_a_function_that_cannot_be_pickled_is_named_by_its_vertex() -> None:
    lock = threading.Lock()
    dag = DAG()
    dag.new_vertex("locked", lambda: Processor() if lock.locked() else Emptied())
    with pytest.raises(SerializationError, match=r"vertex 'locked': its functions cannot be pickled \(TypeError"):
        dag.freeze().encoded(allow_code=True)


def test_code_that_does_not_load_is_named_by_its_vertex() -> None:
    with pytest.raises(SerializationError, match=r"vertex 'v': its code does not load"):
        decode_supplier(EncodedCode(b"\x80garbage"), ProcessorMetaSupplier, allow_code=True, vertex="v")


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        pytest.param(EncodedData("nobody", "", b""), "unknown kind 'nobody'", id="unknown kind"),
        pytest.param(
            EncodedData("test-codec-source", "", pack({})),
            "vertex 'v': its 'test-codec-source' cannot be read: .*missing required field `value`",
            id="no value",
        ),
        pytest.param(data("x"), r"Expected `int`, got `str` - at `\$\.value`", id="a value of another type"),
        pytest.param(EncodedData("test-codec-source", "", b"\xc1"), "cannot be read", id="no bytes of ours"),
    ],
)
def test_data_that_are_not_ours_are_a_protocol_error(encoded: EncodedData, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        decode_supplier(encoded, ProcessorMetaSupplier, allow_code=True, vertex="v")


def test_a_supplier_of_another_class_than_is_wanted_is_refused() -> None:
    with pytest.raises(DagError, match="carries a PortableSource, not a ProcessorSupplier"):
        decode_supplier(data(1), ProcessorSupplier, allow_code=False, vertex="v")
    replicated = EncodedReplication(data(1), None, works_without_input=False, one_in_job=False)
    with pytest.raises(DagError, match="carries a PortableSource, not a ProcessorSupplier"):
        decode_supplier(replicated, ProcessorMetaSupplier, allow_code=False, vertex="v")


def test_a_kind_of_ours_is_found_by_a_process_that_has_not_imported_it() -> None:
    code = (
        "from secateur.dag.codec import EncodedData, decode_supplier; from secateur.dag import ProcessorMetaSupplier;"
        "from secateur.protocol import pack; import sys; assert 'secateur.connectors.table' not in sys.modules;"
        "fields = {'name': 't', 'keys': None, 'wanted_partitions': None, 'columns': None};"
        "sent = EncodedData('table-source', 'secateur.connectors.table', pack(fields));"
        "print(type(decode_supplier(sent, ProcessorMetaSupplier, allow_code=False, vertex='v')).__name__)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        == "TableSource\n"
    )


@pytest.mark.parametrize("module", ["this", "secateur.nowhere", "secateur.dag.__init__", "secateur/dag", ""])
def test_a_name_on_the_wire_loads_nothing_but_our_modules(module: str) -> None:
    with pytest.raises(ProtocolError, match="unknown kind 'nobody'"):
        decode_supplier(EncodedData("nobody", module, b""), ProcessorMetaSupplier, allow_code=False, vertex="v")
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"vertices": [1], "edges": []}, id="a vertex that is none"),
        pytest.param({"vertices": [], "edges": [["a"]]}, id="an edge that is none"),
        pytest.param({"vertices": [["a", None, {"type": "magic"}]], "edges": []}, id="an unknown form of supplier"),
    ],
)
def test_a_dag_that_is_not_ours_is_a_protocol_error(fields: dict[str, Any]) -> None:
    for read in (lambda sent: FrozenDAG.decoded(sent, allow_code=True), carries_code):
        with pytest.raises(ProtocolError, match="EncodedDag cannot be read"):
            read(pack(fields))


def two_vertices() -> EncodedDag:
    dag = DAG()
    dag.new_vertex("a", PortableSource(1))
    dag.new_vertex("b", PortableSource(1))
    dag.edge(between("a", "b"))
    return decode(dag.freeze().encoded(allow_code=False), EncodedDag)


def test_a_decoded_dag_is_validated_again() -> None:
    sent = two_vertices()
    with pytest.raises(DagError, match="'nobody', which is not in the DAG"):
        FrozenDAG.decoded(encode(structs.replace(sent, edges=(between("nobody", "b"),))), allow_code=False)


def test_an_unknown_routing_is_a_protocol_error() -> None:
    fields = unpack(encode(two_vertices()))
    fields["edges"][0][4] = ["teleport"]
    with pytest.raises(ProtocolError, match=r"Invalid value 'teleport' - at `\$\.edges\[0\]\[4\]\[0\]`"):
        FrozenDAG.decoded(pack(fields), allow_code=False)


def test_a_kind_has_one_class() -> None:
    with pytest.raises(ValueError, match="taken by PortableSource"):
        portable("test-codec-source")(type("Other", (PortableSource,), {}))
    with pytest.raises(TypeError, match="Processor is not a dataclass"):
        portable("test-codec-processor")(Processor)


def test_a_subclass_of_a_portable_class_does_not_travel_as_its_parent() -> None:
    class Child(PortableSource):
        pass

    with pytest.raises(SerializationError, match="Child is code"):
        encode_supplier(Child(1), allow_code=False, vertex="v")
