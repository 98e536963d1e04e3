-- What is fixed with the first start and may never change, such as the fingerprint of the master key: under another key equal
-- contents would hash differently, and the ledger of what was published would seem empty.
CREATE TABLE pins (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
