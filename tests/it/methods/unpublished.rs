//! Attackers who know how published columns determine a column of the upload that no release publishes: through the library,
//! on what the parts show.

use std::collections::BTreeMap;

use guardian::ledger::EarlierDisclosures;
use guardian::microdata::Table;
use guardian::problem::{Fault, Kind};
use guardian::publication::{CheckName, SearchedDependencies};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::report::{Manifest, public_report};
use serde_json::{Value, json};

use crate::support::folder::CommandFixture;
use crate::support::harness::{Server, kind};
use crate::support::library::{self, Memory, Original, Random, ReadPart, parts, table};

/// 6,000 people in eight years: each has 30 dates and some occupations of its own; the salary depends on the occupation.
///
/// `copy` is another spelling of the date. `noise` says nothing.
fn csv(occupations: usize) -> String {
    let mut random = Random(7);
    let row = |_| {
        let year = random.below(8);
        let (date, occupation) = (year * 30 + random.below(30), year * occupations + random.below(occupations));
        let salary = [occupation * 5 % 12, random.below(12)][random.below(2)];
        format!("d{date},o{occupation},s{salary},{},y{year},c{date},n{}\n", random.below(2), random.below(40))
    };
    "date,occupation,salary,sex,year,copy,noise\n".to_owned() + &(0..6_000).map(row).collect::<String>()
}

fn people(occupations: usize) -> Original {
    Original::new(table(csv(occupations).as_bytes()))
}

fn year_of(date: &str) -> usize {
    date[1..].parse::<usize>().unwrap() / 30
}

/// The year in which an occupation was counted, which anyone can look up.
fn year_of_occupation(occupation: &str, occupations: usize) -> usize {
    occupation[1..].parse::<usize>().unwrap() / occupations
}

fn document(published: &[&str], method: &Value) -> Value {
    let attributes: Value = published.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"attributes": attributes, "unlisted": "drop", "method": method})
}

fn versatile(rule: &str, l: u64) -> Value {
    json!({"type": "versatile", "rules": [rule], "algorithm": "uad", "default_guarantee": {"type": "l_diversity", "l": l}})
}

fn publish(original: &Original, published: &[&str], method: &Value) -> Result<(Manifest, Memory), Vec<Fault>> {
    library::publish(original, &document(published, method))
}

/// An adversary who knows the date of a person, and the year of each date and occupation.
struct Attacker<'a> {
    tables: &'a [Vec<ReadPart>],
    occupations: usize,
}

impl Attacker<'_> {
    /// The largest probability of a value of `sensitive` for a person of this date.
    ///
    /// Who has the date stands in the rows that show it. Where no table shows it with what leads to `sensitive`, all
    /// occupations of its year remain.
    fn posterior(&self, date: &str, sensitive: &str) -> f64 {
        let at = |part: &ReadPart, name: &str| part.attributes.iter().position(|attribute| attribute == name);
        let fits = |part: &ReadPart, row: &[String]| {
            at(part, "date").is_none_or(|at| row[at] == date)
                && at(part, "occupation")
                    .is_none_or(|at| year_of_occupation(&row[at], self.occupations) == year_of(date))
        };
        let shows = |part: &&ReadPart| at(part, sensitive).is_some();
        let parts = self.tables.iter().find(|parts| parts.iter().any(|part| shows(&part))).unwrap();
        let part = parts.iter().find(shows).unwrap();
        let column = at(part, sensitive).unwrap();
        // how likely the person stands in each bucket, by the part with the other attributes
        let rows = parts.iter().find(|other| !shows(other));
        let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
        if let Some(rows) = rows {
            let fitting = rows.buckets.iter().flatten().zip(&rows.rows).filter(|(_, row)| fits(rows, row));
            fitting.for_each(|(bucket, _)| *weights.entry(*bucket).or_default() += 1.0);
        }
        let mut by_bucket: BTreeMap<u32, BTreeMap<&str, f64>> = BTreeMap::new();
        for (number, row) in part.rows.iter().enumerate().filter(|(_, row)| fits(part, row)) {
            let bucket = part.buckets.as_ref().map_or(0, |buckets| buckets[number]);
            *by_bucket.entry(bucket).or_default().entry(&row[column]).or_default() += 1.0;
        }
        let mut values: BTreeMap<&str, f64> = BTreeMap::new();
        let mut all = 0.0;
        for (bucket, counts) in &by_bucket {
            let of = counts.values().sum::<f64>();
            // a part by itself is one bucket
            let weight = if rows.is_some() { weights.get(bucket).copied().unwrap_or_default() } else { of };
            all += weight;
            counts.iter().for_each(|(value, count)| *values.entry(value).or_default() += weight * count / of);
        }
        values.values().fold(0.0, |most: f64, value| most.max(value / all))
    }

    /// The dates for which some value is likelier than 1/l.
    fn breaches(&self, sensitive: &str, l: f64) -> usize {
        let dates = (0..240).map(|date| format!("d{date}"));
        dates.filter(|date| self.posterior(date, sensitive) > 1.0 / l + 1e-9).count()
    }
}

