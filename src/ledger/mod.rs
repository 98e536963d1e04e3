//! What was published before, and whether a new release may stand beside it. Pure.
//!
//! The ledger keeps a [`Disclosure`] for every published table and every rule that was promised. A new release is judged
//! together with all of them: the union must be in Guardian Normal Form for every standing and every new rule, with seals
//! as guards (`PRIVACY`, composition). Attributes are identified by the dataset's names, never by published ones.

mod aside;
mod overview;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES, Taxonomy};
use crate::privacy::{self, Demand, Dependency, Guard, Rule, Schema, Status};
use crate::publication::{
    Beside, Guarantee, Particulars, Protected, Publication, PublishedTable, Seal, Standing, StatedTaxonomy,
    Uninformative,
};
use aside::{Aside, Values};

pub use overview::{refused_pairs, shared};

/// So many rules may follow from a standing rule.
const MAX_FOLLOWED: usize = 10_000;

/// What the ledger keeps of a published table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Disclosure {
    /// The name of the table in its release.
    pub table: String,
    /// Its attributes.
    pub attributes: Vec<String>,
    /// What it is worth beside other tables.
    pub standing: KeptStanding,
    /// Whether rows may be missing from it: beside a table that has them all, they would be told from the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// The standing of a disclosed table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptStanding {
    /// Exact tuples.
    Plain,
    /// Guarantees by itself.
    Sealed(Vec<KeptSeal>),
    /// Neither.
    Unsealed,
}

/// A seal of a disclosed table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptSeal {
    /// The attributes that may be known.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes.
    pub sensitive: Vec<String>,
    /// Whether only their joint value is protected.
    pub joint: bool,
    /// What holds.
    pub guarantees: Vec<Guarantee>,
    /// Values of protected attributes that an insider can rule out without harm.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uninformative: BTreeMap<String, Vec<Option<String>>>,
    /// Of protected attributes with a guarantee that goes by a taxonomy, which one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taxonomies: BTreeMap<String, String>,
}

/// A rule that a release promised.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StandingRule {
    /// Where its specification stated it; `None` for one that follows from a dependency.
    pub pointer: Option<String>,
    /// The quasi-identifiers.
    pub quasi_identifiers: Vec<String>,
    /// The sensitive attribute; of a combination one of them.
    pub sensitive: String,
    /// All attributes of a combination of which only the joint value is protected; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combination: Vec<String>,
    /// The bound.
    pub guarantee: Guarantee,
    /// Values of the sensitive attribute that an insider can rule out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uninformative: Vec<Option<String>>,
    /// The taxonomy that the bound goes by, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<String>,
}

/// Everything the ledger holds of the same people.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Earlier {
    /// Disclosures, each with the release it belongs to.
    pub disclosures: Vec<(Uuid, Disclosure)>,
    /// Standing rules, each with the release that promised it.
    pub rules: Vec<(Uuid, StandingRule)>,
    /// What was read back of the releases that a new one names, to be joined with it.
    pub beside: Beside,
}

/// Why a release may not stand beside earlier ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule that would break: its release (`None`: the new one) and pointer.
    pub rule: (Option<Uuid>, Option<String>),
    /// The earlier release that stands in the way.
    pub release: Uuid,
    /// A path from known attributes to the sensitive one: release (`None`: the new one), table, the attributes through which
    /// the path enters it. Empty when the reason is a second bucketization.
    pub path: Vec<(Option<Uuid>, String, Vec<String>)>,
    /// The reason in words.
    pub detail: String,
}

/// Together, the releases have more attributes than one check can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyAttributes(pub usize);

