//! An interrupted command stops at its next check and cleans up after itself.

use crate::control::Control;

/// Cancels `control` on the first interrupt or termination. Without signals the command can only be killed.
pub(super) fn cancels(control: &Control) {
    let control = control.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        if let Ok(runtime) = runtime
            && runtime.block_on(super::serve::told_to_stop()).is_ok()
        {
            control.cancel();
        }
    });
}
