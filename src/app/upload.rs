//! Uploads: a stream of bytes becomes chunks in the store, and a dataset once all of them are there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use rayon::prelude::*;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::people::{UploadPeople, describe_people};
use super::record_key::RecordKeyCheck;
use super::service::AppService;
use crate::control::{Control, fewest_at_once};
use crate::engine::RemoteError;
use crate::identity::Caller;
use crate::inputs::{
    TableContentHash, column_of, contribution_problem, encrypt_profiles, evidence_problem, keep_evidence,
};
use crate::microdata::formats::compression::decoder;
use crate::microdata::formats::csv::CsvOptions;
use crate::microdata::formats::parquet::ParquetFiles;
use crate::microdata::formats::{Encoding, IngestError, IngestLimits, InputFormat, TableReader};
use crate::microdata::{AttributeType, Chunk, ChunkColumn, ChunkFile, ColumnProfile, ProfileBuilder, formats};
use crate::people::{
    BoundedTable, ContributionBound, ContributionCounts, ContributionSpool, Evidence, EvidenceCollector, KeyLayout,
    SystemColumns,
};
use crate::ports::{AuditAction, BoundedContributions, DatasetRecord, EngineTable, StoreError};
use crate::problem::{Kind, Problem};
use crate::publication::ContributionChoice;
use crate::vault::{Ciphertext, CiphertextContext, ContentHasher, DataKey};

/// What the caller says of a table.
#[derive(Clone, Debug, Default)]
pub struct UploadRequest {
    /// A name for readers.
    pub name: Option<String>,
    /// The population whose persons the rows are about.
    pub population: Option<String>,
    /// The columns that identify persons, as `PersonColumns::parse` reads them; those of the population when not given.
    pub person: Option<String>,
    /// The most rows of one person; that of the population when not given.
    pub max_rows_per_person: Option<u64>,
    /// The former name of `population`.
    pub series: Option<String>,
    /// The columns that identify a record.
    pub record_key: Option<Vec<String>>,
    /// The column that identifies a subject.
    pub subject: Option<String>,
    /// The most rows of one subject.
    pub max_rows_per_subject: Option<u64>,
    /// Which rows of a person are kept; all, where it says nothing.
    pub keep: Option<KeptContributions>,
    /// The address from which the table is read; none where the caller sends it.
    pub source: Option<String>,
    /// The table of another engine that stays there; none where the rows come here.
    pub place: Option<EngineTable>,
    /// What the table is written in.
    pub format: InputFormat,
    /// How the bytes are packed.
    pub encoding: Option<Encoding>,
    /// How text is to be understood; the types hold for every format.
    pub options: CsvOptions,
    /// What is accepted.
    pub limits: IngestLimits,
    /// Where a file is kept that is read from its end.
    pub spool: PathBuf,
}

/// How many rows of a person are kept, and which.
#[derive(Clone, Debug)]
pub struct KeptContributions {
    /// The most rows of a person.
    pub rows: u64,
    /// How they are chosen.
    pub choice: ContributionChoice,
}

impl UploadRequest {
    /// How many rows of a person are kept, where others are left out.
    pub(super) fn kept_rows(&self) -> Option<u64> {
        self.keep.as_ref().map(|keep| keep.rows)
    }

    /// The most rows of a person of no population.
    fn max_rows(&self) -> Option<u64> {
        self.max_rows_per_subject.or(self.kept_rows())
    }
}

/// An upload on a blocking thread, under an id that nothing has.
#[derive(Clone, Copy)]
pub struct Upload<'a> {
    /// Keeps the dataset.
    pub service: &'a AppService,
    /// The uploader.
    pub caller: &'a Caller,
    /// Runs the requests to the store.
    pub handle: &'a Handle,
    /// The id of the dataset.
    pub id: Uuid,
}

