//! One serving program: from the parameters of an execution to the columns of its answer.
//!
//! A program is compiled by `secateur.engine.sql.serving_program` from a plan, and decides nothing that is not written in
//! it. Whatever it does not certainly answer is `None`: the member then executes the statement the general way.

use std::cmp::Ordering;
use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use xxhash_rust::xxh64::xxh64;

use crate::msgpack::{write_array, Out, Param};
use crate::rows::{Cell, OpenColumn, Rows, Value};

/// Doubles that Arrow's sum without keys adds one after the other.
const BLOCK_ROWS: usize = 16;
/// Integers up to here are doubles.
const DOUBLE_INTEGER_MAX: u128 = 1 << 53;
/// Texts and blobs that are longer together are cheaper as a payload.
const CHARACTERS_MAX: usize = 8192;

/// A parameter that is a leading value of the key.
#[derive(FromPyObject)]
struct KeyParameter {
    index: usize,
    kind: String,
    /// The least and the greatest integer of its column; none for other kinds.
    bounds: Option<(i128, i128)>,
}

impl KeyParameter {
    fn cell<'a>(&self, params: &[Param<'a>]) -> Option<Cell<'a>> {
        match (*params.get(self.index)?, self.kind.as_str()) {
            (Param::Int(value), "integer") => {
                self.bounds.filter(|(least, greatest)| (least..=greatest).contains(&&value)).map(|_| Cell::Int(value))
            }
            (Param::Text(value), "text") => Some(Cell::Bytes(value.as_bytes())),
            (Param::Date(days), "date") => Some(Cell::Day(i32::try_from(days).ok()?)),
            (Param::Timestamp(microseconds), "timestamp") => Some(Cell::Int(i128::from(microseconds))),
            (Param::Uuid(value), "uuid") => Some(Cell::Uuid(value)),
            _ => None,
        }
    }
}

/// One hash of the partition function, over some of the leading values of the key.
#[derive(FromPyObject)]
struct HashRoute {
    seed: u64,
    partitions: i64,
    columns: Vec<usize>,
}

/// The value that a condition compares with: a parameter, or one of the statement's text.
#[derive(FromPyObject)]
enum Operand {
    Parameter(KeyParameter),
    Int(i128),
    Text(String),
}

impl Operand {
    fn cell<'a>(&'a self, params: &[Param<'a>]) -> Option<Cell<'a>> {
        match self {
            Operand::Parameter(parameter) => parameter.cell(params),
            Operand::Int(value) => Some(Cell::Int(*value)),
            Operand::Text(value) => Some(Cell::Bytes(value.as_bytes())),
        }
    }
}

/// A comparison of a column with a value; only rows for which all of them are true pass.
#[derive(FromPyObject)]
struct Condition {
    column: usize,
    comparison: String,
    operand: Operand,
}

impl Condition {
    /// Whether it is true of a value that stands in this order to that of the condition.
    fn takes(&self, order: Ordering) -> bool {
        match self.comparison.as_str() {
            "=" => order.is_eq(),
            "<>" => order.is_ne(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_ge(),
        }
    }
}

#[derive(FromPyObject)]
struct Aggregate {
    function: String,
    column: Option<usize>,
}

#[derive(FromPyObject)]
struct Order {
    slot: usize,
    descending: bool,
    nulls_first: bool,
}

/// The attributes are those of `ServingProgram` in Python, where they are described.
#[derive(FromPyObject)]
struct Code {
    parameter_count: usize,
    prefix: Vec<KeyParameter>,
    choices: Vec<KeyParameter>,
    routes: Vec<HashRoute>,
    columns: Vec<usize>,
    rows_max: usize,
    conditions: Vec<Condition>,
    chosen_max: usize,
    keys: Option<Vec<usize>>,
    aggregates: Vec<Aggregate>,
    outputs: Vec<usize>,
    order: Option<Order>,
}

/// A program with the table that it reads.
pub struct Program {
    code: Code,
    table_id: i64,
    layout: Py<PyAny>,
    /// By number, whether a partition is this member's.
    mine: Vec<bool>,
}

/// Rows that were found.
pub struct Found<'py> {
    pub table: Bound<'py, PyAny>,
    /// Where the keys of each search are, in that order.
    pub partitions: Vec<usize>,
    /// The sorted rows of each search.
    searched: Vec<PyRef<'py, Rows>>,
    /// How many rows each search has found, before conditions.
    pub counts: Vec<usize>,
    /// The rows that pass: the search, and the number of the row.
    rows: Vec<(usize, usize)>,
}

impl Found<'_> {
    /// How many rows were found, before conditions.
    pub fn count(&self) -> usize {
        self.counts.iter().sum()
    }

