//! The manifest and the public report of a release.