impl<'a> Upload<'a> {
    /// Stores a table: afterwards the whole dataset is there, or nothing of it. `received` checks the body once it has ended, and
    /// returns its bytes.
    ///
    /// # Errors
    /// What is wrong with the table, or the store's problem.
    pub fn store(
        self,
        request: UploadRequest,
        body: impl Read + Send + 'static,
        received: &dyn Fn() -> Result<u64, Problem>,
    ) -> Result<DatasetRecord, Problem> {
        let open = |request: &UploadRequest| -> Result<Box<dyn TableReader>, Problem> {
            let UploadRequest { format, encoding, options, limits, spool, .. } = request;
            let encoding = encoding.unwrap_or(Encoding::Identity);
            let decoded = decoder(body, encoding, limits).map_err(|error| Problem::from(IngestError::from(error)))?;
            Ok(formats::open(*format, decoded, options.clone(), limits, spool)?)
        };
        self.store_table(request, open, received)
    }

    /// Registers a table of another engine: it is copied there, and the copy is read here once. What is known of the table is stored,
    /// and none of its rows.
    ///
    /// # Errors
    /// `source-refused`, `source-unreadable`, what is wrong with the table, or the store's problem.
    pub fn register(self, request: UploadRequest, control: &Control) -> Result<DatasetRecord, Problem> {
        if request.keep.is_some() {
            let detail = "keep chooses among rows, which stay in the engine: bound them in a view, or upload the table";
            return Err(Problem::new(Kind::MalformedRequest, detail));
        }
        if !request.options.types.is_empty() {
            let detail = "types are those of the table in the engine: cast its columns in a view, or upload the table";
            return Err(Problem::new(Kind::MalformedRequest, detail));
        }
        let place = request.place.clone().ok_or_else(|| Problem::new(Kind::Internal, "a table without a place"))?;
        let copy = self.service.engines.find(&self.caller.tenant, &place)?.copy(&place.table, control);
        let copy = copy.map_err(unread)?;
        let open = |request: &UploadRequest| -> Result<Box<dyn TableReader>, Problem> {
            Ok(Box::new(ParquetFiles::new(copy.files().map_err(unread)?, &request.limits)?))
        };
        // of no body; a table whose caller has gone is not registered
        let waited_for = || control.check().map(|()| 0).map_err(|_| unread(RemoteError::Cancelled));
        self.store_table(request, open, &waited_for)
    }

    fn store_table(
        self,
        request: UploadRequest,
        open: impl FnOnce(&UploadRequest) -> Result<Box<dyn TableReader>, Problem>,
        received: &dyn Fn() -> Result<u64, Problem>,
    ) -> Result<DatasetRecord, Problem> {
        let stored = self.try_store(request, open, received);
        if stored.is_err() {
            // what stays behind is swept at the next start
            if let Err(error) = self.handle.block_on(self.service.store.discard_upload(self.id)) {
                tracing::warn!(error = %error, "the chunks of a failed upload stay until the next sweep");
            }
        }
        stored
    }

