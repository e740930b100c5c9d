"""The texts of JSON files: each value as it is written, so that its column decides what it is.

DuckDB finds the objects of a file, but reads a number with a fraction as a DOUBLE, and writes it anew for a VARCHAR.
So the objects are taken apart here. A text is without its quotes; numbers, and lists and objects in a column that is
not nested, are as the file has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from secateur.client.copy.csv_texts import lines_of
from secateur.client.copy.text_values import text_form
from secateur.errors import DataError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.protocol.codec import json_decoder

if TYPE_CHECKING:
    import duckdb


class FloatText(str):
    """A number with a fraction or an exponent, as it is written."""

    __slots__ = ()


_BATCH_ROWS: Final = 10_000
_VALUES: Final = json_decoder(list[dict[str, Any]], float_hook=FloatText)
_VALUE: Final = json_decoder(Any, float_hook=FloatText)
_OBJECT: Final = json_decoder(dict[str, msgspec.Raw])
_LIST: Final = json_decoder(list[msgspec.Raw])
_TEXT: Final = json_decoder(str)
_SCALARS: Final[dict[type, Callable[[Any], str | None]]] = {
    type(None): lambda _: None,
    bool: lambda value: "true" if value else "false",
    int: str,
    str: lambda value: value,
    FloatText: lambda value: value,
}
_NOT_FINITE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?\b(?:Infinity|NaN|inf|nan)\b')
"""DuckDB's spellings of the DOUBLEs that JSON does not have; also matches quoted texts, in which they mean nothing."""
_NOT_FINITE_TEXTS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_TOKEN: Final = re.compile(r'(?P<name>"(?:[^"\\]|\\.)*")(?P<colon>\s*:\s*)?|[{}\[\]]')
_BETWEEN: Final = re.compile(r"[\s,\[\]]*")
_END: Final = "\n"
_NAMELESS: Final = ""
"""The name of a value that is no object."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some objects of the files: the number of the first one, their texts, and their values."""

    start: int
    texts: list[str]
    objects: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class JsonObjects:
    """The objects of files, which DuckDB has put into the table ``objects``.

    Attributes:
        connection: The database that has that table.
        place: The place of an object by its number from 0, for messages, or of the value of a name in it.
        lenient: NULL in place of what is no object of values.
        are_records: Whether each is an object of columns; else it is the value of the only column, of whatever name.
            None looks at each.
    """

    connection: duckdb.DuckDBPyConnection
    place: Callable[[int, str | None], str]
    lenient: bool = False
    are_records: bool | None = True

    def names(self) -> dict[str, set[type]]:
        """The names of all objects in the order in which they come, with the types of their values in Python."""
        found: dict[str, set[type]] = {}
        spelled: dict[str, str] = {}
        for batch in self._batches():
            for name, value in (item for object_ in batch.objects for item in object_.items()):
                first = spelled.setdefault(name.casefold(), name)
                is_float = type(value) is str and value in _NOT_FINITE_TEXTS
                found.setdefault(first, set()).add(FloatText if is_float else type(value))
        return found

    def put_texts(self, columns: Sequence[Column]) -> tuple[set[int], set[str]]:
        """Put the texts of columns into the table ``texts``, as ``c0``, ``c1``, ...

        Args:
            columns: Names, matched without regard to case, and types.

        Returns:
            The positions of those columns that objects have, and other names that they have.

        Raises:
            DataError: Something is no object, has a name twice, or has a value that is nested in another way.
        """
        forms = [text_form(column.type) for column in columns]
        listed = ", ".join(f"c{number} {form}" for number, form in enumerate(forms))
        self.connection.execute(f"CREATE TABLE texts ({listed})")
        folded = [column.name.casefold() for column in columns]
        found: set[int] = set()
        others: set[str] = set()
        for batch in self._batches():
            spellings: dict[str, list[str]] = {}
            for name in sorted(set[str]().union(*batch.objects)):
                spellings.setdefault(name.casefold(), []).append(name)
            if self.are_records is not True and _NAMELESS in spellings:
                spellings.setdefault(folded[0], []).extend(spellings.pop(_NAMELESS))
            found.update(number for number, key in enumerate(folded) if key in spellings)
            others.update(name for key in spellings.keys() - set(folded) for name in spellings[key])
            arrays = [
                self._texts(batch, spellings.get(key, []), column.type, form.arrow)
                for key, column, form in zip(folded, columns, forms, strict=True)
            ]
            self.connection.register("batch", pa.table(dict(zip(map(str, range(len(arrays))), arrays, strict=True))))
            self.connection.execute("INSERT INTO texts FROM batch")
            self.connection.unregister("batch")
        return found, others

    def first_with(self, name: str) -> int:
        """The number of the first object with a name."""
        return next(
            number
            for batch in self._batches()
            for number, object_ in enumerate(batch.objects, batch.start)
            if name in object_
        )

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse an object that does not have all of these names.

        Raises:
            DataError: There is one; the message has the first.
        """
        for batch in self._batches():
            lengths = list(map(len, batch.objects))
            if min(lengths) < len(names):
                number = next(number for number, length in enumerate(lengths) if length < len(names))
                given = {name.casefold() for name in batch.objects[number]}
                lacking = [name for name in names if name.casefold() not in given]
                raise DataError(
                    f"{self.place(batch.start + number, None)}: the object lacks {', '.join(map(repr, lacking))}, which"
                    " others have: load objects that have other columns apart, or pass missing='null' (--missing"
                    " null) to have NULL there",
                    column=lacking[0],
                    row=batch.start + number,
                )

    def _texts(self, batch: _Batch, names: Sequence[str], type_: SqlType, form: pa.DataType) -> pa.Array:
        """The texts of one column, whose name is spelled in one of some ways."""
        if len(names) > 1:
            for number, object_ in enumerate(batch.objects, batch.start):
                if len(object_.keys() & set(names)) > 1:
                    raise DataError(
                        f"{self.place(number, None)}: the object has {names[0]!r} and {names[1]!r}: give one"
                    )
        elif not names:
            return pa.nulls(len(batch.objects), form)
        elif not type_.parts and type_.kind is not TypeKind.JSON:
            values = [object_.get(names[0]) for object_ in batch.objects]
            try:
                return pa.array(values, form)
            except (pa.ArrowException, TypeError):  # numbers, or what is nested
                if {type(value) for value in values} <= _SCALARS.keys():
                    return pa.array([_SCALARS[type(value)](value) for value in values], form)
        return pa.array(self._raw_texts(batch, names, _reader(type_)), form)

    def _raw_texts(self, batch: _Batch, names: Sequence[str], read: Callable[[msgspec.Raw], Any]) -> Iterator[Any]:
        for number, text in enumerate(batch.texts, batch.start):
            object_ = _OBJECT.decode(text) if self._is_record(text) else {_NAMELESS: msgspec.Raw(text)}
            given = next((object_[name] for name in names if name in object_), None)
            try:
                yield None if given is None else read(given)
            except (msgspec.DecodeError, _UnknownFieldError) as error:
                if not self.lenient:
                    shown = bytes(given or b"")[:80].decode(errors="replace")
                    raise DataError(f"{self.place(number, names[0])}: column {names[0]}: {shown}: {error}") from error
                yield None

    def _batches(self) -> Iterator[_Batch]:
        start = 0
        cursor = self.connection.cursor()
        for batch in cursor.sql("SELECT json::VARCHAR, len(json_keys(json)) FROM objects").to_arrow_reader(_BATCH_ROWS):
            texts, counts = (column.to_pylist() for column in batch.columns)
            try:
                objects = _VALUES.decode(f"[{','.join(texts)}]")
            except (msgspec.DecodeError, TypeError):
                texts = [
                    "{}" if text is None else self._in_json(number, text) for number, text in enumerate(texts, start)
                ]
                objects = [self._object(text) for text in texts]
            for number, (object_, count) in enumerate(zip(objects, counts, strict=True), start):
                if count is not None and len(object_) < count and not self.lenient:
                    raise DataError(f"{self.place(number, None)}: the object has a name twice: give each once")
            yield _Batch(start, texts, objects)
            start += batch.num_rows

    def _object(self, text: str) -> dict[str, Any]:
        value: Any = _VALUE.decode(text)
        return dict(value) if self._is_record(text) else {_NAMELESS: value}

    def _is_record(self, text: str) -> bool:
        return self.are_records is True or (self.are_records is None and text.lstrip().startswith("{"))

    def _in_json(self, number: int, text: str) -> str:
        """A text that is an object of JSON: without the numbers that only DuckDB has."""
        for tried in (text, _NOT_FINITE.sub(_as_text, text)):
            try:
                if isinstance(_VALUE.decode(tried), dict) or not self._is_record(tried):
                    return tried
                problem = "it is none"
            except msgspec.DecodeError as error:
                problem = str(error)
        if self.lenient:
            return "{}"
        raise DataError(f"{self.place(number, None)}: {text[:80]!r} is no object with columns: {problem}")


def _as_text(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else f'"{found[0]}"'


class _UnknownFieldError(Exception):
    """An object has a field that the STRUCT lacks."""


def _reader(type_: SqlType) -> Callable[[msgspec.Raw], Any]:
    """The function that takes the texts of a value of a type, in the form of :func:`text_form`."""
    parts = [_reader(part) for part in type_.parts]
    match type_.kind:
        case TypeKind.LIST | TypeKind.ARRAY:
            return lambda raw: None if _is_null(raw) else [parts[0](element) for element in _LIST.decode(raw)]
        case TypeKind.MAP:
            return lambda raw: None if _is_null(raw) else [(k, parts[1](v)) for k, v in _OBJECT.decode(raw).items()]
        case TypeKind.STRUCT:
            fields = {
                field.name.casefold(): (field.name, read) for field, read in zip(type_.fields, parts, strict=True)
            }

            def read_struct(raw: msgspec.Raw) -> dict[str, Any] | None:
                if _is_null(raw):
                    return None
                found: dict[str, Any] = {}
                for name, value in _OBJECT.decode(raw).items():
                    if name.casefold() not in fields:
                        raise _UnknownFieldError(f"{type_} has no field {name!r}")
                    field, read = fields[name.casefold()]
                    found[field] = read(value)
                return found

            return read_struct
        case TypeKind.JSON:
            return lambda raw: None if _is_null(raw) else bytes(raw).decode()
        case _:
            return _text


def _is_null(raw: msgspec.Raw) -> bool:
    return bytes(raw) == b"null"


def _text(raw: msgspec.Raw) -> str | None:
    if bytes(raw)[:1] == b'"':
        return _TEXT.decode(raw)
    return None if _is_null(raw) else bytes(raw).decode()


def place_in_json(path: Path, number: int, name: str | None) -> str:
    """The line and the column, from 1, of an object by its number from 0, or of the value of a name in it."""
    decoder = json.JSONDecoder()
    buffer, position, line = "", 0, 1
    for text in lines_of(path):
        buffer += text
        while True:
            between = _BETWEEN.match(buffer, position)
            position = between.end() if between else position
            try:
                _, end = decoder.raw_decode(buffer, position)
            except json.JSONDecodeError:
                break  # it goes on in the next line
            if number == 0:
                start = position + _start_of(name, buffer[position:end])
                return f"{line + buffer.count(_END, 0, start)}:{start - buffer.rfind(_END, 0, start)}"
            number -= 1
            position = end
        passed = buffer.rfind(_END, 0, position) + 1
        line += buffer.count(_END, 0, passed)
        buffer, position = buffer[passed:], position - passed
    return f"{line}:{position + 1}"


def _start_of(name: str | None, text: str) -> int:
    """The place at which the value of a name begins in the text of an object; 0 for no name."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        is_name = depth == 1 and name is not None and token["colon"] is not None
        if is_name and json.loads(token["name"]).casefold() == str(name).casefold():
            return token.end()
    return 0
