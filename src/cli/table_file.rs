//! Tables that a command reads: from a path, an object store or standard input, in any format of an upload.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use clap::Args;

use super::exit::CommandOutcome;
use super::object_access::{Location, ObjectAccess};
use super::words::quoted;
use crate::control::{Control, Phase};
use crate::microdata::formats::compression::{decoder, sniff};
use crate::microdata::formats::csv::CsvOptions;
use crate::microdata::formats::{self, IngestError, IngestLimits, InputFormat, TableReader};
use crate::problem::Problem;

/// How tables are to be understood: the query parameters of an upload.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct TableOptions {
    /// The delimiter of CSV: one character, or `tab`; by default detected
    #[arg(long, value_name = "CHARACTER", help_heading = "Table")]
    delimiter: Option<String>,
    /// An unquoted CSV text for a missing value, in addition to the empty field
    #[arg(long, value_name = "TEXT", help_heading = "Table")]
    null: Option<String>,
    /// Types of columns, such as age:integer,zip:text; by default those of the file, or inferred
    #[arg(long, value_name = "TYPES", help_heading = "Table")]
    types: Option<String>,
}

impl TableOptions {
    /// The options as they stand on a command line, each after a space.
    pub(super) fn in_words(&self) -> String {
        let given = [("delimiter", &self.delimiter), ("null", &self.null), ("types", &self.types)];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        given.map(|(name, value)| format!(" --{name} {}", quoted(Path::new(value)))).collect()
    }

    /// The options as readers take them.
    pub(super) fn parsed(&self) -> Result<CsvOptions, CommandOutcome> {
        CsvOptions::from_texts(self.delimiter.as_deref(), self.null.clone(), self.types.as_deref())
            .map_err(|wrong| CommandOutcome::Usage(wrong.join("; ")))
    }
}

/// A table that is not opened yet.
#[derive(Clone)]
pub(super) struct TableFile<'a> {
    /// `-` for standard input; may be the address of an object.
    pub(super) path: &'a Path,
    /// Detected where it is not declared.
    pub(super) format: Option<InputFormat>,
    pub(super) options: CsvOptions,
}

impl TableFile<'_> {
    /// Begins to read the table; the read bytes are progress of `control`.
    pub(super) fn open(
        &self,
        limits: &IngestLimits,
        control: &Control,
    ) -> Result<Box<dyn TableReader>, CommandOutcome> {
        let io = |error: io::Error| self.unread(control, error.into());
        let counted = ProgressReader { source: self.source(control)?, control: control.clone() };
        let (encoding, sniffed) = sniff(counted).map_err(io)?;
        let mut decoded = decoder(sniffed, encoding, limits).map_err(io)?;
        let mut beginning = Vec::new();
        decoded.by_ref().take(8).read_to_end(&mut beginning).map_err(io)?;
        let format = self.format.unwrap_or_else(|| InputFormat::of_beginning(&beginning));
        if self.options.are_of_csv() && format != InputFormat::Csv {
            let message = format!("{}: --delimiter and --null belong to CSV", self.name());
            return Err(CommandOutcome::Usage(message));
        }
        let whole = Cursor::new(beginning).chain(decoded);
        formats::open(format, whole, self.options.clone(), limits, &std::env::temp_dir())
            .map_err(|error| self.unread(control, error))
    }

    fn source(&self, control: &Control) -> Result<Box<dyn Read + Send>, CommandOutcome> {
        let begin = |size| control.begin(Phase::Load, size).map_err(|_| CommandOutcome::interrupted());
        if is_standard_input(self.path) {
            begin(0)?;
            return Ok(Box::new(StandardInput::begin(control)));
        }
        match Location::parse(self.path)? {
            Location::Local(path) => {
                let file = File::open(path).map_err(|error| CommandOutcome::io(self.path, &error))?;
                begin(file.metadata().map(|metadata| metadata.len()).unwrap_or(0))?;
                Ok(Box::new(file))
            }
            Location::Object(address) => {
                let object = ObjectAccess::new()?.spooled(&address, control)?;
                begin(object.len())?;
                Ok(Box::new(object))
            }
        }
    }

    fn name(&self) -> String {
        if is_standard_input(self.path) { "standard input".to_owned() } else { self.path.display().to_string() }
    }

    /// The outcome after an unreadable table.
    pub(super) fn unread(&self, control: &Control, error: IngestError) -> CommandOutcome {
        match error {
            IngestError::Io(_) if control.check().is_err() => CommandOutcome::interrupted(),
            IngestError::Io(error) => CommandOutcome::InputOutput(format!("{}: {error}", self.name())),
            IngestError::Spool(error) => CommandOutcome::io(&std::env::temp_dir(), &error),
            other => CommandOutcome::Refused(Box::new(Problem::from(other))),
        }
    }
}

/// Whether a path means standard input.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reports the read bytes as progress.
struct ProgressReader {
    source: Box<dyn Read + Send>,
    control: Control,
}

impl Read for ProgressReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.control.advance(read as u64).map_err(io::Error::other)?;
        Ok(read)
    }
}

const BLOCK_BYTES: usize = 1 << 16;
const WAITING_BLOCKS: usize = 4;

/// Standard input, read by a thread, so that an interrupt ends a command that waits for it.
struct StandardInput {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Cursor<Vec<u8>>,
    control: Control,
}

impl StandardInput {
    fn begin(control: &Control) -> Self {
        let (sender, blocks) = sync_channel(WAITING_BLOCKS);
        std::thread::spawn(move || send_blocks(&sender));
        Self { blocks, block: Cursor::default(), control: control.clone() }
    }
}

fn send_blocks(sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut block = vec![0; BLOCK_BYTES];
        let read = match stdin.read(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read,
        };
        let is_last = !matches!(read, Ok(1..));
        let sent = sender.send(read.map(|length| {
            block.truncate(length);
            block
        }));
        if is_last || sent.is_err() {
            return;
        }
    }
}

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.block.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.control.check().map_err(io::Error::other)?;
            match self.blocks.recv_timeout(Duration::from_millis(100)) {
                Ok(block) => self.block = Cursor::new(block?),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
            if self.block.get_ref().is_empty() {
                return Ok(0);
            }
        }
    }
}
