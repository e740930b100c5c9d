//! One serving program: from the parameters of an execution to the columns of its answer.
//!
//! A program is compiled by `secateur.engine.sql.serving_program` from a plan, and decides nothing that is not written in
//! it. Whatever it does not certainly answer is `None`: the member then executes the statement the general way.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use xxhash_rust::xxh64::xxh64;

use crate::msgpack::{write_array, write_nil, Out, Param};
use crate::rows::{Cell, End, OpenColumn, Rows, Value};

/// Doubles that Arrow's sum without keys adds one after the other.
const BLOCK_ROWS: usize = 16;
/// Integers up to here are doubles.
const DOUBLE_INTEGER_MAX: u128 = 1 << 53;
/// More joined rows are left to Python.
const JOINED_MAX: usize = 512;

/// A parameter, as a value of a column.
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

/// A value that is searched for or compared with: a parameter, or one of the statement's text.
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

/// A term by which the result is sorted: a column of the joined rows, or with groups a slot of these.
#[derive(FromPyObject)]
struct Order {
    slot: usize,
    descending: bool,
    nulls_first: bool,
}

impl Order {
    fn compare(&self, one: &Value, other: &Value) -> Ordering {
        match (one == &Value::Null, other == &Value::Null) {
            (true, true) => Ordering::Equal,
            (false, false) => {
                let ascending = one.partial_cmp(other).unwrap_or(Ordering::Equal);
                if self.descending {
                    ascending.reverse()
                } else {
                    ascending
                }
            }
            (is_missing, _) => {
                if is_missing == self.nulls_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

/// One end of a span of values of the key column behind the prefix.
#[derive(FromPyObject)]
struct SpanEnd {
    value: Operand,
    is_closed: bool,
}

/// How a relation is joined to those before it.
#[derive(FromPyObject)]
struct Join {
    kind: String,
    /// The keys, as columns of the rows before, and as places in this table.
    left: Vec<usize>,
    right: Vec<usize>,
    /// Whether the keys of the rows before are searched for, instead of values of the statement.
    is_searched: bool,
}

/// One relation.
#[derive(FromPyObject)]
struct Source {
    prefix: Vec<Operand>,
    choices: Vec<Operand>,
    lower: Option<SpanEnd>,
    upper: Option<SpanEnd>,
    routes: Vec<HashRoute>,
    conditions: Vec<Condition>,
    rows_max: usize,
    join: Option<Join>,
}

/// The attributes are those of `ServingProgram` in Python, where they are described.
#[derive(FromPyObject)]
struct Code {
    parameter_count: usize,
    sources: Vec<Source>,
    columns: Vec<(usize, usize)>,
    chosen_max: usize,
    keys: Option<Vec<usize>>,
    aggregates: Vec<Aggregate>,
    outputs: Vec<usize>,
    order: Vec<Order>,
    offset: Option<Operand>,
    limit: Option<Operand>,
    result_max: usize,
    characters_max: usize,
}

/// A table that a program reads.
struct Table {
    id: i64,
    layout: Py<PyAny>,
    /// By number, whether a partition is this member's.
    mine: Vec<bool>,
}

/// A program with the tables that it reads, one for each source.
pub struct Program {
    code: Code,
    tables: Vec<Table>,
}

/// Leading key values that are searched for, and the partition where they are.
pub type Prefix<'a> = (usize, Vec<Cell<'a>>);
/// A row of a source: among which sorted rows it is, and its number there.
type Place = (usize, usize);

/// The rows of one source.
struct Side<'py> {
    /// The sorted rows that were searched.
    searched: Vec<Bound<'py, Rows>>,
    /// Where the keys of each search are, and how many rows it has found, before conditions.
    partitions: Vec<usize>,
    counts: Vec<usize>,
    /// The rows that pass.
    rows: Vec<Place>,
}

impl Side<'_> {
    /// A column of all sorted rows that were searched.
    fn columns(&self, position: usize) -> Option<Vec<OpenColumn<'_>>> {
        self.searched.iter().map(|rows| rows.get().column(position)).collect()
    }

