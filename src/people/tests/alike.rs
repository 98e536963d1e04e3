//! What the cells of two tables say, on tables of which it is known whether they have people in common.

use serde_json::{Value, json};

use super::ledger::WholeEvidence;
use super::tables::{PeopleTable, TableSpec};
use crate::people::{Evidence, KeyLayout, KeyedHash, Resemblance};

fn evidence(table: &PeopleTable) -> Evidence {
    let layout = KeyLayout::undeclared(table.names.clone());
    WholeEvidence::new(table, &layout, &vec![true; table.rows.len()]).unwrap().evidence
}

fn of_people(people: &Value) -> Evidence {
    evidence(&serde_json::from_value::<TableSpec>(json!({"people": people})).unwrap().table())
}

fn resemblance(one: &Evidence, other: &Evidence) -> Option<Resemblance> {
    let is_common = |mark: KeyedHash| other.blocks.iter().any(|block| block.mark == mark);
    one.resemblance(is_common, &other.signatures)
}

/// Rows of a skewed column, one that depends on it, and three more.
fn skewed(seed: u64, rows: usize) -> PeopleTable {
    let mut state = seed;
    let mut draw = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let row = |_| {
        let first = 50 / (1 + draw(49));
        let others = [first % 7, draw(2), draw(40).min(draw(40)), draw(12).min(draw(12))];
        std::iter::once(first).chain(others).map(|value| value.to_string()).collect()
    };
    let rows: Vec<Vec<String>> = (0..rows).map(row).collect();
    let truth = (0..rows.len() as u64).collect();
    PeopleTable { names: ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(), rows, truth }
}

#[test]
fn tables_of_other_people_are_not_alike() {
    let independent: Vec<Evidence> = (0..6_u64).map(|n| of_people(&json!([[n * 5000, n * 5000 + 900]]))).collect();
    let dependent: Vec<Evidence> = (0..6).map(|seed| evidence(&skewed(seed * 7919 + 1, 900))).collect();
    for tables in [independent, dependent] {
        for (number, one) in tables.iter().enumerate() {
            for other in &tables[..number] {
                assert_eq!(resemblance(one, other), None);
            }
        }
    }
}

#[test]
fn tables_with_replaced_people_are_alike() {
    let whole = of_people(&json!([[0, 900]]));
    for (replaced, by) in
        [(0, Resemblance::Blocks), (9, Resemblance::Blocks), (90, Resemblance::Rows), (450, Resemblance::Rows)]
    {
        let other = of_people(&json!([[0, 900 - replaced], [20_000, 20_000 + replaced]]));
        assert_eq!(resemblance(&whole, &other), Some(by), "{replaced} of 900");
        assert_eq!(resemblance(&other, &whole), Some(by), "{replaced} of 900");
    }
    // what an extract of fewer rows than twins are needed for shows is not enough
    assert_eq!(resemblance(&whole, &of_people(&json!([[0, 80]]))), None);
}

#[test]
fn any_two_columns_that_survive_show_a_table() {
    let table = |columns: &[&str], extra: &Value| {
        let spec = json!({"people": [[0, 900]], "columns": columns, "around": extra});
        evidence(&serde_json::from_value::<TableSpec>(spec).unwrap().table())
    };
    let whole = table(&["age", "ward", "sex", "zip", "dx"], &json!({}));
    let recoded = json!({"ward": ["q", ""], "sex": ["q", ""], "dx": ["q", ""]});
    assert_eq!(resemblance(&whole, &table(&["age", "zip"], &json!({}))), Some(Resemblance::Blocks));
    assert_eq!(resemblance(&whole, &table(&["age", "ward", "sex", "zip", "dx"], &recoded)), Some(Resemblance::Blocks));
    let all = json!({"age": ["q", ""], "ward": ["q", ""], "sex": ["q", ""], "zip": ["q", ""], "dx": ["q", ""]});
    assert_eq!(resemblance(&whole, &table(&["age", "ward", "sex", "zip", "dx"], &all)), None, "nothing survives");
}
