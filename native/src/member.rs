//! What a member knows and counts, read and written where it lies: objects of Python, on whose attributes this relies.
//!
//! A call of a function in Python costs a microsecond here, since little of it is in the caches of the processor when a
//! request comes: fifteen of them took as long as the search, the columns and the answer together, three times over.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

/// The attributes are those of `ServingState` in Python, where they are described.
#[derive(FromPyObject)]
pub struct Member {
    pub tables: Py<PyDict>,
    lease: Py<PyAny>,
    clock: Py<PyAny>,
    prepared: Py<PyAny>,
    unacknowledged: Py<PyDict>,
    unconfirmed: Py<PyDict>,
    acknowledged: Py<PyAny>,
    hot_keys: Py<PyAny>,
    sample: Py<PyAny>,
    kept: Py<PyAny>,
    statistics_version: Py<PyAny>,
    counts: Py<PyAny>,
    log: Py<PyAny>,
    ended: Py<PyList>,
    held_max: usize,
    slow_s: f64,
    said: Py<PyAny>,
}

/// A statement that has been answered, for the list of statements.
pub struct Entry<'a, 'py> {
    pub plan_id: &'a Py<PyString>,
    pub begun: Instant,
    pub said: Bound<'py, PyAny>,
    pub tenant: Bound<'py, PyAny>,
}

impl Member {
    /// Shows Python's collector what is held.
    pub fn traverse(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        for held in [
            self.tables.as_any(),
            &self.lease,
            &self.clock,
            &self.prepared,
            self.unacknowledged.as_any(),
            self.unconfirmed.as_any(),
            &self.acknowledged,
            &self.hot_keys,
            &self.sample,
            &self.kept,
            &self.statistics_version,
            &self.counts,
            &self.log,
            self.ended.as_any(),
            &self.said,
        ] {
            visit.call(held)?;
        }
        Ok(())
    }

    /// Whether the lease has not ended, and the view of the cluster is still this one.
    pub fn may_answer(&self, py: Python, view: &Py<PyAny>) -> PyResult<bool> {
        let until_s: f64 = self.lease.bind(py).getattr(intern!(py, "until_s"))?.extract()?;
        let now_s: f64 = self.clock.bind(py).call0()?.extract()?;
        Ok(now_s < until_s && self.prepared.bind(py).getattr(intern!(py, "view"))?.is(view))
    }

    /// Count reads of partitions of some tables; false, and nothing is done, if a change in one is not acknowledged.
    pub fn has_read(&self, py: Python, tables: &[(i64, Bound<PyAny>)], partitions: &[Vec<usize>]) -> PyResult<bool> {
        if !self.is_acknowledged(py, tables, partitions)? {
            return Ok(false);
        }
        for ((_, table), numbers) in tables.iter().zip(partitions) {
            let hosted = table.getattr(intern!(py, "partitions"))?.cast_into::<PyDict>()?;
            for number in numbers {
                if let Some(partition) = hosted.get_item(number)? {
                    add(&partition, intern!(py, "reads"), 1)?;
                }
            }
        }
        Ok(true)
    }

    fn is_acknowledged(&self, py: Python, tables: &[(i64, Bound<PyAny>)], partitions: &[Vec<usize>]) -> PyResult<bool> {
        let (changes, loads) = (self.unacknowledged.bind(py), self.unconfirmed.bind(py));
        if changes.is_empty() && loads.is_empty() {
            return Ok(true); // nobody writes
        }
        let read = tables.iter().zip(partitions);
        let read: Vec<(i64, usize)> = read.flat_map(|((id, _), all)| all.iter().map(|one| (*id, *one))).collect();
        for (id, number) in &read {
            if changes.contains((id, number))? || loads.contains(id)? {
                return Ok(self.acknowledged.bind(py).call1((read,))?.is_none());
            }
        }
        Ok(true)
    }

    /// Count a request, and its keys among those that the sampler of hot keys lets pass, or have it sampled.
    pub fn counted(&self, py: Python, keys: usize, sample: impl FnOnce() -> PyResult<()>) -> PyResult<()> {
        let (counts, hot_keys) = (self.counts.bind(py), self.hot_keys.bind(py));
        add(counts, intern!(py, "frames_received"), 1)?;
        add(counts, intern!(py, "executions"), 1)?;
        let left: i64 = hot_keys.getattr(intern!(py, "left"))?.extract()?;
        if 0 < left && left <= keys as i64 {
            return sample();
        }
        hot_keys.setattr(intern!(py, "left"), left - keys as i64)
    }

