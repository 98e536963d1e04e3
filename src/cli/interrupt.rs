//! Cancels a command after an interrupt; the command stops at its next check and cleans up.

use super::serve::stop_signal;
use crate::control::Control;

/// Cancels `control` on the first interrupt or termination. Without signal handlers the command can only be killed.
pub(super) fn cancel_on_signal(control: &Control) {
    let control = control.clone();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async {
            if let Ok(stop_signal) = stop_signal() {
                stop_signal.await;
                control.cancel();
            }
        });
    });
}