fn breaches((manifest, files): &(Manifest, Memory), occupations: usize, sensitive: &str, l: f64) -> usize {
    Attacker { tables: &parts(manifest, files), occupations }.breaches(sensitive, l)
}

/// The method, without a search for dependencies.
fn unsearched(mut method: Value) -> Value {
    method["dependencies"] = json!({"discover": "none"});
    method["assume_unknown"] = json!([{"determinant": [], "dependent": [], "reason": "a test"}]);
    method
}

/// The method, assuming that these columns are not known to determine the year.
fn withdrawn(mut method: Value, columns: &[&str]) -> Value {
    let assumed = |name: &&str| json!({"determinant": [name], "dependent": ["year"], "reason": "years are not public"});
    method["assume_unknown"] = columns.iter().map(assumed).collect();
    method
}

/// Methods that protect the occupation from who knows the date.
fn methods() -> Vec<Value> {
    let guarantee = json!({"type": "l_diversity", "l": 3});
    let anatomy =
        json!({"type": "anatomy", "sensitive": "occupation", "quasi_identifiers": ["date"], "guarantee": guarantee});
    vec![versatile("date -> occupation", 3), anatomy]
}

const PUBLISHED: [&str; 3] = ["date", "occupation", "sex"];

#[test]
fn decompositions_state_no_strata_and_are_refused() {
    let method = json!({"type": "decompose", "quasi_identifiers": ["date", "sex"], "sensitive": ["occupation", "noise"],
        "primary": "occupation", "l": {"occupation": 3, "noise": 2}});
    let Err(faults) = publish(&people(4), &PUBLISHED, &method) else { panic!("the year ties the date") };
    let tied = faults.iter().find(|fault| fault.kind == Kind::RuleImpossible);
    assert!(tied.is_some_and(|fault| fault.detail.contains("year")), "{faults:?}");
}

#[test]
fn two_tables_in_strata_of_a_dropped_column_do_not_show_it() {
    let mut random = Random(5);
    let row = |_| {
        let (year, grade) = (random.below(4), random.below(5));
        let (date, team) = (year * 3 + random.below(3), year / 2 * 3 + random.below(3));
        format!("d{date},t{team},h{},e{}\n", year / 2, grade * 3 + random.below(3))
    };
    let csv = "date,team,half,emp\n".to_owned() + &(0..1_500).map(row).collect::<String>();
    let method = json!({"type": "versatile", "algorithm": "gd", "rules": ["emp -> team", "team -> date"],
        "default_guarantee": {"type": "alpha_k", "alpha": "0.7", "k": 3}});
    let original = Original::new(table(csv.as_bytes()));
    let (manifest, _) = publish(&original, &["date", "team", "emp"], &method).unwrap();
    for table in &manifest.tables {
        assert_eq!(table.guards[0].constant, ["half"], "{}", table.name);
        assert!(table.parts.iter().all(|part| !part.attributes.contains(&"half".to_owned())), "{}", table.name);
    }
    assert_eq!(manifest.tables.len(), 2);
}

