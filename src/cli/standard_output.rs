//! Standard output, whose reader may end before it read all.

use std::io::{self, ErrorKind, Write};

use super::exit::CommandOutcome;
use super::words::only_styles;

/// The end of writing; a reader that closed the pipe wants no more, which is no error.
pub(super) fn ended(written: io::Result<()>) -> Result<(), CommandOutcome> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandOutcome::InputOutput(format!("standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints a text.
pub(super) fn print(text: &str) -> Result<CommandOutcome, CommandOutcome> {
    let mut stdout = io::stdout().lock();
    ended(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))?;
    Ok(CommandOutcome::Done)
}

/// Prints a text with styles, as far as the terminal shows them, and without what else would steer it.
pub(super) fn print_styled(text: &str) -> Result<CommandOutcome, CommandOutcome> {
    let mut stdout = anstream::stdout().lock();
    ended(stdout.write_all(only_styles(text).as_bytes()).and_then(|()| stdout.flush()))?;
    Ok(CommandOutcome::Done)
}
