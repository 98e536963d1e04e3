//! Rebuilds the crate after a change of the migrations, which are embedded at compile time.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