/// Earlier disclosures in the attributes of a new job; attributes that the job does not use come behind its own.
#[derive(Clone, Debug, Default)]
pub struct Union {
    names: Vec<String>,
    /// The earlier tables.
    pub schemas: Vec<Schema>,
    /// The rules that stand, but for those that protect joint values.
    pub rules: Vec<Rule>,
    /// Per earlier table: its release, its name, and why no other table may share an attribute with it.
    tables: Vec<(Uuid, String, Option<&'static str>)>,
    /// The earlier releases that the new one is joined with, whose requirements speak for tables that share attributes.
    joined: Vec<Uuid>,
    /// What can be ruled out, per guard of each earlier table, per standing rule, and of the attributes of the new release.
    aside: Aside,
    /// All rules that stand.
    standing: Vec<(Uuid, Option<String>, Demand)>,
    /// What follows from standing rules by dependencies: combinations, of which one attribute must be protected.
    followed: Vec<(Uuid, Option<String>, Demand)>,
}

impl Union {
    /// Maps what the ledger holds onto the attributes `names` of a new job.
    ///
    /// # Errors
    /// [`TooManyAttributes`] when all releases together have more than a set can hold.
    pub fn new(names: &[String], earlier: &Earlier) -> Result<Self, TooManyAttributes> {
        // what an earlier table keeps only while it stands alone no requirement speaks for
        let releases = earlier.beside.releases.iter().filter(|release| !release.alone);
        let joined = releases.filter_map(|release| Uuid::try_parse(&release.release).ok()).collect();
        let mut union = Self { names: names.to_vec(), joined, ..Self::default() };
        for (release, disclosure) in &earlier.disclosures {
            let attributes = union.set(&disclosure.attributes)?;
            let (mut guards, mut of_guards) = (Vec::new(), Vec::new());
            if let KeptStanding::Sealed(seals) = &disclosure.standing {
                for seal in seals {
                    let known = union.set(&seal.quasi_identifiers)?;
                    let sensitive = union.set(&seal.sensitive)?;
                    let protected: Vec<Protected> = match seal.joint {
                        true => vec![Protected::Joint(sensitive)],
                        false => sensitive.iter().map(Protected::Attribute).collect(),
                    };
                    for protects in protected {
                        let name = match protects {
                            Protected::Attribute(attr) => Some(&union.names[attr.index()]),
                            Protected::Joint(_) | Protected::Rows => None,
                        };
                        let ruled_out = name.and_then(|name| seal.uninformative.get(name)).into_iter().flatten();
                        let aside = Values {
                            ruled_out: ruled_out.cloned().collect(),
                            taxonomy: name.and_then(|name| seal.taxonomies.get(name)).cloned(),
                        };
                        of_guards.extend(seal.guarantees.iter().map(|guarantee| aside.under(*guarantee)));
                        guards.extend(seal.guarantees.iter().map(|&guarantee| Guard { known, protects, guarantee }));
                    }
                }
            }
            union.schemas.push(Schema { attributes, guards });
            union.aside.guards.push(of_guards);
            let alone = match (&disclosure.standing, disclosure.partial) {
                (_, true) => Some("lacks some rows"),
                (KeptStanding::Unsealed, false) => Some("is unsealed"),
                (_, false) => None,
            };
            union.tables.push((*release, disclosure.table.clone(), alone));
        }
        for (release, rule) in &earlier.rules {
            let known = union.set(&rule.quasi_identifiers)?;
            let sensitive = union.attribute(&rule.sensitive)?;
            let combination = union.set(&rule.combination)?;
            let protects = combination.with(sensitive);
            if protects.len() == 1 {
                union.rules.push(Rule { known, sensitive, guarantee: rule.guarantee });
            }
            let demand = Demand { known, protects, guarantee: rule.guarantee };
            union.standing.push((*release, rule.pointer.clone(), demand));
            let ruled_out = rule.uninformative.iter().cloned().collect();
            union.aside.rules.push(Values { ruled_out, taxonomy: rule.taxonomy.clone() });
        }
        Ok(union)
    }

    /// Takes into account what an insider can rule out of the new release's values, and the taxonomies that its bounds go by.
    pub fn set_aside(&mut self, uninformative: &[Uninformative], taxonomies: &[StatedTaxonomy]) {
        for Uninformative { attribute, values } in uninformative {
            self.aside.new.entry(*attribute).or_default().ruled_out = values.iter().cloned().collect();
        }
        for StatedTaxonomy { attribute, tree } in taxonomies {
            self.aside.new.entry(*attribute).or_default().taxonomy = Some(digest(tree));
        }
    }

    /// Takes dependencies into account that the adversary is now taken to know: what determines an attribute that a standing
    /// rule protects is to stay protected too.
    pub fn assume(&mut self, dependencies: &[Dependency]) {
        for (release, pointer, demand) in &self.standing {
            // what is impossible, or too much to follow, was for the earlier release to refuse
            let expansion = privacy::expand(&[*demand], dependencies, MAX_FOLLOWED).unwrap_or_default();
            let followed = expansion.derived.iter().map(|derived| (*release, pointer.clone(), derived.demand));
            self.followed.extend(followed);
        }
    }