fn discovered(manifest: &Manifest) -> Value {
    serde_json::to_value(manifest).unwrap()["dependencies"]["discovered"].clone()
}

#[test]
fn dropped_year_makes_strata() {
    let original = people(4);
    for method in methods() {
        let open = publish(&original, &PUBLISHED, &unsearched(method.clone())).unwrap();
        let broken = breaches(&open, 4, "occupation", 3.0);
        assert!(broken > 100, "{method}: {broken}");
        let release = publish(&original, &PUBLISHED, &method).unwrap();
        assert_eq!(breaches(&release, 4, "occupation", 3.0), 0, "{method}");
        if method["type"] != "anatomy" {
            continue;
        }
        let used =
            json!([{"determinant": ["occupation"], "dependent": ["year"], "unpublished": true, "used": ["strata"]}]);
        assert_eq!(discovered(&release.0), used, "{method}");
        assert_eq!(release.0.rules[0].strata, ["year"], "{method}");
        let premises = public_report(&release.0).premises.join("\n");
        assert!(premises.contains("occupation determines year, which is not published"), "{premises}");
    }
}

#[test]
fn dropped_year_with_few_occupations_is_refused_by_name() {
    let original = people(2);
    for method in methods() {
        let open = publish(&original, &PUBLISHED, &unsearched(method.clone())).unwrap();
        assert_eq!(breaches(&open, 2, "occupation", 3.0), 240, "{method}");
        let faults = publish(&original, &PUBLISHED, &method).err().unwrap();
        let fault = faults.iter().find(|fault| fault.kind == Kind::RuleImpossible).unwrap();
        assert_eq!(fault.members["dependency"]["dependent"], json!(["year"]), "{fault:#?}");
        assert!(fault.detail.contains("year is a column of the dataset that is not published"), "{fault:#?}");
        let repairs = fault.members["repairs"].to_string();
        assert!(repairs.contains("assume_unknown"), "{fault:#?}");
        // a table of one rule knows nothing but the date
        let leaves_out = fault.remedies.iter().any(|remedy| remedy.title.contains("leave date out"));
        assert_eq!(leaves_out, method["type"] == "versatile", "{fault:#?}");
    }
}

#[test]
fn withdrawn_year_is_published_as_before() {
    let original = people(2);
    for columns in [&["date", "occupation"][..], &["date"], &["occupation"]] {
        let method = withdrawn(versatile("date -> occupation", 3), columns);
        let release = publish(&original, &PUBLISHED, &method).unwrap();
        assert_eq!(breaches(&release, 2, "occupation", 3.0), 240, "{columns:?}");
        let said = public_report(&release.0).not_promised.join("\n");
        assert!(said.contains("determines year, which is assumed unknown: years are not public"), "{said}");
    }
    let faults = publish(&original, &PUBLISHED, &withdrawn(versatile("sex -> occupation", 3), &["sex"])).err().unwrap();
    assert_eq!(faults[0].kind, Kind::UnknownDependency);
}

#[test]
fn other_spelling_of_the_date_ties_nothing() {
    // the year is no column of this upload
    let csv = "date,occupation,copy\n".to_owned()
        + &(0..6_000)
            .map(|row| format!("d{},o{},c{}\n", row * 7 % 240, row * 11 / 3 % 12, row * 7 % 240))
            .collect::<String>();
    let original = Original::new(table(csv.as_bytes()));
    for method in methods() {
        let (manifest, _) = publish(&original, &["date", "occupation"], &method).unwrap();
        assert_eq!((discovered(&manifest), &manifest.rules[0].strata), (json!([]), &Vec::new()));
    }
}

