//! The native executor of short statements at a member: optional, and equal to the executor in Python in every byte.
//!
//! It is called on the member's event loop with the bytes of a frame, and returns the bytes of its answer, or `None`
//! where the member shall handle the frame the general way. It reads what the member knows where it lies, in the same
//! turn of the loop, and keeps nothing but programs.

mod msgpack;
mod program;
mod rows;

use std::collections::HashMap;
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use msgpack::{write_array, write_bool, write_double, write_int, write_nil, write_text_head, Out, Param, Reader};
use program::{Found, Prefix, Program};
use rows::Rows;

const HEAD_BYTES: usize = 24;
const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;

/// What stands in the answers of a plan beside its rows.
struct Learned {
    program: Program,
    partitions_total: i128,
    topology_version: i128,
    is_estimated: bool,
    token: Py<PyAny>,
}

/// A table whose rows are read by whole keys.
struct LearnedTable {
    program: Program,
    version: i128,
    token: Py<PyAny>,
}

/// Answers the frames of executions whose programs it has learned.
#[pyclass]
struct Executor {
    prefix: [u8; 3],
    execute: u32,
    first_stage: u32,
    get_rows: u32,
    tables: Py<PyDict>,
    plans: HashMap<String, Learned>,
    first_stages: HashMap<String, Learned>,
    keyed: HashMap<i128, LearnedTable>,
}

/// The owners whom a client asks for a scattered statement, how many partitions they read, and how many there are.
type Run<'a> = (Vec<&'a str>, i128, i128);
/// The id, the layout and the partitions of this member of a table.
type KnownTable = (i64, Py<PyAny>, Vec<usize>);
/// The frame of an answer; the token of its plan or table; the partitions that were read of each source; the rows
/// of the answer; whether it is a part of a scattered statement, and of which one, if it is to be listed here.
type Answered<'py> = Option<Bound<'py, PyTuple>>;

#[pymethods]
impl Executor {
    /// The first bytes of every frame, the codes of the three operations, and the tables of the member by id.
    #[new]
    fn new(prefix: [u8; 3], execute: u32, first_stage: u32, get_rows: u32, tables: Py<PyDict>) -> Self {
        let (plans, first_stages, keyed) = (HashMap::new(), HashMap::new(), HashMap::new());
        Executor { prefix, execute, first_stage, get_rows, tables, plans, first_stages, keyed }
    }

    /// Learn the program of a plan, or of its first stage.
    #[allow(clippy::too_many_arguments)]
    fn learn(
        &mut self,
        is_first_stage: bool,
        plan_id: String,
        code: &Bound<PyAny>,
        tables: Vec<KnownTable>,
        partitions_total: i64,
        topology_version: i64,
        is_estimated: bool,
        token: Py<PyAny>,
    ) -> PyResult<()> {
        let learned = Learned {
            program: Program::new(code, tables)?,
            partitions_total: i128::from(partitions_total),
            topology_version: i128::from(topology_version),
            is_estimated,
            token,
        };
        let plans = if is_first_stage { &mut self.first_stages } else { &mut self.plans };
        plans.insert(plan_id, learned);
        Ok(())
    }

    /// Learn to read rows of a table by whole keys.
    fn learn_table(
        &mut self,
        version: i64,
        code: &Bound<PyAny>,
        table_id: i64,
        layout: Py<PyAny>,
        mine: Vec<usize>,
        token: Py<PyAny>,
    ) -> PyResult<()> {
        let program = Program::new(code, vec![(table_id, layout, mine)])?;
        let learned = LearnedTable { program, version: i128::from(version), token };
        self.keyed.insert(i128::from(table_id), learned);
        Ok(())
    }

    /// Forget all programs.
    fn forget(&mut self) {
        self.plans.clear();
        self.first_stages.clear();
        self.keyed.clear();
    }