    fn attribute(&mut self, name: &str) -> Result<Attr, TooManyAttributes> {
        let index = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        if index < MAX_ATTRIBUTES { Ok(Attr::from(index)) } else { Err(TooManyAttributes(self.names.len())) }
    }

    fn set(&mut self, names: &[String]) -> Result<AttrSet, TooManyAttributes> {
        names.iter().map(|name| self.attribute(name)).collect()
    }

    fn named(&self, set: AttrSet) -> Vec<String> {
        set.iter().map(|attr| self.names[attr.index()].clone()).collect()
    }

    /// Judges new tables, under the new rules with their pointers, together with everything earlier. `alone` are those, by index,
    /// beside which no earlier one may share an attribute, and what they would be.
    ///
    /// # Errors
    /// Every violation.
    pub fn check(
        &self,
        tables: &[Schema],
        alone: &[(usize, &str)],
        rules: &[(Option<String>, Demand)],
    ) -> Result<(), Vec<Violation>> {
        let Some(&(first_release, _, _)) = self.tables.first() else { return Ok(()) };
        let mut violations = Vec::new();
        for ((release, table, earlier_alone), schema) in self.tables.iter().zip(&self.schemas) {
            for (index, new) in tables.iter().enumerate() {
                let sensitive = |schema: &Schema| -> AttrSet {
                    schema.guards.iter().flat_map(|guard| guard.protects.attributes().iter()).collect()
                };
                let twice = sensitive(schema).intersection(sensitive(new));
                if let Some(twice) = twice.iter().next() {
                    let detail = format!(
                        "{} was bucketized before, in table {table} of the release; buckets drawn a second time over the same people can be intersected",
                        self.names[twice.index()]
                    );
                    violations.push(self.without_path(*release, rules, Some(twice), detail));
                } else if self.joined.contains(release) {
                    // judged on the join
                } else if let Some(why) = earlier_alone
                    && schema.attributes.meets(new.attributes)
                {
                    let detail =
                        format!("table {table} of the release {why} and shares attributes with table t{}", index + 1);
                    violations.push(self.without_path(*release, rules, None, detail));
                } else if let Some((_, why)) = alone.iter().find(|(of, _)| *of == index)
                    && schema.attributes.meets(new.attributes)
                {
                    let detail =
                        format!("table t{} {why} and shares attributes with table {table} of the release", index + 1);
                    violations.push(self.without_path(*release, rules, None, detail));
                }
            }
        }
        violations.extend(self.unjoined(tables, rules));
        let all: Vec<Schema> = tables.iter().chain(&self.schemas).cloned().collect();
        let nothing = Values::default();
        let judge =
            |demand: &Demand, aside: &Values| privacy::judge_demand(&self.aside.seen(&all, demand, aside), demand);
        let violated = |demand: &Demand| matches!(judge(demand, &nothing), Status::Violated(_));
        // of what follows, one attribute that is protected is enough, or the joint value
        let followed = self.followed.iter().filter(|(_, _, demand)| {
            let single = |attr| Demand { protects: AttrSet::one(attr), ..*demand };
            violated(demand) && demand.protects.iter().map(single).all(|single| violated(&single))
        });
        let earlier = self.standing.iter().zip(&self.aside.rules).chain(followed.map(|followed| (followed, &nothing)));
        let earlier =
            earlier.map(|((release, pointer, demand), aside)| (Some(*release), pointer, *demand, aside.clone()));
        let aside = |demand: &Demand| self.aside.of_new(demand.protects, demand.guarantee);
        let new = rules.iter().map(|(pointer, demand)| (None, pointer, *demand, aside(demand)));
        for (release, pointer, demand, aside) in earlier.chain(new) {
            let Status::Violated(violation) = judge(&demand, &aside) else { continue };
            let step = |&(table, via): &(usize, AttrSet)| match table.checked_sub(tables.len()) {
                None => (None, format!("t{}", table + 1), self.named(via)),
                Some(earlier) => (Some(self.tables[earlier].0), self.tables[earlier].1.clone(), self.named(via)),
            };
            let path: Vec<_> = violation.path.iter().map(step).collect();
            let in_the_way = path.iter().find_map(|step| step.0).or(release).unwrap_or(first_release);
            let detail = format!(
                "whoever knows {} could reach {} through the tables of both releases",
                self.named(violation.reaching).join(", "),
                self.named(demand.protects).join(", ")
            );
            violations.push(Violation { rule: (release, pointer.clone()), release: in_the_way, path, detail });
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// Tables that share attributes with one that the new release is joined with, and not with the new release: they would be joined
    /// too, and no requirement was looked at with them.
    fn unjoined(&self, tables: &[Schema], rules: &[(Option<String>, Demand)]) -> Vec<Violation> {
        let own = tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes));
        let mut reached = if self.joined.is_empty() { AttrSet::EMPTY } else { own };
        let mut found: Vec<usize> = Vec::new();
        loop {
            let before = found.len();
            for (at, schema) in self.schemas.iter().enumerate() {
                if schema.attributes.meets(reached) && !found.contains(&at) {
                    found.push(at);
                    reached = reached.union(schema.attributes);
                }
            }
            if found.len() == before {
                break;
            }
        }
        let others = found
            .into_iter()
            .filter(|&at| !self.joined.contains(&self.tables[at].0) && !self.schemas[at].attributes.meets(own));
        let violation = |at: usize| {
            let (release, table, _) = &self.tables[at];
            let detail = format!(
                "table {table} of the release would be joined with those that the new one is made against, and is none of them"
            );
            self.without_path(*release, rules, None, detail)
        };
        others.map(violation).collect()
    }

