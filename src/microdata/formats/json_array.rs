//! Splits a JSON array of objects into its objects, for the reader of rows.

use std::io::{BufRead, BufReader, Read};

use super::error::IngestError;

const BUFFER_BYTES: usize = 128 << 10;

/// The objects of an array, of bounded length; what stands between them is checked here, what they hold by the reader of rows.
pub(super) struct ArrayObjects<R> {
    reader: BufReader<R>,
    object: Vec<u8>,
    /// Where the object begins, and what follows it, in bytes from the beginning of the input.
    at: u64,
    next: u64,
    max: u64,
    position: Position,
}

/// What is expected next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The opening bracket.
    Start,
    /// An object, or the closing bracket.
    First,
    /// A comma and an object, or the closing bracket.
    Next,
    /// Nothing.
    End,
}

impl<R: Read> ArrayObjects<R> {
    pub(super) fn new(reader: R, max: u64) -> Self {
        let reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        Self { reader, object: Vec::new(), at: 0, next: 0, max, position: Position::Start }
    }

    /// The text of the object, and where it begins.
    pub(super) fn current(&self) -> (&[u8], u64) {
        (&self.object, self.at)
    }

    /// Goes to the next object; false at the end. `row` is the row it would be.
    pub(super) fn advance(&mut self, row: u64) -> Result<bool, IngestError> {
        self.object.clear();
        if self.position == Position::Start {
            self.skip_mark(row)?;
            match self.token()? {
                None => return Ok(false),
                Some(b'[') => self.take(),
                Some(_) => {
                    let detail = "a table in JSON is an array of objects; objects one a line are application/x-ndjson";
                    return Err(self.bad(row, detail));
                }
            }
            self.position = Position::First;
        }
        if self.position == Position::End {
            return Ok(false);
        }
        match self.token()? {
            None => return Err(self.bad(row, "the array is not closed")),
            Some(b']') => {
                self.take();
                self.position = Position::End;
                return match self.token()? {
                    None => Ok(false),
                    Some(_) => Err(self.bad(row, "something follows the array")),
                };
            }
            Some(b',') if self.position == Position::Next => self.take(),
            Some(_) if self.position == Position::Next => {
                return Err(self.bad(row, "expected a comma or the end of the array"));
            }
            Some(_) => {}
        }
        if self.token()? != Some(b'{') {
            return Err(self.bad(row, "each element of the array must be an object"));
        }
        self.at = self.next;
        self.position = Position::Next;
        self.read_object(row)?;
        Ok(true)
    }

    /// Reads up to the bracket that closes the object.
    fn read_object(&mut self, row: u64) -> Result<(), IngestError> {
        let (mut depth, mut is_quoted, mut is_escaped) = (0_u64, false, false);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Err(self.bad(row, "the array is not closed"));
            }
            let end = buffer.iter().position(|&byte| {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if is_quoted => is_escaped = true,
                    b'"' => is_quoted = !is_quoted,
                    _ if is_quoted => {}
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            let length = end.map_or(buffer.len(), |end| end + 1);
            self.object.extend_from_slice(&buffer[..length]);
            self.reader.consume(length);
            self.next += length as u64;
            let found = self.object.len() as u64;
            if found > self.max {
                return Err(IngestError::TooLarge {
                    what: "bytes of a record",
                    limit: self.max,
                    found,
                    row: Some(row),
                });
            }
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Takes the mark of UTF-8, if the input begins with it.
    fn skip_mark(&mut self, row: u64) -> Result<(), IngestError> {
        if self.token()? != Some(0xEF) {
            return Ok(());
        }
        for byte in *b"\xEF\xBB\xBF" {
            if self.token()? != Some(byte) {
                return Err(self.bad(row, "the input is not UTF-8"));
            }
            self.take();
        }
        Ok(())
    }

    /// The next byte that is not blank, which stays; `None` at the end.
    fn token(&mut self) -> Result<Option<u8>, IngestError> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let blank = buffer.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
            let found = buffer.get(blank).copied();
            let is_over = buffer.is_empty();
            self.reader.consume(blank);
            self.next += blank as u64;
            if found.is_some() || is_over {
                return Ok(found);
            }
        }
    }

    fn take(&mut self) {
        self.reader.consume(1);
        self.next += 1;
    }

    fn bad(&self, row: u64, detail: &str) -> IngestError {
        IngestError::Malformed { row: Some(row), column: None, byte: Some(self.next), detail: detail.to_owned() }
    }
}
