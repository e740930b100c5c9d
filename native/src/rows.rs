//! The sorted rows of one partition, read where they lie in Arrow's buffers.

use std::cmp::Ordering;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::msgpack::{
    write_blob_head, write_bool, write_double, write_ext, write_int, write_nil, write_text_head, Out, EXT_DATE,
    EXT_DECIMAL, EXT_TIME, EXT_TIMESTAMP, EXT_TIMESTAMPTZ, EXT_UUID,
};

/// Days and microseconds from 1970 of the first day and the last that Python has.
const DAY_MIN: i64 = -719_162;
const DAY_MAX: i64 = 2_932_896;
const DAY_US: i64 = 86_400_000_000;

/// How a column lies in memory, and what its values are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Signed(usize),
    Unsigned(usize),
    Float,
    Double,
    Boolean,
    Text,
    Blob,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
    /// In the low words of 16 bytes each.
    Decimal(u32),
}

impl Kind {
    /// By the name of Arrow's type, or what `stored_columns.py` calls it.
    fn named(name: &str, scale: u32) -> Option<Kind> {
        Some(match name {
            "int8" => Kind::Signed(1),
            "int16" => Kind::Signed(2),
            "int32" => Kind::Signed(4),
            "int64" => Kind::Signed(8),
            "uint8" => Kind::Unsigned(1),
            "uint16" => Kind::Unsigned(2),
            "uint32" => Kind::Unsigned(4),
            "uint64" => Kind::Unsigned(8),
            "float" => Kind::Float,
            "double" => Kind::Double,
            "bool" => Kind::Boolean,
            "string" => Kind::Text,
            "binary" => Kind::Blob,
            "date32" => Kind::Date,
            "time64" => Kind::Time,
            "timestamp" => Kind::Timestamp,
            "timestamptz" => Kind::TimestampTz,
            "uuid" => Kind::Uuid,
            "decimal" => Kind::Decimal(scale),
            _ => return None,
        })
    }

    /// The bytes of each value; none for texts, and for booleans, which are bits.
    fn width(self) -> Option<usize> {
        match self {
            Kind::Signed(width) | Kind::Unsigned(width) => Some(width),
            Kind::Float | Kind::Date => Some(4),
            Kind::Double | Kind::Time | Kind::Timestamp | Kind::TimestampTz => Some(8),
            Kind::Uuid | Kind::Decimal(_) => Some(16),
            Kind::Boolean | Kind::Text | Kind::Blob => None,
        }
    }
}

/// A key value in the form in which keys are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Int(i128),
    /// Days since 1970, which are hashed as four bytes.
    Day(i32),
    Bytes(&'a [u8]),
    Uuid(&'a [u8; 16]),
}

/// One end of a span of key values.
#[derive(Clone, Copy)]
pub struct End<'a> {
    pub cell: Cell<'a>,
    pub is_closed: bool,
}

/// A value that is added, compared or grouped.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Value {
    Null,
    Int(i128),
    Double(f64),
    Bool(bool),
    Text(Vec<u8>),
    Decimal(i128, u32),
    /// One that is only counted.
    Other,
}

impl Value {
    /// `None` for a text of more than 64 KiB.
    pub fn write(&self, out: &mut Out) -> Option<()> {
        match self {
            Value::Null => write_nil(out),
            Value::Int(value) => write_int(out, *value),
            Value::Double(value) => write_double(out, *value),
            Value::Bool(value) => write_bool(out, *value),
            Value::Text(value) => {
                write_text_head(out, value.len());
                out.extend(value);
            }
            Value::Decimal(units, scale) => write_decimal(out, *units, *scale),
            Value::Other => return None,
        }
        Some(())
    }
}

struct Column {
    kind: Kind,
    values: PyBuffer<u8>,
    offsets: Option<PyBuffer<u8>>,
    validity: Option<PyBuffer<u8>>,
    first: usize,
}

/// Immutable rows that are sorted by a key.
#[pyclass(frozen)]
pub struct Rows {
    columns: Vec<Option<Column>>,
    keys: Vec<usize>,
    count: usize,
}