    /// A column of the rows of each search.
    fn columns(&self, position: usize) -> Option<Vec<OpenColumn<'_>>> {
        self.searched.iter().map(|rows| rows.column(position)).collect()
    }

    fn values(&self, position: usize) -> Option<Vec<Value>> {
        let columns = self.columns(position)?;
        self.rows.iter().map(|(search, row)| columns[*search].value(*row)).collect()
    }
}

impl Program {
    pub fn new(code: &Bound<PyAny>, table_id: i64, layout: Py<PyAny>, mine: Vec<usize>) -> PyResult<Program> {
        let mut owned = vec![false; mine.iter().max().map_or(0, |last| last + 1)];
        for number in mine {
            owned[number] = true;
        }
        Ok(Program { code: code.extract()?, table_id, layout, mine: owned })
    }

    /// Searches for keys that begin with some cells; `None` if Python shall, or says what is wrong.
    pub fn search<'py>(
        &self,
        py: Python<'py>,
        tables: &Bound<'py, PyDict>,
        prefixes: &[(usize, Vec<Cell>)],
        params: &[Param],
    ) -> PyResult<Option<Found<'py>>> {
        let Some(table) = tables.get_item(self.table_id)? else {
            return Ok(None);
        };
        if !table.getattr("layout")?.is(&self.layout) {
            return Ok(None); // it has other ranges by now
        }
        let hosted = table.getattr("partitions")?.cast_into::<PyDict>()?;
        let (mut partitions, mut searched) = (Vec::new(), Vec::new());
        let (mut counts, mut rows): (Vec<usize>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
        for (number, prefix) in prefixes {
            if !self.mine.get(*number).copied().unwrap_or(false) {
                return Ok(None);
            }
            let Some(partition) = hosted.get_item(number)? else { return Ok(None) };
            let sorted = partition.call_method1("native_rows", (cells(py, prefix)?,))?;
            let Ok(sorted) = sorted.extract::<PyRef<Rows>>() else { return Ok(None) };
            let Some((start, stop)) = sorted.equal_range(prefix) else { return Ok(None) };
            if rows.len() + (stop - start) > self.code.rows_max {
                return Ok(None);
            }
            rows.extend((start..stop).map(|row| (searched.len(), row)));
            partitions.push(*number);
            counts.push(stop - start);
            searched.push(sorted);
        }
        let mut found = Found { table, partitions, searched, counts, rows };
        Ok(self.pass(&mut found, params).map(|()| found))
    }

    /// Drops the rows that do not pass the conditions; `None` if there are too many others.
    fn pass(&self, found: &mut Found, params: &[Param]) -> Option<()> {
        for condition in &self.code.conditions {
            let wanted = condition.operand.cell(params)?;
            let columns = found.columns(self.code.columns[condition.column])?;
            let mut chosen = Vec::with_capacity(found.rows.len());
            for (search, row) in &found.rows {
                let column = &columns[*search];
                if !column.is_null(*row)? && condition.takes(column.compare(*row, wanted)?) {
                    chosen.push((*search, *row));
                }
            }
            found.rows = chosen;
        }
        (found.rows.len() <= self.code.chosen_max).then_some(())
    }

    /// The leading key values that are searched for, none of them twice, and the partition of each.
    pub fn prefixes<'a>(&self, params: &[Param<'a>]) -> Option<Vec<(usize, Vec<Cell<'a>>)>> {
        let code = &self.code;
        if params.len() != code.parameter_count {
            return None;
        }
        let mut prefix = Vec::with_capacity(code.prefix.len() + 1);
        for key in &code.prefix {
            prefix.push(key.cell(params)?);
        }
        if code.choices.is_empty() {
            return Some(vec![(self.partition(&prefix), prefix)]);
        }
        let mut prefixes: Vec<(usize, Vec<Cell>)> = Vec::with_capacity(code.choices.len());
        for choice in &code.choices {
            let cell = choice.cell(params)?;
            if !prefixes.iter().any(|(_, known)| known.last() == Some(&cell)) {
                let mut longer = prefix.clone();
                longer.push(cell);
                prefixes.push((self.partition(&longer), longer));
            }
        }
        Some(prefixes)
    }

    fn partition(&self, prefix: &[Cell]) -> usize {
        let mut partition = 0;
        for route in &self.code.routes {
            let mut state = route.seed;
            for position in &route.columns {
                state = match prefix[*position] {
                    Cell::Int(value) => xxh64(&(value as u64).to_le_bytes(), state),
                    Cell::Day(value) => xxh64(&value.to_le_bytes(), state),
                    Cell::Bytes(value) => xxh64(value, state),
                    Cell::Uuid(value) => xxh64(uuid_text(value).as_bytes(), state),
                };
            }
            partition = partition * route.partitions + (state as i64).rem_euclid(route.partitions);
        }
        partition as usize
    }

    /// The columns of the answer, encoded, and how many rows they have.
    pub fn columns(&self, found: &Found) -> Option<(Out, usize)> {
        let code = &self.code;
        let mut out = Out::with_capacity(256);
        write_array(&mut out, code.outputs.len())?;
        if let Some(keys) = &code.keys {
            let read = |position: usize| found.values(code.columns[position]);
            let rows = aggregate(code, keys, read, found.rows.len(), &mut out)?;
            return Some((out, rows));
        }
        let mut characters = 0;
        for output in &code.outputs {
            write_array(&mut out, found.rows.len())?;
            let columns = found.columns(code.columns[*output])?;
            for (search, row) in &found.rows {
                characters += columns[*search].write(*row, &mut out)?;
            }
        }
        (characters <= CHARACTERS_MAX).then_some((out, found.rows.len()))
    }
}

