"""The texts of a CSV file: how it is written, DuckDB's reading of it, and the place of a value in it.

How a file is written is not guessed from its values. A delimiter fits if it makes names of columns of the first line;
the quote is ``"``, doubled inside of itself; no line is a comment.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa

from secateur.client.copy.load_options import AskedFile, pattern_of
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.types.sql_text import text_literal

_DELIMITERS: Final = ",;\t|"
_LINE_BYTES_MAX: Final = 16 << 20
_BUFFER_BYTES: Final = 32 << 20
"""DuckDB's default; of itself it would take 16 times the longest line."""
_VALUE: Final = re.compile(
    r"[-+]?(\d[\d_]*\.?\d*|\.\d+)(e[-+]?\d+)?|\d+[-/:.]\d+([-/:. T].*)?|true|false|null|nan|[-+]?inf(inity)?",
    re.IGNORECASE,
)
"""Texts of a first line that are no names of columns, unless the table has a column of that name."""
_EXPLAINED: Final = re.compile(
    r"CSV Error on Line: (?P<record>\d+)\nOriginal Line: .*?\n(?P<what>(?:Expected|Value|Invalid|Error|Maximum)\b.*?)\n"
    r".*\n  file = (?P<file>[^\n]*)\n  delimiter = (?P<delimiter>[^\n]*?) \([^\n]*\n  quote = (?P<quote>[^\n]*?) \(",
    re.DOTALL,
)
_VALUE_SHOWN: Final = re.compile(
    r"Error when converting column \"(?P<column>.*?)\"\. "
    r"Could not convert string \"(?P<text>.*?)\" to '(?P<type>[^'\n]*)'\n",
    re.DOTALL,
)
_COUNTS: Final = re.compile(r"Expected Number of Columns: (?P<expected>\d+) Found: (?P<found>\d+)")
_SNIFFED: Final = re.compile(r"they contain: (?P<expected>\d+) columns.*?found by the sniffer: (?P<found>\d+)\.")


@dataclass(frozen=True, slots=True)
class CsvForm:
    """The form of a CSV file.

    Attributes:
        path: The file, in UTF-8.
        delimiter: Between the values.
        quote: Around them; may be empty.
        header: Whether the first line that is not blank has names.
        first: The values of that line, each with where it begins there.
        blank: How many lines are before it.
        nulls: The texts that are NULL without quotes.
    """

    path: Path
    delimiter: str
    quote: str
    header: bool
    first: tuple[tuple[int, str], ...]
    blank: int
    nulls: tuple[str, ...]

    @property
    def source(self) -> str:
        """SQL of its rows: a VARCHAR ``c0``, ``c1``, ... for each value."""
        columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(len(self.first)))
        return (
            f"read_csv({pattern_of(self.path)}, auto_detect = false, columns = {{{columns}}},"
            f" header = {str(self.header).lower()}, skip = {self.blank if self.header else 0},"
            f" delim = {text_literal(self.delimiter)}, quote = {text_literal(self.quote)},"
            f" escape = {text_literal(self.quote)}, nullstr = [{', '.join(map(text_literal, self.nulls))}],"
            f" allow_quoted_nulls = false, max_line_size = {_LINE_BYTES_MAX},"
            f" buffer_size = {_BUFFER_BYTES})"
        )

    def place(self, row: int, position: int) -> str:
        """The line and the column, from 1, at which a value begins, as ``line:column``; its row counts from 0."""
        records = list(islice(self._rows(), row, row + 1))
        if not records:
            return f"row {row + 1}"
        line, text = records[0]
        values = _values(text, self.delimiter, self.quote)
        return f"{line}:{values[position][0] + 1 if position < len(values) else 1}"

    def _rows(self) -> Iterator[tuple[int, str]]:
        records = _records(self.path, self.quote)
        if self.header:
            records = islice(records, self.blank + 1, None)
        # DuckDB passes over blank lines, unless each may be the NULL of the only column.
        return (record for record in records if len(self.first) == 1 or record[1].strip("\r\n"))