#[test]
fn release_that_ignores_a_dropped_column_is_not_verified() {
    for (occupations, method) in [2, 4].into_iter().flat_map(|number| methods().into_iter().map(move |of| (number, of)))
    {
        let original = people(occupations);
        let open = original.job(&document(&PUBLISHED, &unsearched(method.clone()))).unwrap();
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([1; 32]));
        let (released, files) = library::release(&open, &EarlierDisclosures::default(), &streams).unwrap();
        let mut claimed = released.manifest;
        claimed.dependencies.searched = Some(SearchedDependencies::SinglesAndPairs);
        claimed.dependencies.assumed_unknown = Vec::new();
        let mut job = original.job(&document(&PUBLISHED, &method)).unwrap();
        let summary = library::verify_against(&job, &claimed, &files, true);
        let failed: Vec<CheckName> =
            summary.checks.iter().filter(|check| !check.passed).map(|check| check.check).collect();
        assert_eq!(failed, [CheckName::Dependencies], "{method}");
        // without the other columns nothing can be seen
        job.dropped = Table::new(Vec::new(), Vec::new());
        library::verified(&job, &claimed, &files, true);
    }
}

#[test]
fn claimed_strata_of_a_dropped_column_are_checked() {
    let original = people(4);
    let document = document(&PUBLISHED, &versatile("date -> occupation", 3));
    let (manifest, files) = library::publish(&original, &document).unwrap();
    let job = original.job(&document).unwrap();
    let changes: [fn(&mut Value); 2] = [
        |manifest| {
            manifest["tables"].as_array_mut().unwrap().iter_mut().for_each(|table| {
                table["guards"].as_array_mut().into_iter().flatten().for_each(|guard| guard["constant"] = json!([]));
            })
        },
        |manifest| manifest["dependencies"]["discovered"][0]["determinant"] = json!(["sex"]),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut changed = serde_json::to_value(&manifest).unwrap();
        change(&mut changed);
        assert!(!library::is_verified(&job, &serde_json::from_value(changed).unwrap(), &files), "{at}");
    }
}

#[test]
fn command_line_reads_dropped_columns() {
    let folder = CommandFixture::new(csv(4), &document(&PUBLISHED, &versatile("date -> occupation", 3)));
    let manifest = folder.published("out", &[]);
    assert_eq!(manifest["rules"][0]["strata"], json!(["year"]), "{manifest:#}");
    assert_eq!(folder.is_verified("out"), [true, true]);
    folder.specify(&document(&PUBLISHED, &unsearched(versatile("date -> occupation", 3))));
    let mut open = folder.published("open", &[]);
    assert_eq!(folder.is_verified("open"), [true, true]);
    open["dependencies"]["searched"] = json!("singles");
    open["dependencies"]["assumed_unknown"] = json!([]);
    folder.forge("open", &open);
    assert_eq!(folder.is_verified("open"), [true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_year_ties_two_releases() {
    // the first release shows dates by sex; then the occupation is protected from who knows the sex
    let mut first = document(&["date", "sex"], &json!({"type": "versatile", "rules": []}));
    first["no_rules_reason"] = "asked for by the archive".into();
    let second = document(&["sex", "occupation"], &versatile("sex -> occupation", 3));
    let server = Server::start().await;
    let dataset = server.dataset(csv(4)).await;
    let release = server.publish(&dataset, first).await;
    let problem = server.refused(&dataset, second.clone()).await;
    assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &release["id"]), "{problem:#}");
    for from in ["date", "occupation"] {
        let link = json!([from, "year"]);
        assert!(problem["path"].as_array().unwrap().iter().any(|step| step["link"] == link), "{problem:#}");
    }
    // nothing ties the salary, and by itself the occupation would be published
    server.publish(&dataset, document(&["sex", "salary"], &versatile("sex -> salary", 3))).await;
    server.stop().await;
    let server = Server::start().await;
    let dataset = server.dataset(csv(4)).await;
    server.publish(&dataset, second).await;
    server.stop().await;
}