fn cells<'py>(py: Python<'py>, prefix: &[Cell]) -> PyResult<Bound<'py, PyTuple>> {
    let cells = prefix.iter().map(|cell| {
        Ok(match cell {
            Cell::Int(value) => value.into_pyobject(py)?.into_any(),
            Cell::Day(value) => value.into_pyobject(py)?.into_any(),
            Cell::Bytes(value) => PyBytes::new(py, value).into_any(),
            Cell::Uuid(value) => PyBytes::new(py, value.as_slice()).into_any(),
        })
    });
    PyTuple::new(py, cells.collect::<PyResult<Vec<Bound<PyAny>>>>()?)
}

/// As `str(UUID)` has it, which is what the partition function hashes.
fn uuid_text(bytes: &[u8; 16]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Groups, adds up, sorts and writes; returns the number of groups. As `small_groups.py` does.
fn aggregate(
    code: &Code,
    keys: &[usize],
    read: impl Fn(usize) -> Option<Vec<Value>>,
    count: usize,
    out: &mut Out,
) -> Option<usize> {
    let key_columns = keys.iter().map(|position| read(*position)).collect::<Option<Vec<_>>>()?;
    let groups = grouped(&key_columns, count)?;
    let mut slots: Vec<Vec<Value>> = Vec::with_capacity(keys.len() + code.aggregates.len());
    for column in &key_columns {
        slots.push(groups.iter().map(|rows| column[rows[0]].clone()).collect());
    }
    for wanted in &code.aggregates {
        let values = match wanted.column {
            Some(position) => Some(read(position)?),
            None => None,
        };
        let is_alone = keys.is_empty();
        slots.push(groups.iter().map(|rows| fold(wanted, values.as_deref(), rows, is_alone)).collect::<Option<_>>()?);
    }
    let mut numbers: Vec<usize> = (0..groups.len()).collect();
    if let Some(order) = &code.order {
        let sorted_by = &slots[order.slot];
        let (missing, mut present): (Vec<_>, Vec<_>) =
            numbers.into_iter().partition(|at| sorted_by[*at] == Value::Null);
        present.sort_by(|one, other| {
            let ascending = sorted_by[*one].partial_cmp(&sorted_by[*other]).unwrap_or(Ordering::Equal);
            if order.descending {
                ascending.reverse()
            } else {
                ascending
            }
        });
        numbers = if order.nulls_first { [missing, present].concat() } else { [present, missing].concat() };
    }
    let mut characters = 0;
    for output in &code.outputs {
        write_array(out, numbers.len())?;
        for number in &numbers {
            let value = &slots[*output][*number];
            value.write(out)?;
            if let Value::Text(text) = value {
                characters += text.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
            }
        }
    }
    (characters <= CHARACTERS_MAX).then_some(numbers.len())
}

/// The rows of each group, in the order in which their first rows stand; without keys there is one, were it empty.
fn grouped(key_columns: &[Vec<Value>], count: usize) -> Option<Vec<Vec<usize>>> {
    if key_columns.is_empty() {
        return Some(vec![(0..count).collect()]);
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places: HashMap<Out, usize> = HashMap::new();
    for row in 0..count {
        let mut key = Out::new();
        for column in key_columns {
            column[row].write(&mut key)?;
        }
        let place = *places.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[place].push(row);
    }
    Some(groups)
}

fn fold(wanted: &Aggregate, values: Option<&[Value]>, rows: &[usize], is_alone: bool) -> Option<Value> {
    let Some(values) = values else {
        return Some(Value::Int(rows.len() as i128));
    }; // count(*)
    let chosen = || rows.iter().map(|row| &values[*row]);
    let present: Vec<&Value> = chosen().filter(|value| **value != Value::Null).collect();
    Some(match wanted.function.as_str() {
        "count" => Value::Int(present.len() as i128),
        _ if present.is_empty() => Value::Null,
        "min" => present
            .into_iter()
            .fold(None, |least: Option<&Value>, value| match least {
                Some(known) if known <= value => Some(known),
                _ => Some(value),
            })?
            .clone(),
        "max" => present
            .into_iter()
            .fold(None, |greatest: Option<&Value>, value| match greatest {
                Some(known) if known >= value => Some(known),
                _ => Some(value),
            })?
            .clone(),
        "sum" | "avg" => {
            let total = match present[0] {
                Value::Double(_) if is_alone => Value::Double(pairwise_sum(chosen())?),
                Value::Double(_) => Value::Double(doubles(&present)?.into_iter().reduce(|sum, value| sum + value)?),
                Value::Int(_) | Value::Decimal(..) => units_sum(&present)?,
                _ => return None,
            };
            if wanted.function == "sum" {
                return Some(total);
            }
            let total = match total {
                Value::Double(total) => total,
                Value::Int(total) if total.unsigned_abs() <= DOUBLE_INTEGER_MAX => total as f64,
                _ => return None,
            };
            Value::Double(total / present.len() as f64)
        }
        _ => return None,
    })
}

fn doubles(values: &[&Value]) -> Option<Vec<f64>> {
    values.iter().map(|value| if let Value::Double(number) = value { Some(*number) } else { None }).collect()
}

fn units_sum(values: &[&Value]) -> Option<Value> {
    let mut total: i128 = 0;
    let mut digits = None;
    for value in values {
        total += match value {
            Value::Int(number) => number,
            Value::Decimal(units, scale) => {
                digits = Some(*scale);
                units
            }
            _ => return None,
        };
    }
    Some(digits.map_or(Value::Int(total), |scale| Value::Decimal(total, scale)))
}

/// The sum of doubles as Arrow's scalar function adds them, NULLs between them included: see `_pairwise_sum` in
/// `small_groups.py`.
fn pairwise_sum<'a>(values: impl Iterator<Item = &'a Value>) -> Option<f64> {
    let mut sums: Vec<f64> = Vec::new();
    let mut blocks = 0usize;
    let mut block: Option<(f64, usize)> = None;
    let mut close = |total: f64| {
        let (mut total, mut level) = (total, 0);
        while blocks >> level & 1 == 1 {
            total += sums[level];
            sums[level] = 0.0;
            level += 1;
        }
        match sums.get_mut(level) {
            Some(sum) => *sum = total,
            None => sums.push(total),
        }
        blocks += 1;
    };
    for value in values {
        match (value, block) {
            (Value::Null, Some((total, _))) => {
                close(total);
                block = None;
            }
            (Value::Null, None) => {}
            (Value::Double(number), found) => {
                let (total, count) = found.unwrap_or((0.0, 0));
                let (total, count) = (total + number, count + 1);
                block = if count == BLOCK_ROWS {
                    close(total);
                    None
                } else {
                    Some((total, count))
                };
            }
            _ => return None,
        }
    }
    if let Some((total, _)) = block {
        close(total);
    }
    sums.into_iter().reduce(|sum, value| sum + value)
}