    fn try_store(
        self,
        request: UploadRequest,
        open: impl FnOnce(&UploadRequest) -> Result<Box<dyn TableReader>, Problem>,
        received: &dyn Fn() -> Result<u64, Problem>,
    ) -> Result<DatasetRecord, Problem> {
        let people = self.handle.block_on(self.service.upload_people(self.caller, &request))?;
        let WrittenTable { stored, wrapped_key, rows, names, kinds, content, collected, bounded } =
            self.write(&request, &people, open(&request)?)?;
        let bytes = received()?;
        let CollectedPeople { record_key, evidence, systems } = collected;
        record_key.map_or(Ok(()), RecordKeyCheck::finish)?;
        let evidence = stored.evidence(evidence)?;
        let columns = names.into_iter().zip(kinds).zip(0..);
        let profiles = columns.map(|((name, kind), column)| stored.profile(column, name, kind, &request.limits));
        let mut profiles: Vec<ColumnProfile> = profiles.collect::<Result<_, _>>()?;
        let contributions = bounded.map(|of| of.noted(&mut profiles));
        if let Some((subject, most)) = request.subject.as_ref().zip(request.max_rows())
            && systems.is_empty()
        {
            check_subjects(subject, most, &profiles)?;
        }
        let ciphertext = encrypt_profiles(&stored.key, &profiles)?;
        let max_rows_per_subject = request.max_rows();
        let mut dataset = DatasetRecord {
            id: self.id,
            tenant: self.caller.tenant.clone(),
            name: request.name,
            series: self.id.to_string(),
            same_people: None,
            same_people_reason: None,
            population: None,
            person: BTreeMap::new(),
            record_key: request.record_key,
            max_rows_per_subject,
            subject: request.subject,
            contributions,
            uploaded_by: self.caller.actor.name(),
            created_at: self.service.clock.now(),
            rows,
            bytes,
            format: request.format.media_type().to_owned(),
            content_hash: content.finish(),
            chunks: if stored.apart.is_some() { 0 } else { stored.chunks },
            profiles: Some(ciphertext),
            wrapped_key: Some(wrapped_key),
            purged_at: None,
            place: request.place,
        };
        describe_people(&mut dataset, &people, &systems, &evidence)?;
        let mut audit_entry = self.service.audit_entry(self.caller, AuditAction::Upload, dataset.id);
        let of_place = |EngineTable { engine, table }: &EngineTable| format!("{engine}: {table}");
        audit_entry.detail = request.source.or(dataset.place.as_ref().map(of_place));
        self.handle.block_on(self.service.store.insert_dataset(&dataset, &audit_entry))?;
        self.service.readings.evidence.keep(self.id, evidence.into());
        Ok(dataset)
    }

    fn hasher(self) -> ContentHasher {
        self.service.vault.content_hasher(&self.caller.tenant)
    }

    /// Writes the chunks of a table.
    fn write(
        self,
        request: &UploadRequest,
        people: &UploadPeople,
        mut reader: Box<dyn TableReader>,
    ) -> Result<WrittenTable<'a>, Problem> {
        let names = reader.names().to_vec();
        known_columns(request, &names)?;
        let layout = people.layout(&names, request.record_key.as_deref())?;
        let mut bounded = None;
        if let Some(keep) = &request.keep {
            let table = self.bounded(request, keep, &layout, reader)?;
            bounded = Some(BoundedRows {
                choice: keep.choice.clone(),
                counts: table.counts,
                chose_rows: table.chose_rows.clone(),
            });
            reader = Box::new(table);
        }

        let (key, wrapped_key) = self.service.vault.fresh_data_key(self.id).map_err(StoreError::from)?;
        self.handle.block_on(self.service.store.begin_upload(self.id, &wrapped_key))?;
        let apart = request.place.as_ref().map(|_| ChunkFile::new(&request.spool)).transpose();
        let apart = apart.map_err(IngestError::Spool)?;
        let mut stored = StoredChunks { upload: self, key, chunks: 0, first: None, apart };
        let mut content = TableContentHash::new(self.hasher(), &names);
        let mut collected = CollectedPeople {
            record_key: request
                .record_key
                .as_ref()
                .map(|key| RecordKeyCheck::new(self.hasher(), &names, key, &request.spool)),
            systems: layout.systems.clone(),
            evidence: EvidenceCollector::new(self.hasher(), layout, &request.spool),
        };
        let mut rows = 0;
        while let Some(chunk) = reader.next_chunk()? {
            if let Some(record_key) = &mut collected.record_key {
                record_key.add(&chunk)?;
            }
            let ((), added) = rayon::join(|| content.add(&chunk), || collected.evidence.add(&chunk, |_| true));
            added.map_err(evidence_problem)?;
            rows += u64::from(chunk.rows);
            stored.put(chunk)?;
        }
        if rows == 0 {
            return Err(Problem::new(Kind::EmptyTable, "the table has no rows"));
        }
        Ok(WrittenTable { stored, wrapped_key, rows, names, kinds: reader.kinds(), content, collected, bounded })
    }

    /// The table without the rows of persons that exceed the bound. They are never stored.
    fn bounded(
        self,
        request: &UploadRequest,
        keep: &KeptContributions,
        layout: &KeyLayout,
        reader: Box<dyn TableReader>,
    ) -> Result<BoundedTable, Problem> {
        let person = match (&layout.systems[..], &request.subject) {
            ([system], _) if system.columns.len() == 1 => system.clone(),
            ([], Some(subject)) => {
                let column = layout.names.iter().position(|name| name == subject);
                SystemColumns::alone("subject", column.into_iter().collect())
            }
            ([], None) => {
                let detail = "keep needs to know whose a row is: name the column with subject, or a population with a \
                              person key";
                return Err(Problem::new(Kind::MalformedRequest, detail));
            }
            _ => {
                let detail = "keep needs one column that identifies persons: name one of the table with person, or add \
                              one with a number for each person";
                return Err(Problem::new(Kind::MalformedRequest, detail));
            }
        };
        let bound = ContributionBound { rows: keep.rows, order: keep.choice.order(), person };
        let control = Control::default();
        let spool = ContributionSpool { limits: &request.limits, folder: &request.spool, control: &control };
        BoundedTable::read(reader, &bound, &self.hasher(), spool).map_err(contribution_problem)
    }
}