def csv_form(path: Path, asked: AskedFile) -> CsvForm:
    """Find the form of a file, from its first line and the options of its caller.

    Args:
        path: The file, in UTF-8.
        asked: What is said about it, and the columns that it may have. Without a header, it has those that are said, or
            all of the table, in order.

    Raises:
        ProgrammingError: Whether its first line has names cannot be told.
        DataError: It has no line.
    """
    options = asked.options
    names = {name.casefold() for name in (*asked.declared, *asked.table_names)}
    quote = '"' if options.quote is None else options.quote
    found = next(((number, record) for number, record in enumerate(_records(path, quote)) if record[1].strip()), None)
    if found is None:
        raise DataError(f"{asked.path} is empty: it has no line with the names of columns")
    blank, (_, text) = found
    preferred = "\t" if ".tsv" in path.suffixes else ""
    split = {
        delimiter: tuple(_values(text, delimiter, quote)) for delimiter in options.delimiter or preferred + _DELIMITERS
    }

    def fitness(delimiter: str) -> tuple[int, int]:
        values = split[delimiter]
        named = sum(value.strip().casefold() in names for _, value in values)
        return named, len(values) if asked.table is None else len(values) == len(asked.in_order)

    delimiter = max(split, key=fitness)
    first = split[delimiter]
    header = options.header
    if header is None:
        may_be_row = asked.table is not None and len(first) == len(asked.in_order)
        header = _has_names([value for _, value in first], names, may_be_row=may_be_row)
    if header is None:
        raise ProgrammingError(
            f"{asked.path}:{blank + 1}: no column has a name that is in the first line, {text.strip()[:80]!r}: say"
            " whether it has names or values (header=True or False, --header or --no-header)"
        )
    return CsvForm(path, delimiter, quote, header, first, blank, options.nulls)


def _has_names(values: Sequence[str], known: set[str], *, may_be_row: bool) -> bool | None:
    """Whether a first line has names of columns; None where that would be a guess."""
    stripped = [value.strip() for value in values]
    if any(value.casefold() in known for value in stripped):
        return True
    if len(set(stripped)) < len(stripped) or any(not value or _VALUE.fullmatch(value) for value in stripped):
        return False
    return None if may_be_row else True


def explained_csv(message: str, path: str) -> str | None:
    """DuckDB's message about a CSV file in one line, with the place; None for another message.

    Args:
        message: Its first line names a record, blank lines counted; the last ones are all settings.
        path: The file as the user names it, which may be a pattern, or the original of a copy.
    """
    found = _EXPLAINED.search(message)
    if found is None:
        sniffed = _SNIFFED.search(message)
        if sniffed is None:
            return None
        options = "DELIMITER, QUOTE, ESCAPE, SKIP or NULL_PADDING"
        return (
            f"{path}: the lines have {sniffed['found']} values, as far as can be told, and there are"
            f" {sniffed['expected']} columns: say {options} if the file is written so"
        )
    file, quote = found["file"], "" if found["quote"] == "(empty)" else found["quote"]
    line, text = next(islice(_records(Path(file), quote), int(found["record"]) - 1, None), (found["record"], ""))
    column, what = 1, found["what"].strip().partition("\n")[0]
    if value := _VALUE_SHOWN.search(message):
        starts = (start for start, text in _values(text, found["delimiter"], quote) if text == value["text"])
        column = next(starts, 0) + 1
        what = f"column {value['column']}: {value['text']!r} is no {value['type']}"
        if not value["text"]:
            what += "; nothing in quotes is a text, and NULL with the option ALLOW_QUOTED_NULLS true"
    elif counts := _COUNTS.search(message):
        what = f"the line has {counts['found']} values, and there are {counts['expected']} columns"
    elif "not utf-8" in what:
        what = "the text is not UTF-8: say its encoding (encoding, --encoding, ENCODING), such as latin-1"
    return f"{path if Path(path).is_file() else file}:{line}:{column}: {what}"


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a file, which may be compressed, with their ends; what is not UTF-8 is replaced."""
    with pa.input_stream(path, compression="detect") as stream:
        yield from io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", "replace", newline="")


def _records(path: Path, quote: str) -> Iterator[tuple[int, str]]:
    """The records of a file with the numbers of their first lines: a line goes on while a quote is open."""
    first, parts, quotes, size = 1, [], 0, 0
    for number, line in enumerate(lines_of(path), 1):
        parts.append(line)
        quotes += line.count(quote) if quote else 0
        size += len(line)
        if quotes % 2 == 0 or size > _LINE_BYTES_MAX:
            yield first, "".join(parts)
            first, parts, quotes, size = number + 1, [], 0, 0
    if parts:
        yield first, "".join(parts)


def _values(record: str, delimiter: str, quote: str) -> list[tuple[int, str]]:
    """The values of a record, with where each begins."""
    ends, mark = re.escape(delimiter), re.escape(quote)
    plain = rf"(?P<plain>[^{ends}\r\n]*)"
    inside = rf"(?:[^{mark}]|{mark}{mark})*" if quote else "(?!)"
    quoted = rf" *{mark}(?P<quoted>{inside}){mark} *(?=[{ends}\r\n]|\Z)"
    value = re.compile(rf"(?:{quoted}|{plain})(?P<end>[{ends}]?)")
    found: list[tuple[int, str]] = []
    start = 0
    while match := value.match(record, start):
        text = match["plain"] if match["quoted"] is None else match["quoted"].replace(quote * 2, quote)
        found.append((start, text))
        if not match["end"]:
            break
        start = match.end()
    return found
