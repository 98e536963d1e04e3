use super::vocabulary::vocabulary;

vocabulary! {
    /// How an adversary infers a value from the tables of a decomposition.
    ///
    /// # Citations
    /// `docs/spec/decompose.md#attacks`
    BreachKind: "kind of breach" {
        /// The adversary knows a primary value, which implies the other value.
        Chain = "chain",
        /// The adversary excludes a primary value, which leaves the other value.
        Exclusion = "exclusion",
        /// Too many rows of the bucket have the value in every possible world.
        Forced = "forced",
    }
}