/// A table whose chunks are stored, and what was gathered while they were written.
struct WrittenTable<'a> {
    stored: StoredChunks<'a>,
    wrapped_key: Vec<u8>,
    rows: u64,
    names: Vec<String>,
    kinds: Vec<Option<AttributeType>>,
    content: TableContentHash,
    collected: CollectedPeople,
    bounded: Option<BoundedRows>,
}

/// What became of the rows of persons who had more than are kept.
struct BoundedRows {
    choice: ContributionChoice,
    counts: ContributionCounts,
    /// For each column whether it says something of the choice.
    chose_rows: Vec<bool>,
}

impl BoundedRows {
    /// What the dataset says of it; the profiles say which columns chose.
    fn noted(self, profiles: &mut [ColumnProfile]) -> BoundedContributions {
        for (profile, chose_rows) in profiles.iter_mut().zip(self.chose_rows) {
            profile.chose_rows = chose_rows;
        }
        let ContributionCounts { rows, persons } = self.counts;
        BoundedContributions { choice: self.choice, left_out_rows: rows, cut_persons: persons }
    }
}

/// What is gathered of the people of an upload.
struct CollectedPeople {
    record_key: Option<RecordKeyCheck>,
    evidence: EvidenceCollector<ContentHasher>,
    /// The key systems of the evidence.
    systems: Vec<SystemColumns>,
}

/// The encrypted chunks of an upload, or those of a table whose rows stay elsewhere.
struct StoredChunks<'a> {
    upload: Upload<'a>,
    key: DataKey,
    chunks: u32,
    /// The first one, while there is no other: small tables are not read again.
    first: Option<Chunk>,
    /// Where chunks wait for the profiles that are not kept.
    apart: Option<ChunkFile>,
}

