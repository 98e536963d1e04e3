//! Persistence behind the traits that `jobs` declares; nothing else.