    fn without_path(
        &self,
        release: Uuid,
        rules: &[(Option<String>, Demand)],
        sensitive: Option<Attr>,
        detail: String,
    ) -> Violation {
        let concerns = |demand: &Demand| sensitive.is_some_and(|attr| demand.protects.contains(attr));
        let concerned = rules.iter().find(|(_, demand)| concerns(demand)).or_else(|| rules.first());
        let pointer = concerned.map_or_else(|| Some("/method".to_owned()), |(pointer, _)| pointer.clone());
        Violation { rule: (None, pointer), release, path: Vec::new(), detail }
    }
}

/// What the ledger keeps of the taxonomy of an attribute, where a bound goes by it.
#[must_use]
pub fn taxonomy_of(attribute: Attr, guarantee: Guarantee, taxonomies: &[StatedTaxonomy]) -> Option<String> {
    let stated =
        taxonomies.iter().find(|stated| stated.attribute == attribute).filter(|_| aside::goes_along(guarantee));
    stated.map(|stated| digest(&stated.tree))
}

fn digest(tree: &Taxonomy) -> String {
    tree.digest().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the ledger will keep of a publication, `names` being the dataset's names of its attributes.
#[must_use]
pub fn disclosures(
    publication: &Publication,
    names: &[String],
    (uninformative, taxonomies): (&[Uninformative], &[StatedTaxonomy]),
) -> Vec<Disclosure> {
    let aside = |protected: AttrSet| {
        let of = uninformative.iter().filter(move |stated| protected.contains(stated.attribute));
        of.map(|stated| (names[stated.attribute.index()].clone(), stated.values.clone())).collect()
    };
    let along = |seal: &Seal| {
        let of = |attr: Attr| {
            let digest = seal.guarantees.iter().find_map(|guarantee| taxonomy_of(attr, *guarantee, taxonomies));
            digest.map(|digest| (names[attr.index()].clone(), digest))
        };
        seal.protects.attributes().iter().filter_map(of).collect()
    };
    let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].clone()).collect();
    let keep = |standing: &Standing| match standing {
        Standing::Plain => KeptStanding::Plain,
        Standing::Unsealed => KeptStanding::Unsealed,
        Standing::Sealed(seals) => KeptStanding::Sealed(
            seals
                .iter()
                .map(|seal| KeptSeal {
                    quasi_identifiers: named(seal.known),
                    sensitive: named(seal.protects.attributes()),
                    joint: matches!(seal.protects, Protected::Joint(_)),
                    guarantees: seal.guarantees.clone(),
                    uninformative: aside(seal.protects.attributes()),
                    taxonomies: along(seal),
                })
                .collect(),
        ),
    };
    // slicing leaves no row out, whatever stands beside what it protects
    let is_sliced = matches!(publication.particulars, Particulars::Slicing { .. });
    let tables = publication.tables.iter();
    tables
        .map(|table| Disclosure {
            table: table.name.0.clone(),
            attributes: named(table.attributes()),
            standing: keep(&table.standing),
            partial: publication.suppressed > 0 || (!is_sliced && knows_beside(table)),
        })
        .collect()
}

