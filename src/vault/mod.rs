//! Keys: wrapped at rest, wiped in memory.
