"""Encodes DAGs and suppliers as plain data for the wire.

A supplier is sent as *data* (the name of a registered kind and its specification) or as *code* (cloudpickle). SQL jobs
are data only. Code runs in the process that unpickles it, so it is made and read only where the cluster allows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, Protocol, TypeVar, assert_never

import cloudpickle

from secateur.dag.dag import DAG, FrozenDAG
from secateur.dag.edge import (
    AllToOne,
    Broadcast,
    Distributed,
    DistributedTo,
    Edge,
    EdgeConfig,
    FanOut,
    Isolated,
    Local,
    Partitioned,
    Reach,
    Routing,
    Unicast,
    UnmatchedRows,
)
from secateur.dag.supplier import ProcessorMetaSupplier, ReplicatedMetaSupplier
from secateur.dag.vertex import Vertex
from secateur.errors import DagError, Error, ProtocolError, SerializationError
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.protocol.codec import typed_parts

__all__ = [
    "Portable",
    "carries_code",
    "decode_dag",
    "decode_part",
    "decode_routing",
    "encode_dag",
    "encode_part",
    "encode_routing",
    "portable",
    "registered_kind",
]


class Portable(Protocol):
    """A supplier that can be written as plain data."""

    def to_spec(self) -> Any:
        """Plain data that msgpack carries, from which :meth:`from_spec` makes an equal object."""

    @classmethod
    def from_spec(cls, spec: Any) -> Any:
        """The object that ``to_spec`` described."""


P = TypeVar("P", bound=type[Portable])

_CLASSES: Final[dict[str, type[Portable]]] = {}
_KINDS: Final[dict[type, str]] = {}
_OWN_MODULE: Final = re.compile(r"secateur(\.[a-z_]+)+")


def portable(kind: str) -> Callable[[P], P]:
    """Class decorator: suppliers of exactly this class travel as data under the name ``kind``."""

    def register(cls: P) -> P:
        if _CLASSES.setdefault(kind, cls) is not cls:
            raise ValueError(f"the kind {kind!r} is taken by {_CLASSES[kind].__name__}")
        _KINDS[cls] = kind
        return cls

    return register


def registered_kind(cls: type) -> str | None:
    """The kind under which suppliers of a class travel as data, None when they only travel as code."""
    return _KINDS.get(cls)


def encode_part(part: Any, *, allow_code: bool, vertex: str) -> dict[str, Any]:
    """A supplier or meta-supplier as plain data.

    Args:
        part: The object.
        allow_code: Whether it may travel as code when it is no data.
        vertex: Name of its vertex, for messages.

    Raises:
        SerializationError: It is not data and may not be code, or cannot be pickled.
    """
    if type(part) is ReplicatedMetaSupplier:
        inner = encode_part(part.supplier, allow_code=allow_code, vertex=vertex)
        return {"replicated": [inner, part.preferred_local_parallelism, part.works_without_input, part.one_in_job]}
    kind = _KINDS.get(type(part))
    if kind is not None:
        return {"kind": kind, "module": type(part).__module__, "spec": part.to_spec()}
    if not allow_code:
        raise SerializationError(
            f"vertex {vertex!r}: {type(part).__name__} is code, and this cluster accepts no code; start it with"
            " allow_code=True and a token"
        )
    try:
        return {"code": cloudpickle.dumps(part)}
    except Exception as error:  # whatever a user's __reduce__ raises
        raise SerializationError(
            f"vertex {vertex!r}: its functions cannot be pickled ({type(error).__name__}: {error}); pass in what they"
            " need as plain values"
        ) from error


def decode_part(data: Mapping[str, Any], *, allow_code: bool, vertex: str) -> Any:
    """The supplier or meta-supplier that :func:`encode_part` described.

    Raises:
        SerializationError: It is code and code is not allowed, or it does not load here.
        ProtocolError: The data are none of ours.
    """
    replicated = data.get("replicated")
    if replicated is not None:
        inner, parallelism, works_without_input, one_in_job = replicated
        supplier = decode_part(inner, allow_code=allow_code, vertex=vertex)
        return ReplicatedMetaSupplier(
            supplier,
            preferred_local_parallelism=parallelism,
            works_without_input=works_without_input,
            one_in_job=one_in_job,
        )
    code = data.get("code")
    if code is not None:
        if not allow_code:
            raise SerializationError(
                f"vertex {vertex!r} carries code, and this member accepts none; start the cluster with allow_code=True"
                " and a token"
            )
        try:
            return cloudpickle.loads(code)
        except Exception as error:  # whatever the import of the user's modules raises
            raise SerializationError(
                f"vertex {vertex!r}: its code does not load on the member ({type(error).__name__}: {error}); is its"
                " module installed there?"
            ) from error
    cls = _CLASSES.get(str(data.get("kind"))) or _load(data)
    if cls is None:
        raise ProtocolError(
            f"vertex {vertex!r} has the unknown kind {data.get('kind')!r}; do all members run the same version?"
        )
    try:
        return cls.from_spec(data["spec"])
    except Error:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(
            f"vertex {vertex!r}: the specification of its {data['kind']!r} cannot be read ({type(error).__name__}:"
            f" {error})"
        ) from error


def _load(data: Mapping[str, Any]) -> type[Portable] | None:
    """Return the class of a kind whose module has not been imported here yet.

    Only modules of this package are loaded: a name from the wire must not cause other imports.
    """
    module = str(data.get("module"))
    if _OWN_MODULE.fullmatch(module):
        with suppress(ImportError):
            import_module(module)
    return _CLASSES.get(str(data.get("kind")))


def encode_dag(dag: FrozenDAG, *, allow_code: bool) -> dict[str, Any]:
    """A DAG as plain data; :func:`decode_dag` reads it back.

    Raises:
        SerializationError: A vertex cannot travel; the message names it.
    """
    return {
        "vertices": [
            [v.name, v.local_parallelism, encode_part(v.meta_supplier, allow_code=allow_code, vertex=v.name)]
            for v in dag.vertices
        ],
        "edges": [_encode_edge(edge) for edge in dag.edges],
    }


def decode_dag(data: Mapping[str, Any], *, allow_code: bool) -> FrozenDAG:
    """The DAG that :func:`encode_dag` described, validated again.

    Raises:
        SerializationError: A vertex carries code that is not allowed or does not load.
        DagError: The DAG is not valid.
        ProtocolError: The data are none of ours.
    """
    dag = DAG()
    try:
        for name, local_parallelism, part in data["vertices"]:
            meta_supplier = decode_part(part, allow_code=allow_code, vertex=name)
            if not isinstance(meta_supplier, ProcessorMetaSupplier):
                raise DagError(f"vertex {name!r} carries a {type(meta_supplier).__name__}, not a ProcessorMetaSupplier")
            dag.vertex(Vertex(name, meta_supplier, local_parallelism))
        for edge in data["edges"]:
            dag.edge(_decode_edge(edge))
    except Error:
        raise
    except (LookupError, TypeError, ValueError) as error:
        raise ProtocolError(f"a DAG arrived that cannot be read ({type(error).__name__}: {error})") from error
    return dag.freeze()


def carries_code(data: Any) -> bool:
    """Whether a DAG on the wire carries code; nothing is unpickled.

    For malformed data, :func:`decode_dag` has the more detailed error.

    Raises:
        ProtocolError: The data are not a DAG.
    """
    try:
        return any(_is_code(part) for _, _, part in data["vertices"])
    except (LookupError, TypeError, ValueError) as error:
        raise ProtocolError(f"a DAG arrived that cannot be read ({type(error).__name__}: {error})") from error


def _is_code(part: Mapping[str, Any]) -> bool:
    while "replicated" in part:
        part = part["replicated"][0]
    return "code" in part


def _encode_edge(edge: Edge) -> list[Any]:
    config = edge.config
    return [
        edge.source,
        edge.destination,
        edge.source_ordinal,
        edge.destination_ordinal,
        encode_routing(edge.routing),
        _encode_reach(edge.reach),
        edge.priority,
        [config.queue_batches_max, config.queue_bytes_max, config.window_bytes_max],
    ]


def _decode_edge(data: list[Any]) -> Edge:
    source, destination, source_ordinal, destination_ordinal, routing, reach, priority, config = data
    return Edge(
        source,
        destination,
        source_ordinal,
        destination_ordinal,
        decode_routing(routing),
        _decode_reach(reach),
        priority,
        EdgeConfig(*config),
    )


def encode_routing(routing: Routing) -> list[Any]:
    """A routing as plain data; :func:`decode_routing` reads it back."""
    match routing:
        case Partitioned(columns, scheme, table, unmatched):
            return ["partitioned", list(columns), scheme, table, unmatched.value]
        case AllToOne(key, apart):
            return ["all-to-one", key, apart]
        case Unicast():
            return ["unicast"]
        case Broadcast():
            return ["broadcast"]
        case Isolated():
            return ["isolated"]
        case FanOut():
            return ["fan-out"]
        case _:
            assert_never(routing)


def decode_routing(data: list[Any]) -> Routing:
    """The routing that :func:`encode_routing` described.

    Raises:
        ProtocolError: It is none of ours.
    """
    match data:
        case ["partitioned", columns, scheme, table, unmatched]:
            return Partitioned(
                tuple(columns),
                typed_parts(scheme, PartitionScheme | None),
                table,
                UnmatchedRows(unmatched),
            )
        case ["all-to-one", key, apart]:
            return AllToOne(key, apart)
        case ["unicast"]:
            return Unicast()
        case ["broadcast"]:
            return Broadcast()
        case ["isolated"]:
            return Isolated()
        case ["fan-out"]:
            return FanOut()
        case _:
            raise ProtocolError(f"an edge has the unknown routing {data!r}; do all members run the same version?")


def _encode_reach(reach: Reach) -> list[Any]:
    match reach:
        case Local():
            return ["local"]
        case Distributed():
            return ["distributed"]
        case DistributedTo(member):
            return ["to", member]
        case _:
            assert_never(reach)


def _decode_reach(data: list[Any]) -> Reach:
    match data:
        case ["local"]:
            return Local()
        case ["distributed"]:
            return Distributed()
        case ["to", member]:
            return DistributedTo(member)
        case _:
            raise ProtocolError(f"an edge has the unknown reach {data!r}; do all members run the same version?")
