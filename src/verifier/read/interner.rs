use ahash::AHashMap;

use crate::microdata::{Attr, Column};

/// Numbers of values: equal in all parts, and in the original, for equal values of an attribute.
#[derive(Default)]
pub(in crate::verifier) struct ValueInterner(AHashMap<(Attr, Option<Vec<u8>>), u32>);

impl ValueInterner {
    pub(in crate::verifier) fn code(&mut self, attr: Attr, value: Option<&[u8]>) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry((attr, value.map(<[u8]>::to_vec))).or_insert(next)
    }

    /// The number of the value of each row of a column.
    pub(in crate::verifier) fn codes(&mut self, attr: Attr, column: &Column) -> Vec<u32> {
        let known: Vec<u32> = column.domain.iter().map(|value| self.code(attr, value)).collect();
        column.codes.iter().map(|code| known[code as usize]).collect()
    }

    /// The values, by their numbers.
    pub(in crate::verifier) fn values(&self) -> Vec<Option<&[u8]>> {
        let mut values = vec![None; self.0.len()];
        self.0.iter().for_each(|((_, value), &number)| values[number as usize] = value.as_deref());
        values
    }
}
