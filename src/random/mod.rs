//! The release key, labelled streams and secret permutations.
