//! Sensitive attributes that tell each other (`PRIVACY`, correlated): where two tables protect one each and share an attribute, the
//! buckets of the one narrow down those of the other. Such tables are not published.

use std::collections::BTreeMap;

use super::ground::Draft;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::{self, Dependency};
use crate::publish::Rows;
use crate::spec::Correlated;

/// Which sensitive attributes tell each other.
pub(super) struct Links<'a> {
    rows: Rows<'a>,
    dependencies: &'a [Dependency],
    stated: Correlated,
    control: &'a Control,
    known: BTreeMap<(Attr, Attr), Option<&'static str>>,
}

const DEPENDENT: &str = "its table and another, which protects an attribute linked to this one by a dependency, share an attribute: \
                         in whatever tables, the buckets of one tell of the other; use uad without addback";
const PREDICTED: &str = "its table and another, which protects an attribute that mostly tells this one, share an attribute; use uad \
                         without addback, or state \"correlated\": \"separate\"";

impl<'a> Links<'a> {
    /// Nothing is looked at yet.
    pub(super) fn new(
        rows: Rows<'a>,
        dependencies: &'a [Dependency],
        stated: Correlated,
        control: &'a Control,
    ) -> Self {
        Self { rows, dependencies, stated, control, known: BTreeMap::new() }
    }

    /// The attributes that `tables` protect and that tell each other across tables which share an attribute, and why each is
    /// not protected.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub(super) fn across(&mut self, tables: &[Draft]) -> Result<Vec<(Attr, &'static str)>, Cancelled> {
        let mut linked = BTreeMap::new();
        for (index, one) in tables.iter().enumerate() {
            for other in &tables[index + 1..] {
                let (Some(a), Some(b)) = (one.sensitive, other.sensitive) else { continue };
                if a == b || !one.attributes.meets(other.attributes) {
                    continue;
                }
                if let Some(why) = self.link(a.min(b), a.max(b))? {
                    linked.extend([(a, why), (b, why)]);
                }
            }
        }
        Ok(linked.into_iter().collect())
    }

    fn link(&mut self, a: Attr, b: Attr) -> Result<Option<&'static str>, Cancelled> {
        if let Some(known) = self.known.get(&(a, b)) {
            return Ok(*known);
        }
        let dependent = |from: Attr, to: Attr| {
            let mut told = AttrSet::one(from);
            // what one attribute tells through others, it tells
            loop {
                let more = self.dependencies.iter().filter(|d| d.determinant.is_subset(told));
                let wider = more.fold(told, |all, d| all.with(d.dependent));
                if wider == told {
                    break;
                }
                told = wider;
            }
            let with_others = |d: &Dependency| d.dependent == to && d.determinant.contains(from);
            told.contains(to) || self.dependencies.iter().any(with_others)
        };
        let why = if dependent(a, b) || dependent(b, a) {
            Some(DEPENDENT)
        } else if self.stated == Correlated::Separate {
            None
        } else {
            let table = self.rows.table;
            let mostly =
                privacy::mostly_tells(table, a, b, self.control)? || privacy::mostly_tells(table, b, a, self.control)?;
            mostly.then_some(PREDICTED)
        };
        self.known.insert((a, b), why);
        Ok(why)
    }
}