    /// As `Found::keys`, of the rows of this side alone.
    fn keys(&self, positions: &[usize]) -> Option<Vec<Option<Out>>> {
        let columns = positions.iter().map(|position| self.columns(*position)).collect::<Option<Vec<_>>>()?;
        let key = |(search, row): &Place| key_of(columns.iter().map(|column| Some((&column[*search], *row))));
        self.rows.iter().map(key).collect()
    }
}

/// Values as bytes that are equal where the values are; nothing where one is NULL, or not there.
fn key_of<'a>(values: impl Iterator<Item = Option<(&'a OpenColumn<'a>, usize)>>) -> Option<Option<Out>> {
    let mut key = Out::new();
    for value in values {
        match value {
            Some((column, row)) if !column.is_null(row)? => write_cell(column.cell(row)?, &mut key),
            _ => return Some(None),
        }
    }
    Some(Some(key))
}

fn write_cell(cell: Cell, out: &mut Out) {
    match cell {
        Cell::Int(value) => out.extend(value.to_le_bytes()),
        Cell::Day(value) => out.extend(value.to_le_bytes()),
        Cell::Bytes(value) => {
            out.extend(value.len().to_le_bytes());
            out.extend(value);
        }
        Cell::Uuid(value) => out.extend(value),
    }
}

/// Rows that were found.
pub struct Found<'py> {
    tables: Vec<(i64, Bound<'py, PyAny>)>,
    sides: Vec<Side<'py>>,
    /// Each row, with its place in each side; nothing for a side that has no row for it.
    rows: Vec<Vec<Option<Place>>>,
}

impl<'py> Found<'py> {
    /// The id and the table of each source.
    pub fn tables(&self) -> &[(i64, Bound<'py, PyAny>)] {
        &self.tables
    }

    /// How many rows each search of the first source has found, before conditions.
    pub fn counts(&self) -> &[usize] {
        &self.sides[0].counts
    }

    /// Where the keys of each search are, by source.
    pub fn partitions(&self) -> Vec<Vec<usize>> {
        self.sides.iter().map(|side| side.partitions.clone()).collect()
    }

    fn column(&self, (source, position): (usize, usize)) -> Option<FoundColumn<'_>> {
        Some(FoundColumn { source, columns: self.sides[source].columns(position)? })
    }

    /// Some columns of each row as one key; see `key_of`.
    fn keys(&self, columns: &[(usize, usize)]) -> Option<Vec<Option<Out>>> {
        let columns = columns.iter().map(|column| self.column(*column)).collect::<Option<Vec<_>>>()?;
        self.rows.iter().map(|row| key_of(columns.iter().map(|column| column.at(row)))).collect()
    }

    fn values(&self, column: (usize, usize)) -> Option<Vec<Value>> {
        let column = self.column(column)?;
        self.rows.iter().map(|row| column.at(row).map_or(Some(Value::Null), |(open, at)| open.value(at))).collect()
    }
}

/// A column of one source in rows that were found.
struct FoundColumn<'a> {
    source: usize,
    columns: Vec<OpenColumn<'a>>,
}

impl<'a> FoundColumn<'a> {
    /// Where the value of a row stands; `None` if its source has none for it.
    fn at(&self, row: &[Option<Place>]) -> Option<(&OpenColumn<'a>, usize)> {
        row[self.source].map(|(search, number)| (&self.columns[search], number))
    }
}

impl Program {
    /// Shows Python's collector what is held.
    pub fn traverse(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        self.tables.iter().try_for_each(|table| visit.call(&table.layout))
    }

    /// A program with the id, the layout and the partitions of this member of each table that it reads.
    pub fn new(code: &Bound<PyAny>, tables: Vec<(i64, Py<PyAny>, Vec<usize>)>) -> PyResult<Program> {
        let owned = |mine: Vec<usize>| {
            let mut owned = vec![false; mine.iter().max().map_or(0, |last| last + 1)];
            mine.into_iter().for_each(|number| owned[number] = true);
            owned
        };
        let tables = tables.into_iter().map(|(id, layout, mine)| Table { id, layout, mine: owned(mine) }).collect();
        Ok(Program { code: code.extract()?, tables })
    }

