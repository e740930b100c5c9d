//! The native executor of short statements at a member: optional, and equal to the executor in Python in every byte.
//!
//! It is called on the member's event loop with the bytes of a frame, and returns the bytes of its answer, or `None`
//! where the member shall handle the frame the general way. It reads what the member knows where it lies, in the same
//! turn of the loop, and keeps nothing but programs.

mod member;
mod msgpack;
mod program;
mod rows;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use member::{charge, Entry, Member, Tenants};

use msgpack::{write_array, write_bool, write_double, write_int, write_nil, write_text_head, Out, Param, Reader};
use program::{Found, Prefix, Program};
use rows::Rows;

const HEAD_BYTES: usize = 24;
const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;
/// Forms of answers of a plan that are kept for the list of statements.
const SAID_MAX: usize = 64;

/// What stands in the answers of a plan beside its rows.
struct Learned {
    program: Program,
    partitions_total: i128,
    topology_version: i128,
    is_estimated: bool,
    plan_id: Py<PyString>,
    plan: Py<PyAny>,
    /// What the list of statements has of an answer, by the partitions that were read and the rows.
    said: Mutex<HashMap<(usize, usize), Py<PyAny>>>,
}

/// A table whose rows are read by whole keys.
struct LearnedTable {
    program: Program,
    version: i128,
}

/// Answers the frames of executions whose programs it has learned.
#[pyclass]
struct Executor {
    prefix: [u8; 3],
    execute: u32,
    first_stage: u32,
    get_rows: u32,
    member: Member,
    /// The view of the cluster for which programs were learned.
    view: Option<Py<PyAny>>,
    plans: HashMap<String, Learned>,
    first_stages: HashMap<String, Learned>,
    keyed: HashMap<i128, LearnedTable>,
    /// Once there are some: every answer keeps to the share of its tenant, and is added to its account.
    #[pyo3(set)]
    tenants: Option<Tenants>,
}

/// The owners whom a client asks for a scattered statement, how many partitions they read, and how many there are.
type Run<'a> = (Vec<&'a str>, i128, i128);
/// The id, the layout and the partitions of this member of a table.
type KnownTable = (i64, Py<PyAny>, Vec<usize>);
/// The frame of an answer, and whether it has rows by their keys, of which there is no list as of statements.
type Answered<'py> = Option<(Bound<'py, PyBytes>, bool)>;
/// The partitions that were read of each source.
type Partitions = Vec<Vec<usize>>;

#[pymethods]
impl Executor {
    /// The first bytes of every frame, the codes of the three operations, and what it reads and counts on.
    #[new]
    fn new(prefix: [u8; 3], execute: u32, first_stage: u32, get_rows: u32, member: Member) -> Self {
        let (plans, first_stages, keyed) = (HashMap::new(), HashMap::new(), HashMap::new());
        Executor {
            prefix,
            execute,
            first_stage,
            get_rows,
            member,
            view: None,
            plans,
            first_stages,
            keyed,
            tenants: None,
        }
    }

