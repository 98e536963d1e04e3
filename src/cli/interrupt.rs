//! An interrupted command stops at its next check and cleans up after itself.

use super::serve::told_to_stop;
use crate::control::Control;

/// Cancels `control` on the first interrupt or termination. Without signals the command can only be killed.
pub(super) fn cancels(control: &Control) {
    let control = control.clone();
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async {
            if let Ok(told_to_stop) = told_to_stop() {
                told_to_stop.await;
                control.cancel();
            }
        });
    });
}