    /// Searches for keys that begin with some cells, and joins; `None` if Python shall, or says what is wrong.
    pub fn search<'py>(
        &self,
        py: Python<'py>,
        hosted: &Bound<'py, PyDict>,
        prefixes: &[Prefix],
        params: &[Param],
    ) -> PyResult<Option<Found<'py>>> {
        let mut tables = Vec::with_capacity(self.tables.len());
        for known in &self.tables {
            let Some(table) = hosted.get_item(known.id)? else { return Ok(None) };
            if !table.getattr(intern!(py, "layout"))?.is(&known.layout) {
                return Ok(None); // it has other ranges by now
            }
            tables.push((known.id, table));
        }
        let Some(first) = self.find(py, &tables, 0, prefixes, params)? else { return Ok(None) };
        let rows = first.rows.iter().map(|place| vec![Some(*place)]).collect();
        let mut found = Found { tables, sides: vec![first], rows };
        for (number, source) in self.code.sources.iter().enumerate().skip(1) {
            let Some(join) = &source.join else { return Ok(None) };
            if self.joined(py, &mut found, number, join, params)?.is_none() {
                return Ok(None);
            }
        }
        Ok((found.rows.len() <= self.code.chosen_max).then_some(found))
    }

    /// The rows of one source that pass its conditions.
    fn find<'py>(
        &self,
        py: Python<'py>,
        tables: &[(i64, Bound<'py, PyAny>)],
        number: usize,
        prefixes: &[Prefix],
        params: &[Param],
    ) -> PyResult<Option<Side<'py>>> {
        let source = &self.code.sources[number];
        let hosted = tables[number].1.getattr(intern!(py, "partitions"))?.cast_into::<PyDict>()?;
        let mut side = Side { searched: Vec::new(), partitions: Vec::new(), counts: Vec::new(), rows: Vec::new() };
        for (partition, prefix) in prefixes {
            if !self.tables[number].mine.get(*partition).copied().unwrap_or(false) {
                return Ok(None);
            }
            let Some(stored) = hosted.get_item(partition)? else { return Ok(None) };
            let mut sorted = stored.getattr(intern!(py, "native"))?;
            if sorted.is_none() {
                sorted = stored.call_method1(intern!(py, "native_rows"), (cells(py, prefix)?,))?;
            }
            let Ok(sorted) = sorted.cast_into::<Rows>() else { return Ok(None) };
            let Some((start, stop)) = source.rows_of(sorted.get(), prefix, params) else { return Ok(None) };
            if side.rows.len() + (stop - start) > source.rows_max {
                return Ok(None);
            }
            side.partitions.push(*partition);
            side.counts.push(stop - start);
            if !side.searched.last().is_some_and(|known| known.is(&sorted)) {
                side.searched.push(sorted);
            }
            side.rows.extend((start..stop).map(|row| (side.searched.len() - 1, row)));
        }
        Ok(source.pass(&mut side, params).map(|()| side))
    }

    /// Joins a source to the rows that were found; `None` if Python shall.
    fn joined<'py>(
        &self,
        py: Python<'py>,
        found: &mut Found<'py>,
        number: usize,
        join: &Join,
        params: &[Param],
    ) -> PyResult<Option<()>> {
        let source = &self.code.sources[number];
        let columns: Vec<_> = join.left.iter().map(|position| self.code.columns[*position]).collect();
        let Some(left) = found.keys(&columns) else { return Ok(None) };
        let prefixes = if join.is_searched { searched_keys(found, &columns) } else { source.prefixes(params) };
        let Some(mut side) = (match prefixes {
            Some(prefixes) => self.find(py, &found.tables, number, &prefixes, params)?,
            None => None,
        }) else {
            return Ok(None);
        };
        if join.is_searched {
            side.partitions = vec![0]; // which is read, were there no key to search for
        }
        let Some(right) = side.keys(&join.right) else { return Ok(None) };
        let mut places: HashMap<Out, Vec<Place>> = HashMap::new();
        for (key, place) in right.into_iter().zip(&side.rows) {
            if let Some(key) = key {
                places.entry(key).or_default().push(*place);
            }
        }
        let mut rows = Vec::with_capacity(found.rows.len());
        for (row, key) in found.rows.iter().zip(left) {
            let matches = key.and_then(|key| places.get(&key)).map_or(&[][..], Vec::as_slice);
            let with = |place: Option<Place>| row.iter().copied().chain([place]).collect::<Vec<_>>();
            match join.kind.as_str() {
                "inner" => rows.extend(matches.iter().map(|place| with(Some(*place)))),
                "left" if !matches.is_empty() => rows.extend(matches.iter().map(|place| with(Some(*place)))),
                "left" => rows.push(with(None)),
                "semi" if !matches.is_empty() => rows.push(with(None)),
                "anti" if matches.is_empty() => rows.push(with(None)),
                _ => {}
            }
            if rows.len() > JOINED_MAX {
                return Ok(None);
            }
        }
        found.rows = rows;
        found.sides.push(side);
        Ok(Some(()))
    }

    /// The leading key values of the first source that are searched for, none of them twice.
    pub fn prefixes<'a>(&'a self, params: &[Param<'a>]) -> Option<Vec<Prefix<'a>>> {
        (params.len() == self.code.parameter_count).then(|| self.code.sources[0].prefixes(params))?
    }

    /// The columns of the answer, encoded, and how many rows they have.
    pub fn columns(&self, found: &Found, params: &[Param]) -> Option<(Out, usize)> {
        let code = &self.code;
        let mut out = Out::with_capacity(256);
        write_array(&mut out, code.outputs.len())?;
        if let Some(keys) = &code.keys {
            let read = |position: usize| found.values(code.columns[position]);
            let rows = aggregate(code, keys, read, found.rows.len(), params, &mut out)?;
            return Some((out, rows));
        }
        let numbers = code.window(self.sorted(found)?, params)?;
        let mut characters = 0;
        for output in &code.outputs {
            write_array(&mut out, numbers.len())?;
            let column = found.column(code.columns[*output])?;
            for number in &numbers {
                match column.at(&found.rows[*number]) {
                    Some((open, at)) => characters += open.write(at, &mut out)?,
                    None => write_nil(&mut out),
                }
            }
        }
        (characters <= code.characters_max).then_some((out, numbers.len()))
    }

    /// The numbers of the rows in the order of the result.
    fn sorted(&self, found: &Found) -> Option<Vec<usize>> {
        let mut numbers: Vec<usize> = (0..found.rows.len()).collect();
        let mut keys = Vec::with_capacity(self.code.order.len());
        for term in &self.code.order {
            let column = found.column(self.code.columns[term.slot])?;
            let key =
                |row: &Vec<Option<Place>>| column.at(row).map_or(Some(Value::Null), |(open, at)| open.sort_key(at));
            keys.push((term, found.rows.iter().map(key).collect::<Option<Vec<Value>>>()?));
        }
        if !keys.is_empty() {
            numbers.sort_by(|one, other| {
                let by_term = |(term, key): &(&Order, Vec<Value>)| term.compare(&key[*one], &key[*other]);
                keys.iter().map(by_term).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            });
        }
        Some(numbers)
    }
}