/// Name of the kind, scale, values, offsets, validity, number of the first value.
type Given<'py> = (String, u32, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>, usize);

#[pymethods]
impl Rows {
    #[new]
    fn new(columns: Vec<Option<Given>>, keys: Vec<usize>, count: usize) -> PyResult<Self> {
        let columns = columns.into_iter().map(|given| given.map(column).transpose()).collect::<PyResult<_>>()?;
        Ok(Rows { columns, keys, count })
    }

    /// The rows `start..end` whose keys begin with some cells, integers and bytes; `None` if Python has to search.
    #[pyo3(name = "equal_range")]
    fn equal_range_of(&self, prefix: &Bound<PyTuple>) -> Option<(usize, usize)> {
        let items: Vec<Bound<PyAny>> = prefix.iter().collect();
        let cells = items.iter().map(|cell| match cell.cast::<PyBytes>() {
            Ok(bytes) => Some(Cell::Bytes(bytes.as_bytes())),
            Err(_) => Some(Cell::Int(i128::from(cell.extract::<i64>().ok()?))),
        });
        self.equal_range(&cells.collect::<Option<Vec<Cell>>>()?)
    }
}

fn column(given: Given) -> PyResult<Column> {
    let (name, scale, values, offsets, validity, first) = given;
    let buffer = |found: Bound<PyAny>| PyBuffer::<u8>::get(&found);
    Ok(Column {
        kind: Kind::named(&name, scale).ok_or_else(|| PyValueError::new_err(format!("no column is {name}")))?,
        values: buffer(values)?,
        offsets: offsets.map(buffer).transpose()?,
        validity: validity.map(buffer).transpose()?,
        first,
    })
}

impl Rows {
    /// The rows `start..end` whose keys begin with some cells; `None` if a key column cannot be searched here.
    pub fn equal_range(&self, prefix: &[Cell]) -> Option<(usize, usize)> {
        let (mut start, mut stop) = (0, self.count);
        for (position, cell) in self.keys.iter().zip(prefix) {
            let column = self.column(*position)?;
            start = partition_point(start, stop, |row| column.compare(row, *cell).map(|order| order.is_lt()))?;
            // Whole keys have runs of one: two comparisons instead of a second search.
            if start == stop || !column.compare(start, *cell)?.is_eq() {
                return Some((start, start));
            }
            if start + 1 == stop || !column.compare(start + 1, *cell)?.is_eq() {
                stop = start + 1;
            } else {
                stop = partition_point(start + 2, stop, |row| column.compare(row, *cell).map(|order| order.is_le()))?;
            }
        }
        Some((start, stop))
    }

    /// Of the rows of `equal_range`, those whose next key value lies between two ends, each of which may be left open.
    pub fn span(&self, prefix: &[Cell], lower: Option<End>, upper: Option<End>) -> Option<(usize, usize)> {
        let (start, stop) = self.equal_range(prefix)?;
        let column = self.column(*self.keys.get(prefix.len())?)?;
        let below = |end: End, takes_equal: bool| {
            partition_point(start, stop, |row| {
                let order = column.compare(row, end.cell)?;
                Some(order.is_lt() || (takes_equal && order.is_eq()))
            })
        };
        let first = lower.map_or(Some(start), |end| below(end, !end.is_closed))?;
        let last = upper.map_or(Some(stop), |end| below(end, end.is_closed))?;
        Some((first, last.max(first)))
    }

    /// A column that is ready to be read; `None` where there is none that can be read here.
    pub fn column(&self, position: usize) -> Option<OpenColumn<'_>> {
        let column = self.columns.get(position)?.as_ref()?;
        Some(OpenColumn {
            kind: column.kind,
            values: bytes_of(&column.values),
            offsets: column.offsets.as_ref().map_or(&[], bytes_of),
            validity: column.validity.as_ref().map(bytes_of),
            first: column.first,
        })
    }
}