    /// Shows Python's collector what is held: a member that has ended holds its executor, which holds parts of it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.member.traverse(&visit)?;
        self.view.iter().try_for_each(|view| visit.call(view))?;
        self.tenants.iter().try_for_each(|tenants| tenants.traverse(&visit))?;
        for learned in self.plans.values().chain(self.first_stages.values()) {
            learned.program.traverse(&visit)?;
            visit.call(&learned.plan_id)?;
            visit.call(&learned.plan)?;
            if let Ok(said) = learned.said.try_lock() {
                said.values().try_for_each(|said| visit.call(said))?;
            }
        }
        self.keyed.values().try_for_each(|learned| learned.program.traverse(&visit))
    }

    fn __clear__(&mut self) {
        self.plans.clear();
        self.first_stages.clear();
        self.keyed.clear();
        (self.view, self.tenants) = (None, None);
    }

    /// Learn the program of a plan, or of its first stage.
    #[allow(clippy::too_many_arguments)]
    fn learn(
        &mut self,
        is_first_stage: bool,
        plan_id: Bound<PyString>,
        code: &Bound<PyAny>,
        tables: Vec<KnownTable>,
        partitions_total: i64,
        topology_version: i64,
        is_estimated: bool,
        plan: Py<PyAny>,
    ) -> PyResult<()> {
        let learned = Learned {
            program: Program::new(code, tables)?,
            partitions_total: i128::from(partitions_total),
            topology_version: i128::from(topology_version),
            is_estimated,
            plan_id: plan_id.clone().unbind(),
            plan,
            said: Mutex::new(HashMap::new()),
        };
        let plans = if is_first_stage { &mut self.first_stages } else { &mut self.plans };
        plans.insert(plan_id.extract()?, learned);
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
    ) -> PyResult<()> {
        let program = Program::new(code, vec![(table_id, layout, mine)])?;
        self.keyed.insert(i128::from(table_id), LearnedTable { program, version: i128::from(version) });
        Ok(())
    }

    /// Forget all programs: those that follow are for this view of the cluster.
    fn forget(&mut self, view: Py<PyAny>) {
        self.plans.clear();
        self.first_stages.clear();
        self.keyed.clear();
        self.view = Some(view);
    }

    /// The frame that answers a short request of a peer; `None` where nothing was done, and Python is to handle it.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        frame: &Bound<'py, PyBytes>,
        peer: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(tenants) = &self.tenants else {
            return Ok(self.answered(py, frame, peer)?.map(|(answer, _)| answer));
        };
        let begun = Instant::now();
        let Some(account) = tenants.account(py, peer)? else {
            return Ok(None);
        };
        let Some((answer, is_get)) = self.answered(py, frame, peer)? else {
            return Ok(None);
        };
        charge(&account, begun.elapsed().as_secs_f64(), answer.as_bytes().len(), is_get)?;
        Ok(Some(answer))
    }
}

/// A request.
struct Asked<'a, 'py> {
    frame: &'a Bound<'py, PyBytes>,
    peer: &'a Bound<'py, PyAny>,
    request_id: [u8; 4],
    /// How many fields its header has.
    fields: usize,
    /// Of a sender that may not execute every plan: by the ids of those that it may, which texts it may give some
    /// parameters, by their indexes.
    admitted: Option<Bound<'py, PyDict>>,
    begun: Instant,
}

