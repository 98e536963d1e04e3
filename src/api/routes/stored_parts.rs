use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::served;
use crate::api::http::app::App;
use crate::control::Control;
use crate::engine::{EngineError, ReadFile, VerificationMaterial};
use crate::identity::Caller;
use crate::inputs::{MemoryBudget, MemoryPermit, PartStorage};
use crate::ports::StoreError;
use crate::problem::{Fault, Kind, Problem};
use crate::report::Manifest;
use crate::{engine, spec};

/// Memory of files during their reading, released when dropped.
pub(in crate::api) struct FileMemory {
    budget: MemoryBudget,
    /// Bytes of completely read files.
    before: u64,
    bytes: u64,
    taken: Vec<MemoryPermit>,
}

/// The smallest amount of memory to acquire at once.
const MEMORY_STEP_BYTES: u64 = 16 << 20;

impl FileMemory {
    pub(super) const fn new(budget: MemoryBudget) -> Self {
        Self { budget, before: 0, bytes: 0, taken: Vec::new() }
    }

    /// Acquires the missing memory for a file of `bytes` bytes in addition to earlier files.
    pub(super) fn hold(&mut self, file: u64) -> Result<(), Problem> {
        let need = self.before.saturating_add(file);
        self.budget.check(need)?;
        if need > self.bytes {
            let more = (need - self.bytes).max(MEMORY_STEP_BYTES.min(need));
            self.taken.push(self.budget.try_acquire(more)?);
            self.bytes += more;
        }
        Ok(())
    }

    /// Reads a file while acquiring its memory.
    pub(super) fn read(
        &mut self,
        file: impl FnOnce(engine::ReserveMemory<'_>) -> Result<ReadFile, Problem>,
    ) -> Result<ReadFile, Problem> {
        let mut most = 0;
        let read = file(&mut |need| {
            most = need;
            self.hold(need)
        });
        self.before = self.before.saturating_add(most);
        read
    }
}

/// The problem of faults found during the computation.
pub(in crate::api) fn engine_problem(faults: Vec<Fault>) -> EngineError {
    EngineError::Refused(Problem::of_faults(faults))
}

/// The stored parts of a release.
pub(in crate::api) struct StoredParts {
    pub(in crate::api) manifest: Manifest,
    parts: PartStorage,
    budget: MemoryBudget,
}

/// Finds a release that the caller may read and records the reading.
pub(in crate::api) async fn open_stored_parts(
    app: &App,
    caller: &Caller,
    id: Uuid,
) -> Result<(Manifest, StoredParts), Problem> {
    let (release, manifest) = served::read(app, caller, id).await?;
    served::record_read(app, caller, &release).await?;
    let store = Arc::clone(&app.service.store);
    let parts = PartStorage::new(Handle::current(), store, release.tenant, release.job, release.attempt);
    let shelved = StoredParts { manifest: manifest.clone(), parts, budget: app.service.budget.clone() };
    Ok((manifest, shelved))
}

impl StoredParts {
    /// Reads releases of one table of tuples, for a join with the first; the memory is released with the returned guard.
    pub(in crate::api) fn joinable(
        shelves: &[Self],
        control: &Control,
    ) -> Result<(engine::JoinableRelease, impl Sized + use<>), EngineError> {
        let mut memory =
            FileMemory::new(shelves.first().map_or_else(MemoryBudget::default, |storage| storage.budget.clone()));
        let mut joinable = engine::JoinableRelease::default();
        for storage in shelves {
            control.check()?;
            let part = engine::tuples_of(&storage.manifest).map_err(EngineError::Refused)?;
            let bytes = storage.open(&part.csv())?;
            let read = memory.read(|take| engine::read_published(part, bytes, take)).map_err(EngineError::Refused)?;
            joinable.add(&storage.manifest, read)?;
        }
        Ok((joinable, memory))
    }

    fn open(&self, file: &str) -> Result<Box<dyn std::io::Read + '_>, EngineError> {
        self.parts.reader(file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                EngineError::Refused(Problem::new(Kind::Gone, "the release was rejected or withdrawn"))
            }
            _ => EngineError::Refused(StoreError::corrupt(error).into()),
        })
    }

    /// Runs the attack `corruption` on the parts.
    pub(in crate::api) fn corruption(
        &self,
        known: usize,
        rule: Option<&str>,
        control: &Control,
    ) -> Result<engine::AttackReport, EngineError> {
        let attack = engine::Corruption::new(&self.manifest, known, rule)?;
        let mut memory = FileMemory::new(self.budget.clone());
        memory.hold(attack.memory()).map_err(EngineError::Refused)?;
        attack.play(&self.parts, control)
    }

    /// Reads all parts on a blocking thread; the memory is released with the returned guard. Rejects counterfeits.
    pub(in crate::api) fn read(
        &self,
        control: &Control,
    ) -> Result<(VerificationMaterial, impl Sized + use<>), EngineError> {
        self.read_as(engine::submitted_tables, control)
    }

    /// Like [`Self::read`], with the tables that `tables_of` derives from the manifest.
    pub(in crate::api) fn read_as(
        &self,
        tables_of: fn(&Manifest) -> Result<Vec<spec::SubmittedTable>, Problem>,
        control: &Control,
    ) -> Result<(VerificationMaterial, impl Sized + use<>), EngineError> {
        let tables = tables_of(&self.manifest).map_err(EngineError::Refused)?;
        let mut memory = FileMemory::new(self.budget.clone());
        let mut files = Vec::new();
        for part in self.manifest.tables.iter().flat_map(|table| &table.parts) {
            control.check()?;
            let bytes = self.open(&part.csv())?;
            let read = memory.read(|take| engine::read_published(part, bytes, take));
            files.push(read.map_err(EngineError::Refused)?);
        }
        Ok((VerificationMaterial::new(&tables, files, false).map_err(engine_problem)?, memory))
    }
}