/// Whether a seal of a bucketized table takes as known what stands in one part with what it protects: such tables may lack rows,
/// and that they do not tells of the data.
fn knows_beside(table: &PublishedTable) -> bool {
    let Standing::Sealed(seals) = &table.standing else { return false };
    let parts = table
        .parts
        .iter()
        .filter(|part| part.bucketed)
        .map(|part| part.columns.iter().map(|column| column.attribute).collect::<AttrSet>());
    let parts: Vec<AttrSet> = parts.collect();
    seals.iter().any(|seal| parts.iter().any(|part| part.meets(seal.protects.attributes()) && part.meets(seal.known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<String> {
        list.split_whitespace().map(str::to_owned).collect()
    }

    fn plain(table: &str, attributes: &str) -> Disclosure {
        Disclosure { table: table.into(), attributes: names(attributes), standing: KeptStanding::Plain, partial: false }
    }

    fn sealed(table: &str, known: &str, sensitive: &str) -> Disclosure {
        let seal = KeptSeal {
            quasi_identifiers: names(known),
            sensitive: names(sensitive),
            joint: false,
            guarantees: vec![Guarantee::LDiversity { l: 2 }],
            uninformative: BTreeMap::new(),
            taxonomies: BTreeMap::new(),
        };
        Disclosure {
            table: table.into(),
            attributes: names(&format!("{known} {sensitive}")),
            standing: KeptStanding::Sealed(vec![seal]),
            partial: false,
        }
    }

    fn rule(known: &str, sensitive: &str) -> StandingRule {
        StandingRule {
            pointer: Some("/method/rules/0".to_owned()),
            quasi_identifiers: names(known),
            sensitive: sensitive.into(),
            combination: Vec::new(),
            guarantee: Guarantee::LDiversity { l: 2 },
            uninformative: Vec::new(),
            taxonomy: None,
        }
    }

    fn earlier(disclosures: &[Disclosure], rules: &[StandingRule]) -> Earlier {
        let release = Uuid::from_u128(7);
        Earlier {
            disclosures: disclosures.iter().map(|d| (release, d.clone())).collect(),
            rules: rules.iter().map(|r| (release, r.clone())).collect(),
            beside: Beside::default(),
        }
    }

    fn raw(attrs: &[u8]) -> Schema {
        Schema { attributes: attrs.iter().map(|&a| Attr(a)).collect(), guards: vec![] }
    }

    #[test]
    fn nothing_earlier_is_in_nothings_way() {
        let union = Union::new(&names("age zip"), &Earlier::default()).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]), Ok(()));
    }

    #[test]
    fn a_plain_table_that_closes_a_path_is_refused_with_the_path() {
        let earlier = earlier(&[plain("t1", "age ward")], &[rule("age", "disease")]);
        let union = Union::new(&names("ward disease"), &earlier).unwrap();
        let violations = union.check(&[raw(&[0, 1])], &[], &[]).unwrap_err();
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].release, Uuid::from_u128(7));
        assert_eq!(violations[0].rule, (Some(Uuid::from_u128(7)), Some("/method/rules/0".to_owned())));
        let path = [(Some(Uuid::from_u128(7)), "t1".to_owned(), names("age")), (None, "t1".to_owned(), names("ward"))];
        assert_eq!(violations[0].path, path);
    }

    #[test]
    fn a_table_that_leaves_the_guardian_alone_is_admitted() {
        let earlier = earlier(&[sealed("t1", "age ward", "disease")], &[rule("age", "disease")]);
        let union = Union::new(&names("age ward sex"), &earlier).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1, 2])], &[], &[]), Ok(()));
    }

    #[test]
    fn the_sensitive_attribute_raw_beside_its_buckets_is_refused() {
        let earlier = earlier(&[sealed("t1", "age ward", "disease")], &[rule("age", "disease")]);
        let union = Union::new(&names("ward disease"), &earlier).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]).unwrap_err().len(), 1);
    }

    #[test]
    fn a_second_bucketization_is_refused_even_when_nothing_is_shared() {
        let earlier = earlier(&[sealed("t1", "age", "disease")], &[rule("age", "disease")]);
        let union = Union::new(&names("ward disease"), &earlier).unwrap();
        let guarantee = Guarantee::LDiversity { l: 2 };
        let known = AttrSet::one(Attr(0));
        let again = Schema {
            attributes: AttrSet::first(2),
            guards: vec![Guard { known, protects: Protected::Attribute(Attr(1)), guarantee }],
        };
        let new = Rule { known, sensitive: Attr(1), guarantee };
        let violations = union.check(&[again], &[], &[(Some("/method/rules/3".to_owned()), new.into())]).unwrap_err();
        assert_eq!(violations[0].rule, (None, Some("/method/rules/3".to_owned())));
        assert!(violations[0].path.is_empty());
    }

    #[test]
    fn an_unsealed_table_tolerates_no_other_that_shares_an_attribute() {
        let unsealed = Disclosure { standing: KeptStanding::Unsealed, ..plain("t1", "age ward") };
        let union = Union::new(&names("ward sex"), &earlier(&[unsealed], &[])).unwrap();
        assert!(union.check(&[raw(&[0, 1])], &[], &[]).is_err());
        assert_eq!(union.check(&[raw(&[1])], &[], &[]), Ok(()));
    }

    #[test]
    fn an_overview_names_the_pairs_that_would_be_refused() {
        let (t1, t2) = (sealed("t1", "age ward", "disease"), plain("t2", "ward sex"));
        assert_eq!(shared(&t1, &t2), names("ward"));
        let all = names("age ward disease sex town");
        let refused = refused_pairs(&all, &earlier(&[t1, t2], &[rule("age", "disease")])).unwrap();
        // whatever leads around the buckets: age - ward - sex, then disease; a town tells of neither yet
        let pairs =
            ["age disease", "ward disease", "disease sex"].map(|pair| <[String; 2]>::try_from(names(pair)).unwrap());
        assert_eq!(refused, pairs);
        assert_eq!(refused_pairs(&all, &Earlier::default()), Ok(Vec::new()));
    }

    #[test]
    fn a_joint_value_stays_together_and_in_one_table() {
        let mut disclosed = sealed("t1", "age ward", "disease drug");
        if let KeptStanding::Sealed(seals) = &mut disclosed.standing {
            seals[0].joint = true;
        }
        let promised = StandingRule { combination: names("disease drug"), ..rule("age", "disease") };
        // as it is kept
        let kept = serde_json::to_value(&promised).unwrap();
        assert_eq!(serde_json::from_value::<StandingRule>(kept.clone()).unwrap(), promised);
        assert!(serde_json::to_value(rule("age", "disease")).unwrap().get("combination").is_none());
        let union = Union::new(&names("age ward sex disease"), &earlier(&[disclosed], &[promised])).unwrap();
        assert!(union.rules.is_empty() && union.schemas[0].guards.len() == 1);
        assert_eq!(union.check(&[raw(&[0, 1, 2])], &[], &[]), Ok(()));
        for beside in [raw(&[3]), raw(&[2, 3])] {
            let violations = union.check(&[beside], &[], &[]).unwrap_err();
            assert!(violations[0].detail.contains("disease, drug"), "{}", violations[0].detail);
        }
        // what is bucketized in a combination is bucketized
        let guarantee = Guarantee::LDiversity { l: 2 };
        let guard = Guard { known: AttrSet::one(Attr(2)), protects: Protected::Attribute(Attr(3)), guarantee };
        let again = Schema { attributes: guard.known.with(Attr(3)), guards: vec![guard] };
        assert!(union.check(&[again], &[], &[]).unwrap_err()[0].detail.contains("disease was bucketized before"));
    }

    #[test]
    fn a_table_that_lacks_rows_shares_no_attribute() {
        let partial = Disclosure { partial: true, ..sealed("t1", "age ward", "disease") };
        let kept = serde_json::to_value(&partial).unwrap();
        assert_eq!(serde_json::from_value::<Disclosure>(kept).unwrap(), partial);
        let union = Union::new(&names("ward sex"), &earlier(&[partial], &[rule("age", "disease")])).unwrap();
        let violations = union.check(&[raw(&[0, 1])], &[], &[]).unwrap_err();
        assert!(violations[0].detail.contains("lacks some rows"), "{}", violations[0].detail);
        assert_eq!(union.check(&[raw(&[1])], &[], &[]), Ok(()));
        let union = Union::new(&names("ward sex"), &earlier(&[plain("t1", "ward")], &[])).unwrap();
        assert!(union.check(&[raw(&[0, 1])], &[(0, "would lack some rows")], &[]).is_err());
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]), Ok(()));
        assert_eq!(union.check(&[raw(&[1])], &[(0, "would lack some rows")], &[]), Ok(()));
    }
}