    #[pyo3(signature = (frame, statistics_version, admitted=None))]
    /// Answer a frame; see `Answered`. A sender that may not execute every plan has a dictionary of those that it may:
    /// by their ids, which texts it may give some parameters, by their indexes.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        frame: &[u8],
        statistics_version: i64,
        admitted: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Answered<'py>> {
        let Some((operation, request_id, header)) = self.request(frame) else {
            return Ok(None);
        };
        let mut reader = Reader::new(header);
        let Some(fields) = reader.array() else {
            return Ok(None);
        };
        if operation == self.execute {
            self.execute(py, request_id, &mut reader, fields, statistics_version, admitted)
        } else if operation == self.first_stage {
            self.run_first_stage(py, request_id, &mut reader, fields, statistics_version, admitted)
        } else if operation == self.get_rows && admitted.is_none() {
            self.get_rows(py, request_id, &mut reader, fields)
        } else {
            Ok(None)
        }
    }
}

impl Executor {
    /// The operation, the id and the header of a frame that is one request without a payload.
    fn request<'a>(&self, frame: &'a [u8]) -> Option<(u32, [u8; 4], &'a [u8])> {
        let (head, header) = frame.split_at_checked(HEAD_BYTES)?;
        let word = |at: usize| -> [u8; 4] { std::array::from_fn(|byte| head[at + byte]) };
        let is_request = head[..3] == self.prefix
            && head[3] == REQUEST
            && u32::from_le_bytes(word(12)) as usize == header.len()
            && head[16..] == [0; 8];
        is_request.then(|| (u32::from_le_bytes(word(4)), word(8), header))
    }

    fn response<'py>(&self, py: Python<'py>, request_id: [u8; 4], header: &[u8]) -> Bound<'py, PyBytes> {
        let mut frame = Out::with_capacity(HEAD_BYTES + header.len());
        frame.extend(self.prefix);
        frame.push(RESPONSE);
        frame.extend(0u32.to_le_bytes());
        frame.extend(request_id);
        frame.extend((header.len() as u32).to_le_bytes());
        frame.extend(0u64.to_le_bytes());
        frame.extend(header);
        PyBytes::new(py, &frame)
    }

    /// The rows that a program finds, its columns of them, encoded, and how many rows these have.
    fn found<'py>(
        &self,
        py: Python<'py>,
        program: &Program,
        prefixes: &[Prefix],
        params: &[Param],
    ) -> PyResult<Option<(Found<'py>, Out, usize)>> {
        let Some(found) = program.search(py, self.tables.bind(py), prefixes, params)? else {
            return Ok(None);
        };
        Ok(program.columns(&found, params).map(|(columns, rows)| (found, columns, rows)))
    }

    fn execute<'py>(
        &self,
        py: Python<'py>,
        request_id: [u8; 4],
        reader: &mut Reader,
        fields: usize,
        statistics_version: i64,
        admitted: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Answered<'py>> {
        let Some((plan_id, params)) = plainly_asked(reader, fields) else {
            return Ok(None);
        };
        if !is_admitted(admitted, plan_id, &params)? {
            return Ok(None);
        }
        let Some(learned) = self.plans.get(plan_id) else {
            return Ok(None);
        };
        let Some(prefixes) = learned.program.prefixes(&params) else {
            return Ok(None);
        };
        let Some((found, columns, rows)) = self.found(py, &learned.program, &prefixes, &params)? else {
            return Ok(None);
        };
        let partitions: Vec<Vec<usize>> = found.partitions().into_iter().map(distinct).collect();
        let mut out = Out::with_capacity(columns.len() + 64);
        let written = || -> Option<()> {
            write_array(&mut out, 12)?;
            write_text(&mut out, "local")?;
            write_int(&mut out, partitions.iter().map(Vec::len).sum::<usize>() as i128);
            write_int(&mut out, learned.partitions_total);
            write_int(&mut out, learned.topology_version);
            write_int(&mut out, rows as i128);
            out.extend(&columns);
            write_nil(&mut out);
            write_bool(&mut out, false);
            write_array(&mut out, 0)?;
            write_array(&mut out, 0)?;
            write_int(&mut out, learned.statistics(statistics_version));
            write_nil(&mut out); // its cost, which nobody measures
            Some(())
        }();
        if written.is_none() {
            return Ok(None);
        }
        let frame = self.response(py, request_id, &out);
        Ok(Some((frame, &learned.token, partitions, rows, false, None::<Run>).into_pyobject(py)?))
    }

    fn run_first_stage<'py>(
        &self,
        py: Python<'py>,
        request_id: [u8; 4],
        reader: &mut Reader,
        fields: usize,
        statistics_version: i64,
        admitted: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Answered<'py>> {
        let begun = Instant::now();
        let Some((plan_id, params, wanted, run)) = first_stage_asked(reader, fields) else {
            return Ok(None);
        };
        if !is_admitted(admitted, plan_id, &params)? {
            return Ok(None);
        }
        let Some(learned) = self.first_stages.get(plan_id) else {
            return Ok(None);
        };
        let Some(mut prefixes) = learned.program.prefixes(&params) else {
            return Ok(None);
        };
        let bound = distinct(prefixes.iter().map(|(number, _)| *number).collect());
        let is_agreed = run.as_ref().is_none_or(|(_, read, _)| *read == bound.len() as i128)
            && wanted.iter().all(|number| bound.contains(number));
        if !is_agreed {
            return Ok(None);
        }
        prefixes.retain(|(number, _)| wanted.contains(number));
        let Some((found, columns, rows)) = self.found(py, &learned.program, &prefixes, &params)? else {
            return Ok(None);
        };
        let published: i64 = found.table().getattr("published")?.extract()?;
        let mut out = Out::with_capacity(columns.len() + 64);
        let written = || -> Option<()> {
            write_array(&mut out, 9)?;
            write_int(&mut out, rows as i128);
            out.extend(&columns);
            write_bool(&mut out, false);
            write_int(&mut out, found.counts().iter().sum::<usize>() as i128);
            write_double(&mut out, 0.0);
            write_double(&mut out, begun.elapsed().as_secs_f64() * 1000.0);
            write_array(&mut out, 1)?;
            write_int(&mut out, i128::from(published));
            write_int(&mut out, learned.topology_version);
            write_int(&mut out, learned.statistics(statistics_version));
            Some(())
        }();
        if written.is_none() {
            return Ok(None);
        }
        let frame = self.response(py, request_id, &out);
        Ok(Some((frame, &learned.token, vec![wanted], rows, true, run).into_pyobject(py)?))
    }

    fn get_rows<'py>(
        &self,
        py: Python<'py>,
        request_id: [u8; 4],
        reader: &mut Reader,
        fields: usize,
    ) -> PyResult<Answered<'py>> {
        let Some((table_id, version, keys)) = keys_asked(reader, fields) else {
            return Ok(None);
        };
        let Some(learned) = self.keyed.get(&table_id).filter(|known| known.version == version) else {
            return Ok(None);
        };
        let mut prefixes = Vec::with_capacity(keys.len());
        for key in keys {
            match learned.program.prefixes(&key) {
                Some(mut found) => prefixes.append(&mut found),
                None => return Ok(None),
            }
        }
        let Some((found, columns, rows)) = self.found(py, &learned.program, &prefixes, &[])? else {
            return Ok(None);
        };
        let missing: Vec<usize> = (0..found.counts().len()).filter(|at| found.counts()[*at] == 0).collect();
        let mut out = Out::with_capacity(columns.len() + 64);
        let written = || -> Option<()> {
            write_array(&mut out, 2)?;
            write_array(&mut out, missing.len())?;
            missing.iter().for_each(|at| write_int(&mut out, *at as i128));
            if rows == 0 {
                write_array(&mut out, 0)?;
            } else {
                out.extend(&columns);
            }
            Some(())
        }();
        if written.is_none() {
            return Ok(None);
        }
        let frame = self.response(py, request_id, &out);
        Ok(Some((frame, &learned.token, found.partitions(), rows, false, None::<Run>).into_pyobject(py)?))
    }
}

