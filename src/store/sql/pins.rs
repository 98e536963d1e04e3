//! What is fixed for ever.

pub(crate) const PIN: &str = "\
-- pin
INSERT INTO pins (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";

pub(crate) const PINNED: &str = "\
-- pinned
SELECT value FROM pins WHERE name = $1";