/// The bytes of a buffer of Arrow, which keeps them alive and unchanged.
#[allow(unsafe_code)]
fn bytes_of(buffer: &PyBuffer<u8>) -> &[u8] {
    // SAFETY: `Rows` is made of buffers of stored tables, which nobody writes to once they are stored; the borrowed
    // `PyBuffer` keeps their memory.
    buffer.as_slice_ptr().map_or(&[], |bytes| unsafe { bytes.as_ref() })
}

fn partition_point(start: usize, stop: usize, is_before: impl Fn(usize) -> Option<bool>) -> Option<usize> {
    let (mut low, mut high) = (start, stop);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// A column while the interpreter's lock is held. Whatever lies outside of its buffers is `None`.
pub struct OpenColumn<'a> {
    pub kind: Kind,
    values: &'a [u8],
    offsets: &'a [u8],
    validity: Option<&'a [u8]>,
    first: usize,
}

impl<'a> OpenColumn<'a> {
    pub fn is_null(&self, row: usize) -> Option<bool> {
        match self.validity {
            None => Some(false),
            Some(bits) => Some(!bit(bits, self.first + row)?),
        }
    }

    fn bytes(&self, row: usize) -> Option<&'a [u8]> {
        let at = self.first + row;
        match self.kind.width() {
            Some(width) => self.values.get(at * width..(at + 1) * width),
            None => {
                let (begin, end) = (offset(self.offsets, at)?, offset(self.offsets, at + 1)?);
                self.values.get(begin..end)
            }
        }
    }

    fn word<const N: usize>(&self, row: usize) -> Option<[u8; N]> {
        fixed(self.bytes(row)?)
    }

    /// The number of a value that is one: an integer, days, microseconds, or the units of a decimal.
    fn number(&self, row: usize) -> Option<i128> {
        Some(match self.kind {
            Kind::Signed(1) => i128::from(i8::from_le_bytes(self.word(row)?)),
            Kind::Signed(2) => i128::from(i16::from_le_bytes(self.word(row)?)),
            Kind::Signed(4) | Kind::Date => i128::from(i32::from_le_bytes(self.word(row)?)),
            Kind::Signed(8) | Kind::Time | Kind::Timestamp | Kind::TimestampTz => {
                i128::from(i64::from_le_bytes(self.word(row)?))
            }
            Kind::Unsigned(1) => i128::from(u8::from_le_bytes(self.word(row)?)),
            Kind::Unsigned(2) => i128::from(u16::from_le_bytes(self.word(row)?)),
            Kind::Unsigned(4) => i128::from(u32::from_le_bytes(self.word(row)?)),
            Kind::Unsigned(8) => i128::from(u64::from_le_bytes(self.word(row)?)),
            Kind::Decimal(_) => i128::from(i64::from_le_bytes(fixed(self.bytes(row)?.get(..8)?)?)),
            _ => return None,
        })
    }

    fn double(&self, row: usize) -> Option<f64> {
        Some(match self.kind {
            Kind::Float => f64::from(f32::from_le_bytes(self.word(row)?)),
            Kind::Double => f64::from_le_bytes(self.word(row)?),
            _ => return None,
        })
    }

    pub fn compare(&self, row: usize, cell: Cell) -> Option<Ordering> {
        match cell {
            Cell::Int(wanted) => Some(self.number(row)?.cmp(&wanted)),
            Cell::Day(wanted) => Some(self.number(row)?.cmp(&i128::from(wanted))),
            Cell::Bytes(wanted) => self.compare_bytes(row, wanted),
            Cell::Uuid(wanted) => self.compare_bytes(row, wanted),
        }
    }

    /// A value in the form in which keys are compared; `None` where keys have no such values.
    pub fn cell(&self, row: usize) -> Option<Cell<'a>> {
        Some(match self.kind {
            Kind::Signed(_) | Kind::Unsigned(_) | Kind::Timestamp => Cell::Int(self.number(row)?),
            Kind::Date => Cell::Day(i32::try_from(self.number(row)?).ok()?),
            Kind::Text => Cell::Bytes(self.bytes(row)?),
            _ => return None,
        })
    }

    /// A value by which rows are sorted; `None` where Python sorts them.
    pub fn sort_key(&self, row: usize) -> Option<Value> {
        if self.is_null(row)? {
            return Some(Value::Null);
        }
        Some(match self.kind {
            Kind::Float | Kind::Double => Value::Double(self.double(row).filter(|number| !number.is_nan())?),
            Kind::Text => Value::Text(self.bytes(row)?.to_vec()),
            _ => Value::Int(self.number(row)?),
        })
    }

    fn compare_bytes(&self, row: usize, wanted: &[u8]) -> Option<Ordering> {
        matches!(self.kind, Kind::Text | Kind::Blob | Kind::Uuid).then_some(())?;
        Some(self.bytes(row)?.cmp(wanted))
    }

    pub fn value(&self, row: usize) -> Option<Value> {
        if self.is_null(row)? {
            return Some(Value::Null);
        }
        Some(match self.kind {
            Kind::Signed(_) | Kind::Unsigned(_) => Value::Int(self.number(row)?),
            Kind::Decimal(scale) => Value::Decimal(self.number(row)?, scale),
            Kind::Float | Kind::Double => Value::Double(self.double(row)?),
            Kind::Boolean => Value::Bool(bit(self.values, self.first + row)?),
            Kind::Text => Value::Text(self.bytes(row)?.to_vec()),
            _ => Value::Other,
        })
    }

    /// Writes a value, and returns the characters of a text or the bytes of a blob.
    ///
    /// `None` for a value that Python has no object for, and for a text of more than 64 KiB.
    pub fn write(&self, row: usize, out: &mut Out) -> Option<usize> {
        if self.is_null(row)? {
            write_nil(out);
            return Some(0);
        }
        match self.kind {
            Kind::Signed(_) | Kind::Unsigned(_) => write_int(out, self.number(row)?),
            Kind::Float | Kind::Double => write_double(out, self.double(row)?),
            Kind::Boolean => write_bool(out, bit(self.values, self.first + row)?),
            Kind::Text => {
                let text = self.bytes(row)?;
                write_text_head(out, text.len())?;
                out.extend(text);
                return Some(text.iter().filter(|byte| **byte & 0xc0 != 0x80).count());
            }
            Kind::Blob => {
                let blob = self.bytes(row)?;
                write_blob_head(out, blob.len())?;
                out.extend(blob);
                return Some(blob.len());
            }
            Kind::Date => write_instant(out, EXT_DATE, self.number(row)?, 1)?,
            Kind::Time => write_ext(out, EXT_TIME, &i64::try_from(self.number(row)?).ok()?.to_le_bytes()),
            Kind::Timestamp => write_instant(out, EXT_TIMESTAMP, self.number(row)?, DAY_US)?,
            Kind::TimestampTz => write_instant(out, EXT_TIMESTAMPTZ, self.number(row)?, DAY_US)?,
            Kind::Uuid => write_ext(out, EXT_UUID, &self.word::<16>(row)?),
            Kind::Decimal(scale) => write_decimal(out, self.number(row)?, scale),
        }
        Some(0)
    }
}

fn bit(bits: &[u8], at: usize) -> Option<bool> {
    Some(bits.get(at >> 3)? >> (at & 7) & 1 == 1)
}

fn offset(offsets: &[u8], at: usize) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(fixed(offsets.get(at * 4..(at + 1) * 4)?)?)).ok()
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn write_instant(out: &mut Out, code: u8, number: i128, day: i64) -> Option<()> {
    let number = i64::try_from(number).ok()?;
    if !(DAY_MIN..=DAY_MAX).contains(&number.div_euclid(day)) {
        return None;
    }
    write_ext(out, code, &number.to_le_bytes());
    Some(())
}

/// As `str(Decimal)` has it, which writes no exponent for up to six digits behind the point.
fn write_decimal(out: &mut Out, units: i128, scale: u32) {
    let power = 10u128.pow(scale);
    let sign = if units < 0 { "-" } else { "" };
    let (whole, part) = (units.unsigned_abs() / power, units.unsigned_abs() % power);
    let text = match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{part:0width$}", width = scale as usize),
    };
    write_ext(out, EXT_DECIMAL, text.as_bytes());
}