impl Learned {
    fn statistics(&self, version: i64) -> i128 {
        if self.is_estimated {
            i128::from(version)
        } else {
            0
        }
    }
}

/// Whether the sender may execute a plan with these parameters.
fn is_admitted(admitted: Option<&Bound<PyDict>>, plan_id: &str, params: &[Param]) -> PyResult<bool> {
    let Some(plans) = admitted else {
        return Ok(true);
    };
    let Some(claims) = plans.get_item(plan_id)? else {
        return Ok(false);
    };
    for claim in claims.cast::<PyTuple>()?.iter_borrowed() {
        let (index, value): (usize, &str) = claim.extract()?;
        if !matches!(params.get(index), Some(Param::Text(given)) if *given == value) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn distinct(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn write_text(out: &mut Out, text: &str) -> Option<()> {
    write_text_head(out, text.len())?;
    out.extend(text.as_bytes());
    Some(())
}

fn params<'a>(reader: &mut Reader<'a>) -> Option<Vec<Param<'a>>> {
    (0..reader.array()?).map(|_| reader.param()).collect()
}

/// The plan and the parameters of an `Execute` that asks for nothing special.
fn plainly_asked<'a>(reader: &mut Reader<'a>, fields: usize) -> Option<(&'a str, Vec<Param<'a>>)> {
    let asked = (reader.text()?, params(reader)?);
    if !(3..=8).contains(&fields) || !reader.bool()? {
        return None;
    }
    if fields > 3 && !reader.skipped_nil() {
        reader.int()?; // the room for rows in parts, which few rows are not
    }
    if fields > 4 && reader.bool()? {
        return None;
    }
    for _ in 5..fields {
        reader.nil()?;
    }
    reader.is_at_end().then_some(asked)
}

