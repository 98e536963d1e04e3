//! A panic hook without payloads, which may quote values of the data.

use std::panic;

/// Logs only the location of panics. The binary calls it once, before any thread starts.
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_logged_by_its_place_alone() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let usual = panic::take_hook();
        install_panic_hook();
        let outcome = tracing::subscriber::with_default(subscriber, || {
            panic::catch_unwind(|| std::panic::panic_any(format!("{} was read", "secret")))
        });
        panic::set_hook(usual);
        assert!(outcome.is_err());
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("panics.rs") && !text.contains("secret"), "{text}");
    }
}
