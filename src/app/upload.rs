//! Taking in a table: a stream of bytes becomes chunks in the store, and a dataset once all of them are there.

use std::io::Read;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::service::AppService;
use crate::fingerprints::{FingerprintCollector, FingerprintComparison, overlaps};
use crate::identity::Caller;
use crate::inputs::{column_of, encrypt_profiles};
use crate::microdata::formats::compression::decoder;
use crate::microdata::formats::csv::CsvOptions;
use crate::microdata::formats::{Encoding, IngestError, IngestLimits, InputFormat};
use crate::microdata::{Chunk, ChunkColumn, ColumnProfile, ProfileBuilder, formats};
use crate::ports::{AuditAction, DatasetRecord, FingerprintPiece, FingerprintRecord, NewFingerprint, StoreError};
use crate::problem::{Kind, Problem};
use crate::vault::{Ciphertext, CiphertextContext, ContentHasher};

/// How often an upload is compared with others that came first.
const MAX_ADMISSION_RETRIES: u32 = 20;

/// What the caller says of a table.
#[derive(Clone, Debug, Default)]
pub struct UploadRequest {
    /// A name for people.
    pub name: Option<String>,
    /// All that speaks of the same people; the dataset's own when not given.
    pub series: Option<String>,
    /// The columns that identify a record.
    pub record_key: Option<Vec<String>>,
    /// The column that identifies a subject.
    pub subject: Option<String>,
    /// The most rows of one subject.
    pub max_rows_per_subject: Option<u64>,
    /// Declaration whether the data subjects are those of other series, and why not.
    pub same_people: Option<(bool, String)>,
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

/// Takes in a table, on a blocking thread, under an id that nothing has. `received` judges the body once it has ended. Either the
/// dataset is there afterwards or nothing of it is.
///
/// # Errors
/// What is wrong with the table, or the store's problem.
pub fn upload(
    service: &AppService,
    caller: &Caller,
    handle: &Handle,
    id: Uuid,
    request: UploadRequest,
    body: impl Read + Send + 'static,
    received: &dyn Fn() -> Result<u64, Problem>,
) -> Result<DatasetRecord, Problem> {
    let taken = store_table(service, caller, handle, id, request, body, received);
    if taken.is_err() {
        // what stays behind is swept at the next start
        if let Err(error) = handle.block_on(service.store.discard_upload(id)) {
            tracing::warn!(error = %error, "the chunks of a failed upload stay until the next sweep");
        }
    }
    taken
}

fn store_table(
    service: &AppService,
    caller: &Caller,
    handle: &Handle,
    id: Uuid,
    request: UploadRequest,
    body: impl Read + Send + 'static,
    received: &dyn Fn() -> Result<u64, Problem>,
) -> Result<DatasetRecord, Problem> {
    let limits = &request.limits;
    let encoding = request.encoding.unwrap_or(Encoding::Identity);
    let decoded = decoder(body, encoding, limits).map_err(|error| Problem::from(IngestError::from(error)))?;
    let mut reader = formats::open(request.format, decoded, request.options.clone(), limits, &request.spool)?;
    let names = reader.names().to_vec();
    known_columns(&request, &names)?;

    let (key, wrapped_key) = service.vault.fresh_data_key(id).map_err(StoreError::from)?;
    handle.block_on(service.store.begin_upload(id, &wrapped_key))?;
    let template = service.vault.content_hasher(&caller.tenant);
    let mut content = TableContentHash::new(template.clone(), &names);
    let mut people = FingerprintCollector::new(template.clone(), &names, request.record_key.as_deref(), &request.spool);
    let (mut rows, mut chunks) = (0u64, 0u32);
    while let Some(chunk) = reader.next_chunk()? {
        content.add(&chunk);
        people.add(&chunk)?;
        let encrypt = |(column, no): (&ChunkColumn, u32)| -> Result<(u32, Ciphertext), StoreError> {
            Ok((no, key.encrypt(CiphertextContext::Chunk { chunk: chunks, column: no }, &column.encode())?))
        };
        let payloads: Result<Vec<_>, _> = chunk.columns.iter().zip(0..).map(encrypt).collect();
        let payloads = payloads?;
        handle.block_on(service.store.put_column_chunks(id, chunks, &payloads))?;
        rows += u64::from(chunk.rows);
        chunks += 1;
    }
    let kinds = reader.kinds();
    drop(reader);
    if rows == 0 {
        return Err(Problem::new(Kind::EmptyTable, "the table has no rows"));
    }
    let bytes = received()?;

    let stored = |chunk: u32, column: u32| -> Result<ChunkColumn, Problem> {
        let payload = handle.block_on(service.store.get_column_chunk(id, chunk, column));
        let payload = payload.and_then(|found| found.ok_or(StoreError::NotFound))?;
        column_of(&key, chunk, column, &payload).map_err(Problem::from)
    };
    let columns = names.len() as u32;
    let whole = |number: u32| -> Result<Chunk, Problem> {
        let columns: Vec<_> = (0..columns).map(|column| stored(number, column)).collect::<Result<_, _>>()?;
        Ok(Chunk { rows: columns.first().map_or(0, |column| column.rows() as u32), columns })
    };
    // a piece of the set and the sample are held against those of others
    let (mut first, mut sample) = (Vec::new(), Vec::new());
    let people = people.finish(chunks, whole, |piece, hashes| {
        match piece {
            FingerprintPiece::Set(0) => first = hashes.to_vec(),
            FingerprintPiece::Sample => sample = hashes.to_vec(),
            FingerprintPiece::Set(_) => {}
        }
        handle.block_on(service.store.put_people(id, piece, hashes)).map_err(Problem::from)
    })?;

    let mut profiles: Vec<ColumnProfile> = Vec::with_capacity(names.len());
    for ((name, kind), column) in names.into_iter().zip(kinds).zip(0..) {
        let mut profile = ProfileBuilder::new(limits);
        while profile.next_pass() {
            for chunk in 0..chunks {
                profile.push(&stored(chunk, column)?);
            }
        }
        profiles.push(profile.finish(name, kind));
    }
    if let Some((subject, most)) = request.subject.as_ref().zip(request.max_rows_per_subject) {
        persons(subject, most, &profiles)?;
    }
    let ciphertext = encrypt_profiles(&key, &profiles)?;
    let created_at: DateTime<Utc> = service.clock.now();
    let mut dataset = DatasetRecord {
        id,
        tenant: caller.tenant.clone(),
        name: request.name,
        series: request.series.unwrap_or_else(|| id.to_string()),
        same_people: request.same_people.as_ref().map(|(same, _)| *same),
        same_people_reason: request.same_people.map(|(_, reason)| reason),
        record_key: request.record_key,
        subject: request.subject,
        max_rows_per_subject: request.max_rows_per_subject,
        created_at,
        rows,
        bytes,
        format: request.format.media_type().to_owned(),
        content_hash: content.finish(template, &profiles),
        chunks,
        profiles: Some(ciphertext),
        wrapped_key: Some(wrapped_key),
        purged_at: None,
        overlaps: Vec::new(),
    };
    let record = FingerprintRecord {
        dataset: id,
        series: dataset.series.clone(),
        content_hash: dataset.content_hash,
        people: Some(people.clone()),
    };
    let newcomer = FingerprintComparison::new(&record, &people, &sample, &first)?;
    for _ in 0..MAX_ADMISSION_RETRIES {
        let admitted = handle.block_on(admit(service, caller, &mut dataset, &newcomer));
        if admitted? {
            return Ok(dataset);
        }
    }
    Err(Problem::new(Kind::Unavailable, "other uploads kept coming first").retry_after(5))
}

/// Compares a dataset with those of other series, and makes it visible unless others came meanwhile: of two uploads at once, the
/// second to come knows of the first.
async fn admit(
    service: &AppService,
    caller: &Caller,
    dataset: &mut DatasetRecord,
    newcomer: &FingerprintComparison<'_>,
) -> Result<bool, StoreError> {
    let (uploads, others) = service.store.people(&caller.tenant, None).await?;
    dataset.overlaps = overlaps(service.store.as_ref(), &caller.tenant, newcomer, &others).await?;
    let people = NewFingerprint { people: newcomer.people.clone(), uploads };
    let audit_entry = service.audit_entry(caller, AuditAction::Upload, dataset.id);
    service.store.admit_dataset(dataset, Some(&people), &audit_entry).await
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
fn persons(subject: &str, most: u64, profiles: &[ColumnProfile]) -> Result<(), Problem> {
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

/// A keyed hash of a table's content, names and values: the sum of the rows' hashes. The order of rows and of columns does not
/// enter it, nor do types: a table of the same subjects in another arrangement, or with other types of columns, is the same
/// content to the ledger.
struct TableContentHash {
    template: ContentHasher,
    /// The columns by name.
    order: Vec<usize>,
    sum: [u64; 4],
    row: Vec<u8>,
}

impl TableContentHash {
    fn new(template: ContentHasher, names: &[String]) -> Self {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_unstable_by_key(|&column| &names[column]);
        Self { template, order, sum: [0; 4], row: Vec::new() }
    }

    fn add(&mut self, chunk: &Chunk) {
        for row in 0..chunk.rows as usize {
            self.row.clear();
            self.row.push(b'r');
            for &column in &self.order {
                match chunk.columns[column].value(row) {
                    None => self.row.extend_from_slice(&u32::MAX.to_le_bytes()),
                    Some(value) => {
                        self.row.extend_from_slice(&(value.len() as u32).to_le_bytes());
                        self.row.extend_from_slice(value);
                    }
                }
            }
            let mut hash = self.template.clone();
            hash.update(&self.row);
            for (sum, word) in self.sum.iter_mut().zip(hash.finish().chunks_exact(8)) {
                let word = word.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
                *sum = sum.wrapping_add(word);
            }
        }
    }

    /// The hash, over names too.
    fn finish(self, mut hash: ContentHasher, profiles: &[ColumnProfile]) -> [u8; 32] {
        hash.update(b"table\0");
        for &column in &self.order {
            let name = &profiles[column].name;
            hash.update(&(name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
        }
        for word in self.sum {
            hash.update(&word.to_le_bytes());
        }
        hash.finish()
    }
}