/// The plan, the parameters, the partitions and the run of an `ExecuteFirstStage` of a client over one table.
#[allow(clippy::type_complexity)]
fn first_stage_asked<'a>(
    reader: &mut Reader<'a>,
    fields: usize,
) -> Option<(&'a str, Vec<Param<'a>>, Vec<usize>, Option<Run<'a>>)> {
    let (plan_id, params) = (reader.text()?, params(reader)?);
    if !(4..=5).contains(&fields) || reader.array()? != 1 {
        return None;
    }
    let wanted = (0..reader.array()?).map(|_| usize::try_from(reader.int()?).ok()).collect::<Option<Vec<usize>>>()?;
    reader.nil()?;
    let mut run = None;
    if fields > 4 && !reader.skipped_nil() {
        if reader.array()? != 3 {
            return None;
        }
        let members = (0..reader.array()?).map(|_| reader.text()).collect::<Option<Vec<&str>>>()?;
        run = Some((members, reader.int()?, reader.int()?));
    }
    reader.is_at_end().then_some((plan_id, params, wanted, run))
}

/// The table, its version and the keys of a `GetRows`.
fn keys_asked<'a>(reader: &mut Reader<'a>, fields: usize) -> Option<(i128, i128, Vec<Vec<Param<'a>>>)> {
    if fields != 3 {
        return None;
    }
    let (table_id, version) = (reader.int()?, reader.int()?);
    let keys = (0..reader.array()?).map(|_| params(reader)).collect::<Option<_>>()?;
    reader.is_at_end().then_some((table_id, version, keys))
}

#[pymodule]
fn secateur_native(module: &Bound<PyModule>) -> PyResult<()> {
    module.add("FORMAT", 6)?;
    module.add_class::<Executor>()?;
    module.add_class::<Rows>()
}
