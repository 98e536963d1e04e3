//! A panic's payload may quote a value of the data: it is never logged.

use std::panic;

/// Makes panics log where they happened and nothing of what they say. For the binary to call once, before any thread starts.
pub fn install_panic_hook() {
    panic::set_hook(Box::new(|info| {
        let (file, line) = info.location().map_or(("unknown", 0), |location| (location.file(), location.line()));
        let thread = std::thread::current();
        tracing::error!(
            panic.file = file,
            panic.line = line,
            thread = thread.name().unwrap_or("unnamed"),
            "a thread panicked"
        );
    }));
}
