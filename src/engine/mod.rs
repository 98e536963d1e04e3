//! One release from start to end: plan, publish, write, audit, seal. Knows nothing of HTTP, SQL or clocks.
