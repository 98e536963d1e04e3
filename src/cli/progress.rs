//! A progress bar on terminals.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::control::{Control, Phase};

/// Shows a control's progress until dropped.
pub(super) struct ProgressBarGuard {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressBarGuard {
    /// Starts the bar if standard error is a terminal.
    pub(super) fn begin(control: &Control) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let thread = std::io::stderr().is_terminal().then(|| {
            let (control, ended) = (control.clone(), Arc::clone(&ended));
            std::thread::spawn(move || show(&control, &ended))
        });
        Self { ended, thread }
    }
}

impl Drop for ProgressBarGuard {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // a failed bar does not fail the command
            let _ = thread.join();
        }
    }
}

fn show(control: &Control, ended: &AtomicBool) {
    let bar = ProgressBar::new(0);
    let style =
        |template: &str| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // of standard input the size is not known
    let (sized, spinning) = (style("{msg:28} {wide_bar} {percent:>3}%"), style("{msg:28} {bytes}"));
    while !ended.load(Ordering::Relaxed) {
        let progress = control.progress();
        bar.set_style(if progress.of == 0 { spinning.clone() } else { sized.clone() });
        bar.set_message(in_words(progress.phase));
        bar.set_length(progress.of.max(1));
        bar.set_position(progress.done);
        std::thread::sleep(Duration::from_millis(80));
    }
    bar.finish_and_clear();
}

const fn in_words(phase: Phase) -> &'static str {
    match phase {
        Phase::Load => "reading the table",
        Phase::Plan => "choosing the tables",
        Phase::Publish => "assigning rows to buckets",
        Phase::Write => "writing the parts",
        Phase::Verify => "verifying what was written",
        Phase::Compose => "checking earlier releases",
        Phase::Commit => "completing the release",
    }
}
