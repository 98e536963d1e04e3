//! ComponentForest: founding buckets that merges link, as a forest of parents.

/// A forest over buckets.
pub(super) struct ComponentForest(Vec<u32>);

impl ComponentForest {
    pub(super) fn new(parents: Vec<u32>) -> Self {
        Self(parents)
    }

    /// Adds a bucket that is a component of its own.
    pub(super) fn add(&mut self) {
        self.0.push(self.0.len() as u32);
    }

    /// The representative of the component of a bucket.
    pub(super) fn of(&mut self, bucket: u32) -> u32 {
        let mut root = bucket;
        while self.0[root as usize] != root {
            root = self.0[root as usize];
        }
        let mut at = bucket;
        while self.0[at as usize] != root {
            at = std::mem::replace(&mut self.0[at as usize], root);
        }
        root
    }

    /// Makes one component of two.
    pub(super) fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.of(one), self.of(other));
        self.0[other as usize] = one;
    }
}
