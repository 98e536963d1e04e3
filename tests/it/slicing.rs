//! Slicing on Adult: the correlations that the paper names, the columns they make, and as many buckets as an implementation of the
//! definitions in another language counts.

use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::control::Control;
use guardian::microdata::{Attr, AttrSet, Column, Table};
use guardian::publication::Ratio;
use guardian::publish::partition::{Split, Unstated};
use guardian::publish::slicing::{BINS, Columns, Diversity, Slicing};

use crate::library::table;

fn adult() -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    table(GzDecoder::new(File::open(path).unwrap()))
}

fn attr(table: &Table, name: &str) -> Attr {
    Attr::from(table.names().iter().position(|other| other == name).unwrap())
}

/// The names of the attributes in every column.
fn divided(table: &Table, columns: &Columns) -> Vec<Vec<String>> {
    let control = Control::default();
    let occupation = attr(table, "occupation");
    let columns = columns.divide(table, table.attributes(), occupation, BINS, &control).unwrap();
    let names = |column: &AttrSet| column.iter().map(|attr| table.name(attr).to_owned()).collect();
    columns.iter().map(names).collect()
}

#[test]
fn attributes_that_go_together_stand_together() {
    let table = adult();
    // the paper: sex and salary go most with occupation
    let wide = divided(&table, &Columns::SensitiveWidth { count: 2, width: 3 });
    assert_eq!(wide[1], ["occupation", "sex", "income"]);
    assert_eq!(
        divided(&table, &Columns::Count(5)),
        [
            vec!["fnlwgt"],
            vec!["education", "education-num"],
            vec!["race", "native-country"],
            vec!["age", "workclass", "capital-gain", "capital-loss", "hours-per-week", "income"],
            vec!["marital-status", "occupation", "relationship", "sex"],
        ]
    );
}

#[test]
fn adult_comes_in_as_many_buckets_as_by_the_definitions() {
    let names = ["age", "workclass", "education", "marital-status", "race", "sex", "occupation"];
    let all = adult();
    let columns: Vec<Column> = names.iter().map(|name| all.column(attr(&all, name)).clone()).collect();
    let table = Table::new(names.map(str::to_owned).into(), columns);
    let sensitive = attr(&table, "occupation");
    let buckets = |columns: Columns, l: u64, least: usize| {
        let slicing = Slicing {
            attributes: table.attributes(),
            sensitive,
            columns,
            diversity: Diversity::Mixture(Ratio::new(l, 1).unwrap()),
            split: Split::Relaxed,
            dimensions: None,
            max_attempts: None,
            min_bucket: Some(least),
            column_k: None,
            bins: BINS,
        };
        let sliced = slicing.slice(&table, &Unstated, &Control::default());
        sliced.unwrap_or_else(|error| panic!("{error}")).buckets.buckets
    };
    assert_eq!(buckets(Columns::SensitiveWidth { count: 2, width: 1 }, 5, 1), 179);
    let with_sex = AttrSet::one(attr(&table, "sex")).with(sensitive);
    assert_eq!(buckets(Columns::Explicit(vec![table.attributes().minus(with_sex), with_sex]), 3, 3), 5352);
    assert_eq!(buckets(Columns::Count(7), 5, 1), 296);
}
