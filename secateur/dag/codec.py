"""Suppliers as data or as code, and the DAG that holds them, as they travel.

A supplier is sent as *data* (the name of a registered kind and the fields of its dataclass) or as *code* (cloudpickle).
SQL jobs are data only. Code runs in the process that unpickles it, so it is made and read only where the cluster allows
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import is_dataclass
from importlib import import_module
from io import BytesIO
from types import CodeType
from typing import Any, Final, TypeVar

import cloudpickle
import msgspec

from secateur.dag.edge import Edge
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier, ReplicatedMetaSupplier
from secateur.errors import DagError, ProtocolError, SerializationError
from secateur.protocol.codec import decode, encode

S = TypeVar("S", bound=type)
K = TypeVar("K", ProcessorSupplier, ProcessorMetaSupplier)

_CLASSES: Final[dict[str, type]] = {}
_KINDS: Final[dict[type, str]] = {}
_OWN_MODULE: Final = re.compile(r"secateur(\.[a-z_]+)+")


class EncodedData(msgspec.Struct, frozen=True, tag="data"):
    """A supplier of a registered kind: the module of that, and the dataclass as the codec of messages writes it."""

    kind: str
    module: str
    fields: bytes


class EncodedCode(msgspec.Struct, frozen=True, tag="code"):
    """A supplier as cloudpickle writes it."""

    pickle: bytes


class EncodedReplication(msgspec.Struct, frozen=True, tag="replicated"):
    """A :class:`~secateur.dag.supplier.ReplicatedMetaSupplier`: its supplier, which may be code, and its attributes."""

    supplier: EncodedData | EncodedCode
    preferred_local_parallelism: int | None
    works_without_input: bool
    one_in_job: bool


EncodedSupplier = EncodedData | EncodedCode | EncodedReplication


class EncodedVertex(msgspec.Struct, frozen=True, array_like=True):
    """A :class:`~secateur.dag.vertex.Vertex`."""

    name: str
    local_parallelism: int | None
    supplier: EncodedSupplier


class EncodedDag(msgspec.Struct, frozen=True):
    """A :class:`~secateur.dag.dag.FrozenDAG`: its vertices in topological order, and its edges."""

    vertices: tuple[EncodedVertex, ...]
    edges: tuple[Edge, ...]


def portable(kind: str) -> Callable[[S], S]:
    """Class decorator: suppliers of exactly this dataclass travel as data under the name ``kind``.

    Each field travels as its type says; what ``init`` assigns to other attributes does not.
    """

    def register(cls: S) -> S:
        if not is_dataclass(cls):
            raise TypeError(f"{cls.__name__} is not a dataclass: only declared fields travel as data")
        if _CLASSES.setdefault(kind, cls) is not cls:
            raise ValueError(f"the kind {kind!r} is taken by {_CLASSES[kind].__name__}")
        _KINDS[cls] = kind
        return cls

    return register


def encode_supplier(
    supplier: ProcessorMetaSupplier | ProcessorSupplier, *, allow_code: bool, vertex: str
) -> EncodedSupplier:
    """A supplier or meta-supplier in the form in which it travels.

    It may travel as code, if that is allowed, when it is no data. Messages name the vertex.

    Raises:
        SerializationError: It is not data and may not be code, or cannot be pickled.
    """
    if type(supplier) is ReplicatedMetaSupplier:
        return EncodedReplication(
            encode_portable(supplier.supplier, allow_code=allow_code, owner=f"vertex {vertex!r}"),
            supplier.preferred_local_parallelism,
            supplier.works_without_input,
            supplier.one_in_job,
        )
    return encode_portable(supplier, allow_code=allow_code, owner=f"vertex {vertex!r}")


def encode_portable(value: Any, *, allow_code: bool, owner: str) -> EncodedData | EncodedCode:
    """An object of a registered kind as data, any other as code, if that is allowed. Messages name the owner.

    Raises:
        SerializationError: It is not data and may not be code, or cannot be pickled.
    """
    kind = _KINDS.get(type(value))
    if kind is not None:
        return EncodedData(kind, type(value).__module__, encode(value))
    if not allow_code:
        raise SerializationError(
            f"{owner}: {type(value).__name__} is code, and this cluster accepts no code; start it with"
            " allow_code=True and a token"
        )
    try:
        return EncodedCode(_pickled(value))
    except Exception as error:  # whatever a user's __reduce__ raises
        raise SerializationError(
            f"{owner}: its functions cannot be pickled ({type(error).__name__}: {error}); pass in what they"
            " need as plain values"
        ) from error


def decode_supplier(encoded: EncodedSupplier, wanted: type[K], *, allow_code: bool, vertex: str) -> K:
    """The supplier or meta-supplier that :func:`encode_supplier` was given.

    Raises:
        SerializationError: It is code and code is not allowed, or it does not load here.
        ProtocolError: It is of a kind that is not known here, or its fields cannot be read.
        DagError: It is none of the class that is wanted.
    """
    found: Any
    match encoded:
        case EncodedReplication(inner, parallelism, works_without_input, one_in_job):
            found = ReplicatedMetaSupplier(
                decode_supplier(inner, ProcessorSupplier, allow_code=allow_code, vertex=vertex),
                preferred_local_parallelism=parallelism,
                works_without_input=works_without_input,
                one_in_job=one_in_job,
            )
        case EncodedCode() | EncodedData():
            found = decode_portable(encoded, allow_code=allow_code, owner=f"vertex {vertex!r}")
    if not isinstance(found, wanted):
        raise DagError(f"vertex {vertex!r} carries a {type(found).__name__}, not a {wanted.__name__}")
    return found


def decode_portable(encoded: EncodedData | EncodedCode, *, allow_code: bool, owner: str) -> Any:
    """The object that :func:`encode_portable` was given.

    Raises:
        SerializationError: It is code and code is not allowed, or it does not load here.
        ProtocolError: It is of a kind that is not known here, or its fields cannot be read.
    """
    match encoded:
        case EncodedCode(pickle):
            return _load_code(pickle, allow_code, owner)
        case EncodedData(kind, _, fields):
            try:
                return decode(fields, _class_of(encoded, owner))
            except ProtocolError as error:
                raise ProtocolError(f"{owner}: its {kind!r} cannot be read: {error}") from error


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Keeps the names of files, which cloudpickle replaces from 3.1.3 on: tracebacks of jobs show the user's lines."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not CodeType:
            return super().reducer_override(obj)
        make, arguments = self.dispatch_table[CodeType](obj)
        return make, tuple(obj.co_filename if value == "<dynamic-code>" else value for value in arguments)


def _pickled(value: Any) -> bytes:
    written = BytesIO()
    _Pickler(written).dump(value)
    return written.getvalue()


def _load_code(pickle: bytes, allow_code: bool, owner: str) -> Any:
    if not allow_code:
        raise SerializationError(
            f"{owner} carries code, and this member accepts none; start the cluster with allow_code=True and a token"
        )
    try:
        return cloudpickle.loads(pickle)
    except Exception as error:  # whatever the import of the user's modules raises
        raise SerializationError(
            f"{owner}: its code does not load on the member ({type(error).__name__}: {error}); is its module"
            " installed there?"
        ) from error


def _class_of(encoded: EncodedData, owner: str) -> type:
    """The class of a kind, whose module may not have been imported here yet.

    Only modules of this package are loaded: a name from the wire must not cause other imports.
    """
    if encoded.kind not in _CLASSES and _OWN_MODULE.fullmatch(encoded.module):
        with suppress(ImportError):
            import_module(encoded.module)
    if encoded.kind not in _CLASSES:
        raise ProtocolError(f"{owner} has the unknown kind {encoded.kind!r}; do all members run the same version?")
    return _CLASSES[encoded.kind]


def carries_code(data: bytes | memoryview) -> bool:
    """Whether the bytes of a DAG carry code; nothing is unpickled.

    Raises:
        ProtocolError: The bytes are not a DAG.
        DagError: It has an edge that is not valid.
    """
    suppliers = [vertex.supplier for vertex in decode(data, EncodedDag).vertices]
    return any(
        isinstance(found.supplier if isinstance(found, EncodedReplication) else found, EncodedCode)
        for found in suppliers
    )