    /// As `counted`, of the execution of a plan, which is the one that was used last now.
    pub fn executed(
        &self,
        py: Python,
        plan_id: &Py<PyString>,
        keys: usize,
        sample: impl FnOnce() -> PyResult<()>,
    ) -> PyResult<()> {
        self.counted(py, keys, sample)?;
        let kept = self.kept.bind(py);
        if kept.contains(plan_id)? {
            kept.call_method1(intern!(py, "move_to_end"), (plan_id,))?;
        }
        Ok(())
    }

    /// Have the keys of a request counted: of a plan, or of a table.
    pub fn sample(
        &self,
        py: Python,
        frame: &Bound<PyBytes>,
        plan: Option<&Py<PyAny>>,
        table_id: Option<i128>,
    ) -> PyResult<()> {
        self.sample.bind(py).call1((frame, plan, table_id)).map(|_| ())
    }

    /// Add a statement to those that have ended, as `StatementLog.note` does.
    pub fn list(&self, py: Python, entry: Entry) -> PyResult<()> {
        let (log, ended, elapsed_s) = (self.log.bind(py), self.ended.bind(py), entry.begun.elapsed().as_secs_f64());
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let number = add(log, intern!(py, "count"), 1)?;
        let (started_s, none) = (now_s - elapsed_s, py.None());
        let line = (number, entry.plan_id, true, started_s, elapsed_s, entry.said, none, entry.tenant);
        let line = line.into_pyobject(py)?;
        ended.append(&line)?;
        if elapsed_s >= self.slow_s || ended.len() > self.held_max {
            log.call_method1(intern!(py, "appended"), (line,))?;
        }
        Ok(())
    }

    /// What is listed of an answer by this member alone.
    pub fn said<'py>(
        &self,
        py: Python<'py>,
        read: usize,
        total: i128,
        version: i128,
        rows: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.said.bind(py).call1((intern!(py, "local"), read, total, version, rows))
    }

    /// What is listed of an answer that a client puts together.
    pub fn said_of_scatter<'py>(
        &self,
        py: Python<'py>,
        mut members: Vec<&str>,
        read: i128,
        total: i128,
        version: i128,
        rows: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        members.sort_unstable();
        self.said.bind(py).call1((intern!(py, "scatter"), read, total, version, rows, py.None(), members))
    }

    /// The newest version of the statistics.
    pub fn statistics_version(&self, py: Python) -> PyResult<i128> {
        self.statistics_version.bind(py).call0()?.extract()
    }
}

/// The accounts of the tenants of a member, and what says of one that is not free whether it may be answered now.
#[derive(FromPyObject)]
pub struct Tenants(Py<PyDict>, Py<PyAny>);

impl Tenants {
    /// Shows Python's collector what is held.
    pub fn traverse(&self, visit: &PyVisit) -> Result<(), PyTraverseError> {
        visit.call(&self.0)?;
        visit.call(&self.1)
    }

    /// The account of a peer; `None` if it has none yet, or its statement is to wait for its share.
    pub fn account<'py>(&self, py: Python<'py>, peer: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(account) = self.0.bind(py).get_item(peer.getattr(intern!(py, "tenant"))?)? else {
            return Ok(None);
        };
        let may_be_answered =
            account.getattr(intern!(py, "is_free"))?.is_truthy()? || self.1.bind(py).call1((&account,))?.is_truthy()?;
        Ok(may_be_answered.then_some(account))
    }
}

/// Add an answer to the account of its tenant, as `TenantAccount.worked` does.
pub fn charge(account: &Bound<PyAny>, elapsed_s: f64, nbytes: usize, is_get: bool) -> PyResult<()> {
    let py = account.py();
    let short_s: f64 = account.getattr(intern!(py, "short_s"))?.extract::<f64>()? + elapsed_s;
    account.setattr(intern!(py, "short_s"), short_s)?;
    add(account, intern!(py, "bytes_sent"), nbytes as i64)?;
    if is_get {
        add(account, intern!(py, "gets"), 1)?;
    }
    if short_s > account.getattr(intern!(py, "look_s"))?.extract::<f64>()? {
        account.call_method1(intern!(py, "look"), (elapsed_s, 1))?;
    }
    Ok(())
}

/// Add to a number that is an attribute; returns the sum.
fn add(object: &Bound<PyAny>, name: &Bound<PyString>, count: i64) -> PyResult<i64> {
    let sum = object.getattr(name)?.extract::<i64>()? + count;
    object.setattr(name, sum)?;
    Ok(sum)
}
