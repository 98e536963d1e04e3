//! The member `columns` of slicing: columns of attributes that are counted or listed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::microdata::MAX_ATTRIBUTES;
use crate::problem::{Fault, Kind};
use crate::spec::grammar::attributes::DatasetColumns;
use crate::spec::grammar::document::{Array, ColumnName, Int, Member, MemberContext, Names, SchemaMap, document};
use crate::spec::grammar::reader::{FaultList, child};

const COLUMNS: &str = "an object with count, with count and sensitive_width, or with explicit";

/// The largest integer that a member may be.
pub(in crate::spec) const MAX_INTEGER: u64 = u32::MAX as u64;

document! {
    /// Which attributes stand together: a number of columns of all published attributes, by what goes with what in the data, or these. State
    /// either `count`, to which `sensitive_width` may be added, or `explicit`.
    ColumnsMembers as "SlicedColumns" {
        /// How many columns, at most one for each attribute.
        optional count: Int<0, MAX_INTEGER, 1, 128> => "an integer of at least 1",
        /// The sensitive column has this many attributes: the sensitive one and those that go with it most.
        optional sensitive_width: Int<0, MAX_INTEGER, 1, 128> => "an integer of at least 1",
        /// The names of the attributes of each column. Every published attribute stands in at least one of them, and no column in another.
        /// Where columns share attributes the guarantee is `l_diversity`, there is no `column_k`, at most four have the sensitive
        /// attribute, and the table is exclusive; with `mixture_weighted`, and with `bucket` where several have the sensitive attribute,
        /// they form a tree: what a column shares with those before it stands in one of these.
        optional explicit: ExplicitColumns,
    }
}

/// Listed columns over those of the dataset.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct ExplicitColumns {
    lists: Vec<BTreeSet<usize>>,
    /// The columns of the dataset that they name.
    named: BTreeSet<usize>,
}

/// The member `columns`.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct ColumnsMember {
    /// `None` after faults.
    pub(in crate::spec) choice: Option<DraftColumns>,
    /// The columns of the dataset that explicit columns name, also faulty ones.
    pub(in crate::spec) named: BTreeSet<usize>,
}

/// Which columns of the dataset stand together.
#[derive(Clone, Debug)]
pub(in crate::spec) enum DraftColumns {
    Count(u64),
    SensitiveWidth { count: u64, width: u64 },
    Explicit(Vec<BTreeSet<usize>>),
}

impl Member for ColumnsMember {
    fn allowed() -> String {
        COLUMNS.to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let before = context.faults.len();
        let members = ColumnsMembers::read(value, context)?;
        let is_faulty = context.faults.len() > before;
        let (count, width) =
            (members.count.value.map(|count| count.0), members.sensitive_width.value.map(|width| width.0));
        let named = members.explicit.value.as_ref().map(|explicit| explicit.named.clone()).unwrap_or_default();
        let choice = match (count, width, members.explicit.value) {
            // what is sound of listed columns is judged all the same
            (None, None, Some(explicit)) if !is_faulty || members.explicit.is_faulty => {
                Some(DraftColumns::Explicit(explicit.lists))
            }
            _ if is_faulty => None,
            (Some(count), None, None) => Some(DraftColumns::Count(count)),
            (Some(count), Some(width), None) => Some(DraftColumns::SensitiveWidth { count, width }),
            _ => {
                context.faults.range(context.pointer.as_str(), COLUMNS);
                None
            }
        };
        Some(Self { choice, named })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let names = |list: &BTreeSet<usize>| -> Vec<&str> { list.iter().map(|column| columns.name(*column)).collect() };
        match &self.choice {
            None => Value::Null,
            Some(DraftColumns::Count(count)) => json!({"count": count}),
            Some(DraftColumns::SensitiveWidth { count, width }) => json!({"count": count, "sensitive_width": width}),
            Some(DraftColumns::Explicit(lists)) => json!({"explicit": lists.iter().map(names).collect::<Vec<_>>()}),
        }
    }

    fn schema() -> Value {
        ColumnsMembers::schema()
    }

    fn define(schemas: &mut SchemaMap) {
        ColumnsMembers::define(schemas);
    }
}

impl Member for ExplicitColumns {
    fn allowed() -> String {
        "an array of arrays of names of attributes".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(lists) = value.as_array() else { return context.refuse() };
        let mut read = Self::default();
        for (index, list) in lists.iter().enumerate() {
            let column = read.read_column(list, &mut context.item(index, Names::<0>::allowed()));
            read.lists.push(column);
        }
        read.check(context);
        Some(read)
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let names = |list: &BTreeSet<usize>| list.iter().map(|column| columns.name(*column)).collect::<Value>();
        self.lists.iter().map(names).collect()
    }

    fn schema() -> Value {
        Array::<Array<String, 1, MAX_ATTRIBUTES>, 1, MAX_ATTRIBUTES>::schema()
    }
}

impl ExplicitColumns {
    fn read_column(&mut self, list: &Value, context: &mut MemberContext<'_, '_>) -> BTreeSet<usize> {
        let mut column = BTreeSet::new();
        let Some(names) = list.as_array() else {
            context.refuse::<()>();
            return column;
        };
        if names.is_empty() {
            bad_columns(context.faults, &context.pointer, "a column has at least one attribute".to_owned());
        }
        for (index, name) in names.iter().enumerate() {
            let mut item = context.item(index, ColumnName::allowed());
            let Some(found) = ColumnName::read(name, &mut item).and_then(|name| name.column) else { continue };
            self.named.insert(found);
            if !column.insert(found) {
                let detail = format!("the column has {} already", item.columns.name(found));
                bad_columns(item.faults, &item.pointer, detail);
            }
        }
        column
    }

    /// There are not too many columns, and none stands in another.
    fn check(&self, context: &mut MemberContext<'_, '_>) {
        if self.lists.len() > MAX_ATTRIBUTES {
            let detail = format!("there are more than {MAX_ATTRIBUTES} columns");
            bad_columns(context.faults, &context.pointer, detail);
        }
        for (index, column) in self.lists.iter().enumerate().filter(|(_, column)| !column.is_empty()) {
            // of equal columns the second is reported
            let within = |(other, whole): (usize, &BTreeSet<usize>)| {
                let smaller = column.len() < whole.len() || other < index;
                (other != index && smaller && column.is_subset(whole)).then_some(other)
            };
            if let Some(other) = self.lists.iter().enumerate().find_map(within) {
                let detail = format!("all that stands in it stands in column {} too, which tells as much", other + 1);
                bad_columns(context.faults, &child(&context.pointer, &index.to_string()), detail);
            }
        }
    }
}

pub(in crate::spec) fn bad_columns(faults: &mut FaultList, pointer: &str, detail: String) {
    faults.push(Fault::new(pointer, Kind::BadColumns, detail));
}

/// A sensitive column of `width` attributes and `count` columns in all can be made of `all` attributes.
pub(in crate::spec) fn check_width(count: u64, width: u64, all: u64, faults: &mut FaultList) {
    if !(1..=all).contains(&width) {
        let detail = format!("a sensitive column of {width} attributes cannot be made of {all}");
        return bad_columns(faults, "/method/columns/sensitive_width", detail);
    }
    let left = all - width;
    let others = count.checked_sub(1);
    let fits = if left == 0 { others == Some(0) } else { others.is_some_and(|n| (1..=left).contains(&n)) };
    if !fits {
        let detail = format!(
            "of {count} columns one is the sensitive one, and the others cannot be made of the {left} attributes that it leaves over"
        );
        bad_columns(faults, "/method/columns/count", detail);
    }
}
