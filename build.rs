//! Migrations are embedded at compile time; a new file among them must rebuild the crate.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