impl Code {
    /// What OFFSET and LIMIT leave of the rows in their order; `None` if these are more than travel as plain values.
    fn window(&self, mut numbers: Vec<usize>, params: &[Param]) -> Option<Vec<usize>> {
        let offset = rows_of(&self.offset, params)?.unwrap_or(0).min(numbers.len());
        numbers.drain(..offset);
        if let Some(limit) = rows_of(&self.limit, params)? {
            numbers.truncate(limit);
        }
        (numbers.len() <= self.result_max).then_some(numbers)
    }
}

/// The value of OFFSET or LIMIT, if there is one.
fn rows_of(clause: &Option<Operand>, params: &[Param]) -> Option<Option<usize>> {
    match clause {
        None => Some(None),
        Some(operand) => match operand.cell(params)? {
            Cell::Int(rows) => Some(Some(usize::try_from(rows).ok()?)),
            _ => None,
        },
    }
}

impl Source {
    /// The leading key values that are searched for, none of them twice, and the partition of each.
    fn prefixes<'a>(&'a self, params: &[Param<'a>]) -> Option<Vec<Prefix<'a>>> {
        let mut prefix = Vec::with_capacity(self.prefix.len() + 1);
        for key in &self.prefix {
            prefix.push(key.cell(params)?);
        }
        if self.choices.is_empty() {
            return Some(vec![(self.partition(&prefix), prefix)]);
        }
        let mut prefixes: Vec<Prefix> = Vec::with_capacity(self.choices.len());
        for choice in &self.choices {
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
        for route in &self.routes {
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

    /// The rows `start..end` whose keys begin with some cells, and lie in the span if there is one.
    fn rows_of(&self, sorted: &Rows, prefix: &[Cell], params: &[Param]) -> Option<(usize, usize)> {
        if self.lower.is_none() && self.upper.is_none() {
            return sorted.equal_range(prefix);
        }
        sorted.span(prefix, end_of(&self.lower, params)?, end_of(&self.upper, params)?)
    }

    /// Drops the rows that do not pass the conditions.
    fn pass(&self, side: &mut Side, params: &[Param]) -> Option<()> {
        for condition in &self.conditions {
            let wanted = condition.operand.cell(params)?;
            let columns = side.columns(condition.column)?;
            let mut chosen = Vec::with_capacity(side.rows.len());
            for (search, row) in &side.rows {
                let column = &columns[*search];
                if !column.is_null(*row)? && condition.takes(column.compare(*row, wanted)?) {
                    chosen.push((*search, *row));
                }
            }
            side.rows = chosen;
        }
        Some(())
    }
}

fn end_of<'a>(end: &'a Option<SpanEnd>, params: &[Param<'a>]) -> Option<Option<End<'a>>> {
    match end {
        None => Some(None),
        Some(SpanEnd { value, is_closed }) => Some(Some(End { cell: value.cell(params)?, is_closed: *is_closed })),
    }
}

/// The join keys of the rows that were found, none of them twice, as leading key values of a replicated table.
fn searched_keys<'a>(found: &'a Found, columns: &[(usize, usize)]) -> Option<Vec<Prefix<'a>>> {
    let columns = columns.iter().map(|column| found.column(*column)).collect::<Option<Vec<_>>>()?;
    let mut prefixes: Vec<Prefix> = Vec::new();
    let mut known: HashSet<Out> = HashSet::new();
    for row in &found.rows {
        let (mut prefix, mut key) = (Vec::with_capacity(columns.len()), Out::new());
        for column in &columns {
            match column.at(row) {
                Some((open, at)) if !open.is_null(at)? => prefix.push(open.cell(at)?),
                _ => break,
            }
        }
        prefix.iter().for_each(|cell| write_cell(*cell, &mut key));
        if prefix.len() == columns.len() && known.insert(key) {
            prefixes.push((0, prefix));
        }
    }
    Some(prefixes)
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
    params: &[Param],
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
    numbers.sort_by(|one, other| {
        let by_term = |term: &Order| term.compare(&slots[term.slot][*one], &slots[term.slot][*other]);
        code.order.iter().map(by_term).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    let numbers = code.window(numbers, params)?;
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
    (characters <= code.characters_max).then_some(numbers.len())
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
        "count_distinct" => {
            let mut seen: HashSet<Out> = HashSet::new();
            for value in present {
                let mut key = Out::new();
                value.write(&mut key)?;
                seen.insert(key);
            }
            Value::Int(seen.len() as i128)
        }
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
