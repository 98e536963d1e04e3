//! Parts of another engine, carried into the store of parts as any other.

use std::io;
use std::io::Read;

use sha2::{Digest, Sha256};

use super::port::{RemoteTable, WrittenRemotePart};
use super::release::PlannedRemotely;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::read_back::hex::hex;
use crate::engine::release::write::PartStore;
use crate::microdata::AttributeType;
use crate::microdata::formats::parquet::{MergedParquet, ParquetFiles};
use crate::microdata::formats::{IngestError, IngestLimits, TableReader};
use crate::publication::Part;
use crate::report::{PartRendering, WrittenPart};
use crate::verifier::CarriedPart;

/// The fewest rows of a stored chunk, but of the last one.
const CHUNK_ROWS: u32 = 1 << 15;

impl PlannedRemotely<'_> {
    /// Carries the parts into a store, and compares what is stored with what the engine wrote and audited.
    pub(super) fn carried(
        &self,
        table: &dyn RemoteTable,
        written: &[Vec<WrittenRemotePart>],
        store: &mut dyn PartStore,
        control: &Control,
    ) -> Result<Vec<Vec<WrittenPart>>, EngineError> {
        let mut tables = Vec::new();
        for (published, written) in self.publication.tables.iter().zip(written) {
            let mut parts = Vec::new();
            for (part, from) in published.parts.iter().zip(written) {
                let (file, kinds) = (part.file(&published.name), self.kinds_of(part));
                let carried = CarriedRows { part, file, kinds, table, from };
                let sha256 = Some(carried.carry(&mut *store, control)?);
                parts.push(WrittenPart { sha256, files: Vec::new(), types: self.types_of(part) });
                carried.check(&*store, control)?;
            }
            tables.push(parts);
        }
        Ok(tables)
    }
}

/// A part on its way.
struct CarriedRows<'a> {
    part: &'a Part,
    /// Its name in the store.
    file: String,
    kinds: Vec<AttributeType>,
    table: &'a dyn RemoteTable,
    from: &'a WrittenRemotePart,
}

impl CarriedRows<'_> {
    /// Puts the part into the store, and gives its digest.
    fn carry(&self, store: &mut dyn PartStore, control: &Control) -> Result<String, EngineError> {
        let mut rendering = PartRendering::new(self.rows()?);
        let (mut hash, mut csv, mut waiting, mut first, mut number) = (Sha256::new(), Vec::new(), 0u32, 0u64, 0);
        loop {
            control.check()?;
            let rows = rendering.render(&mut csv).map_err(unreadable)?;
            waiting += rows.unwrap_or_default();
            let is_last = rows.is_none();
            if waiting >= CHUNK_ROWS || (is_last && !csv.is_empty()) {
                hash.update(&csv);
                store.put(&self.file, number, first, waiting, &csv)?;
                (first, waiting, number) = (first + u64::from(waiting), 0, number + 1);
                csv.clear();
            }
            if is_last {
                break;
            }
        }
        Ok(hex(&hash.finalize()))
    }

    /// The rows in canonical order: files of buckets follow each other, those of tuples are merged.
    fn rows(&self) -> Result<Box<dyn TableReader>, EngineError> {
        let (files, limits) = (self.table.files_of(self.from)?, IngestLimits::of_own_parts());
        Ok(match self.part.bucketed {
            true => Box::new(ParquetFiles::new(files, &limits).map_err(unreadable)?),
            false => Box::new(MergedParquet::new(files, self.kinds.clone(), &limits).map_err(unreadable)?),
        })
    }

    fn check(&self, store: &dyn PartStore, control: &Control) -> Result<(), EngineError> {
        let names: Vec<String> = self.part.columns.iter().map(|column| column.name.clone()).collect();
        let part = CarriedPart { bucketed: self.part.bucketed, names: &names, kinds: &self.kinds, rows: self.part.len };
        let limits = IngestLimits::of_own_parts();
        let mut source = ParquetFiles::new(self.table.files_of(self.from)?, &limits).map_err(unreadable)?;
        self.check_digests()?;
        match part.check(&mut source, store.open(&self.file)?, control)? {
            None => Ok(()),
            Some(fault) => Err(EngineError::bug(format!("the audit of the stored part {} failed: {fault}", self.file))),
        }
    }

    /// The files are those that the engine wrote before its audit.
    fn check_digests(&self) -> Result<(), EngineError> {
        for (mut file, written) in self.table.files_of(self.from)?.into_iter().zip(&self.from.files) {
            let (mut hash, mut block) = (Sha256::new(), vec![0; 1 << 16]);
            loop {
                let read = file.read(&mut block)?;
                if read == 0 {
                    break;
                }
                hash.update(&block[..read]);
            }
            if hex(&hash.finalize()) != written.sha256 {
                return Err(EngineError::bug(format!("{} changed after it was audited", written.file)));
            }
        }
        Ok(())
    }
}

fn unreadable(error: IngestError) -> EngineError {
    io::Error::other(error.to_string()).into()
}
