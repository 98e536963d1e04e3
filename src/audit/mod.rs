//! An independent re-check of written parts, from definitions. Shares types, no functions, with what it checks.
