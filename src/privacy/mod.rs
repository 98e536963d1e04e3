//! What must hold: rules, their reduction, guarantees, eligibility, Guardian Normal Form. Pure, no I/O.