impl Executor {
    /// What a member answers to a frame, whoever asks.
    fn answered<'py>(
        &self,
        py: Python<'py>,
        frame: &Bound<'py, PyBytes>,
        peer: &Bound<'py, PyAny>,
    ) -> PyResult<Answered<'py>> {
        let begun = Instant::now();
        let Some((operation, request_id, header)) = self.request(frame.as_bytes()) else {
            return Ok(None);
        };
        let Some(view) = &self.view else {
            return Ok(None);
        };
        if !self.member.may_answer(py, view)? {
            return Ok(None);
        }
        let rights = peer.getattr(intern!(py, "rights"))?;
        let admitted =
            if rights.is_none() { None } else { Some(rights.getattr(intern!(py, "admitted"))?.cast_into::<PyDict>()?) };
        let mut reader = Reader::new(header);
        let Some(fields) = reader.array() else {
            return Ok(None);
        };
        let asked = Asked { frame, peer, request_id, fields, admitted, begun };
        if operation == self.execute {
            self.execute(py, &asked, &mut reader)
        } else if operation == self.first_stage {
            self.run_first_stage(py, &asked, &mut reader)
        } else if operation == self.get_rows && asked.admitted.is_none() {
            self.get_rows(py, &asked, &mut reader)
        } else {
            Ok(None)
        }
    }

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
        let Some(found) = program.search(py, self.member.tables.bind(py), prefixes, params)? else {
            return Ok(None);
        };
        Ok(program.columns(&found, params).map(|(columns, rows)| (found, columns, rows)))
    }

    fn execute<'py>(&self, py: Python<'py>, asked: &Asked<'_, 'py>, reader: &mut Reader) -> PyResult<Answered<'py>> {
        let Some((plan_id, params)) = plainly_asked(reader, asked.fields) else {
            return Ok(None);
        };
        if !is_admitted(asked.admitted.as_ref(), plan_id, &params)? {
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
        let partitions: Partitions = found.partitions().into_iter().map(distinct).collect();
        let read = partitions.iter().map(Vec::len).sum();
        let statistics = learned.statistics(&self.member, py)?;
        let mut out = Out::with_capacity(columns.len() + 64);
        let written = || -> Option<()> {
            write_array(&mut out, 12)?;
            write_text(&mut out, "local")?;
            write_int(&mut out, read as i128);
            write_int(&mut out, learned.partitions_total);
            write_int(&mut out, learned.topology_version);
            write_int(&mut out, rows as i128);
            out.extend(&columns);
            write_nil(&mut out);
            write_bool(&mut out, false);
            write_array(&mut out, 0)?;
            write_array(&mut out, 0)?;
            write_int(&mut out, statistics);
            write_nil(&mut out); // its cost, which nobody measures
            Some(())
        }();
        if written.is_none() {
            return Ok(None);
        }
        if !self.member.has_read(py, found.tables(), &partitions)? {
            return Ok(None);
        }
        let sample = || self.member.sample(py, asked.frame, Some(&learned.plan), None);
        self.member.executed(py, &learned.plan_id, 1, sample)?;
        self.member.list(py, asked.entry(learned, learned.said(&self.member, py, read, rows)?)?)?;
        Ok(Some((self.response(py, asked.request_id, &out), false)))
    }

    fn run_first_stage<'py>(
        &self,
        py: Python<'py>,
        asked: &Asked<'_, 'py>,
        reader: &mut Reader,
    ) -> PyResult<Answered<'py>> {
        let Some((plan_id, params, wanted, run)) = first_stage_asked(reader, asked.fields) else {
            return Ok(None);
        };
        if !is_admitted(asked.admitted.as_ref(), plan_id, &params)? {
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
        let published: i64 = found.tables()[0].1.getattr(intern!(py, "published"))?.extract()?;
        let statistics = learned.statistics(&self.member, py)?;
        let mut out = Out::with_capacity(columns.len() + 64);
        let written = || -> Option<()> {
            write_array(&mut out, 9)?;
            write_int(&mut out, rows as i128);
            out.extend(&columns);
            write_bool(&mut out, false);
            write_int(&mut out, found.counts().iter().sum::<usize>() as i128);
            write_double(&mut out, 0.0);
            write_double(&mut out, asked.begun.elapsed().as_secs_f64() * 1000.0);
            write_array(&mut out, 1)?;
            write_int(&mut out, i128::from(published));
            write_int(&mut out, learned.topology_version);
            write_int(&mut out, statistics);
            Some(())
        }();
        if written.is_none() {
            return Ok(None);
        }
        if !self.member.has_read(py, found.tables(), &[wanted])? {
            return Ok(None);
        }
        let sample = || self.member.sample(py, asked.frame, Some(&learned.plan), None);
        self.member.executed(py, &learned.plan_id, usize::from(run.is_some()), sample)?;
        if let Some((members, read, total)) = run {
            let said = self.member.said_of_scatter(py, members, read, total, learned.topology_version, rows)?;
            self.member.list(py, asked.entry(learned, said)?)?;
        }
        Ok(Some((self.response(py, asked.request_id, &out), false)))
    }

    fn get_rows<'py>(&self, py: Python<'py>, asked: &Asked<'_, 'py>, reader: &mut Reader) -> PyResult<Answered<'py>> {
        let Some((table_id, version, keys)) = keys_asked(reader, asked.fields) else {
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
        let partitions = found.partitions();
        if !self.member.has_read(py, found.tables(), &partitions)? {
            return Ok(None);
        }
        self.member.counted(py, partitions[0].len(), || self.member.sample(py, asked.frame, None, Some(table_id)))?;
        Ok(Some((self.response(py, asked.request_id, &out), true)))
    }
}

impl Learned {
    fn statistics(&self, member: &Member, py: Python) -> PyResult<i128> {
        if self.is_estimated {
            member.statistics_version(py)
        } else {
            Ok(0)
        }
    }

    /// What is listed of an answer: nearly all have read as many partitions, and have as many rows, as one before.
    fn said<'py>(&self, member: &Member, py: Python<'py>, read: usize, rows: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut known = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(said) = known.get(&(read, rows)) {
            return Ok(said.bind(py).clone());
        }
        if known.len() >= SAID_MAX {
            known.clear();
        }
        let said = member.said(py, read, self.partitions_total, self.topology_version, rows)?;
        known.insert((read, rows), said.clone().unbind());
        Ok(said)
    }
}

impl<'a, 'py> Asked<'a, 'py> {
    fn entry(&self, learned: &'a Learned, said: Bound<'py, PyAny>) -> PyResult<Entry<'a, 'py>> {
        let tenant = self.peer.getattr(intern!(said.py(), "tenant"))?;
        Ok(Entry { plan_id: &learned.plan_id, begun: self.begun, said, tenant })
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
    module.add("FORMAT", 7)?;
    module.add_class::<Executor>()?;
    module.add_class::<Rows>()
}
