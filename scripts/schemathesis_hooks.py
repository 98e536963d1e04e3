"""Media types of uploads that Schemathesis does not write by itself: whatever it makes up is sent as it is."""

import schemathesis


@schemathesis.serializer(
    "application/x-ndjson",
    "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.arrow.file",
)
def as_it_is(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()