impl StoredChunks<'_> {
    fn put(&mut self, chunk: Chunk) -> Result<(), Problem> {
        if let Some(apart) = &mut self.apart {
            apart.push(&chunk).map_err(IngestError::Spool)?;
            self.chunks += 1;
            return Ok(());
        }
        let encrypt = |(no, column): (usize, &ChunkColumn)| -> Result<(u32, Ciphertext), StoreError> {
            let no = no as u32;
            let context = CiphertextContext::Chunk { chunk: self.chunks, column: no };
            Ok((no, self.key.encrypt(context, &column.encode())?))
        };
        let columns = chunk.columns.par_iter().enumerate().with_min_len(fewest_at_once(chunk.rows as usize));
        let payloads: Result<Vec<_>, _> = columns.map(encrypt).collect();
        let Upload { service, handle, id, .. } = self.upload;
        handle.block_on(service.store.put_column_chunks(id, self.chunks, &payloads?))?;
        self.chunks += 1;
        self.first = (self.chunks == 1).then_some(chunk);
        Ok(())
    }

    fn column(&self, chunk: u32, column: u32) -> Result<Cow<'_, ChunkColumn>, Problem> {
        if let Some(known) = self.first.as_ref().and_then(|first| first.columns.get(column as usize)) {
            return Ok(Cow::Borrowed(known));
        }
        if let Some(apart) = &self.apart {
            let mut read = apart.columns(chunk, [column as usize]).map_err(IngestError::Spool)?;
            return read.columns.pop().map(Cow::Owned).ok_or_else(|| StoreError::NotFound.into());
        }
        let Upload { service, handle, id, .. } = self.upload;
        let payload = handle.block_on(service.store.get_column_chunk(id, chunk, column))?;
        let payload = payload.ok_or(StoreError::NotFound)?;
        Ok(Cow::Owned(column_of(&self.key, chunk, column, &payload)?))
    }

    /// Stores the evidence of the rows.
    fn evidence(&self, evidence: EvidenceCollector<ContentHasher>) -> Result<Evidence, Problem> {
        let Upload { service, handle, id, .. } = self.upload;
        let store = service.store.as_ref();
        keep_evidence(handle, store, id, evidence, &Control::default()).map_err(evidence_problem)
    }

    fn profile(
        &self,
        column: u32,
        name: String,
        kind: Option<AttributeType>,
        limits: &IngestLimits,
    ) -> Result<ColumnProfile, Problem> {
        let mut profile = ProfileBuilder::new(limits);
        while profile.next_pass() {
            for chunk in 0..self.chunks {
                let read = self.column(chunk, column)?;
                profile.push(&read);
            }
        }
        Ok(profile.finish(name, kind))
    }
}

/// Every column that the request names must be there.
fn known_columns(request: &UploadRequest, names: &[String]) -> Result<(), Problem> {
    let named = request.record_key.iter().flatten().chain(&request.subject);
    match named.into_iter().find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(unknown) => {
            let detail = format!("the request names column {unknown:?}, which the table does not have");
            Err(Problem::new(Kind::MalformedRequest, detail))
        }
    }
}

/// Checks that every row names a subject and that no subject has more than `most` rows.
fn check_subjects(subject: &str, most: u64, profiles: &[ColumnProfile]) -> Result<(), Problem> {
    let Some(column) = profiles.iter().find(|profile| profile.name == subject) else { return Ok(()) };
    let malformed = |detail: String| Problem::new(Kind::UploadMalformed, detail).with("column", subject);
    if column.missing > 0 {
        return Err(malformed(format!("{} rows are of no subject", column.missing)));
    }
    if column.top > most {
        let detail = format!("a subject has {} rows, and max_rows_per_subject is {most}", column.top);
        return Err(malformed(detail).with("limit", most).with("found", column.top));
    }
    if column.overflow() {
        return Err(malformed("there are more subjects than can be counted".to_owned()));
    }
    Ok(())
}

/// The problem of a table that an engine does not give.
fn unread(error: RemoteError) -> Problem {
    let (reason, detail) = match error {
        RemoteError::Cancelled => return Problem::new(Kind::Unavailable, "the registration was cancelled"),
        RemoteError::Absent => ("not_found", "the engine has no such table".to_owned()),
        RemoteError::Unsupported(detail) => ("unsupported", detail),
        RemoteError::Unavailable(cause) => {
            tracing::warn!(cause, "an engine cannot be reached");
            ("unreachable", "the engine cannot be reached; try again later, or ask its operator".to_owned())
        }
        RemoteError::Failed(cause) => {
            tracing::warn!(cause, "an engine failed to copy a table");
            ("failed", "the engine could not copy the table; its operator finds the cause in the log".to_owned())
        }
    };
    Problem::new(Kind::SourceUnreadable, detail).with("reason", reason)
}
