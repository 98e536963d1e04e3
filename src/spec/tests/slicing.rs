//! The method `slicing`: what is read, what is said of what cannot be, and its one spelling.

use Kind::{BadColumns, GuaranteeUnsupported as Unsupported, ParameterRange as Range, UnknownAttribute, UnknownField};
use serde_json::{Value, json};

use super::{accepted, columns, kinds, read_on, set, with};
use crate::microdata::Attr;
use crate::problem::Kind;
use crate::publication::{Guarantee, Protected, Ratio, SlicedDiversity};
use crate::spec::MethodSpec;
use crate::spec::methods::slicing::{SlicedColumns, SlicingSpec};

fn document() -> Value {
    json!({
        "dataset": super::ID,
        "unlisted": "drop",
        "attributes": {"a": {"publish": true, "discretize": {"equal_width": 4}}},
        "method": {
            "type": "slicing",
            "sensitive": "s",
            "columns": {"explicit": [["s", "b"], ["c", "a"]]},
            "guarantee": {"type": "l_diversity", "l": 2},
        },
    })
}

fn read_slicing(document: &Value) -> SlicingSpec {
    match accepted(document, &columns(&["a", "b", "c", "d", "s"])).method {
        MethodSpec::Slicing(spec) => spec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn columns_and_bounds_are_understood() {
    let spec = read_slicing(&document());
    assert_eq!((spec.rule.pointer.as_str(), spec.rule.known), ("/method", set(&[0, 1, 2])));
    assert_eq!((spec.rule.protects, spec.sensitive()), (Protected::Attribute(Attr(3)), Attr(3)));
    assert_eq!(spec.columns, SlicedColumns::Explicit(vec![set(&[1, 3]), set(&[0, 2])]));
    assert_eq!((spec.diversity, spec.min_bucket, spec.strict, spec.max_attempts), Default::default());
    assert_eq!(spec.bins.into_iter().collect::<Vec<_>>(), [(Attr(0), 4)]);
    let fraction = read_slicing(&with(document(), "/method/guarantee/l", json!("5/2")));
    let ratio = |a, b| Ratio::new(a, b).expect("a ratio");
    assert_eq!(fraction.rule.guarantee, Guarantee::AlphaK { alpha: ratio(2, 5), k: 1 });
    assert_eq!(fraction.l, Some(ratio(5, 2)));
    let whole = read_slicing(&with(document(), "/method/guarantee/l", json!("3")));
    assert_eq!((whole.rule.guarantee, whole.l), (Guarantee::LDiversity { l: 3 }, Some(ratio(3, 1))));
    let mut counted = with(document(), "/method/columns", json!({"count": 2, "sensitive_width": 1}));
    counted["method"]["diversity"] = json!("mixture_weighted");
    let counted = read_slicing(&counted);
    assert_eq!(counted.columns, SlicedColumns::SensitiveWidth { count: 2, width: 1 });
    assert_eq!((counted.diversity, counted.rule.known), (SlicedDiversity::MixtureWeighted, set(&[0])));
}

#[test]
fn one_spelling_for_what_means_the_same() {
    let normal =
        |document: &Value| accepted(document, &columns(&["a", "b", "c", "d", "s"])).normalized["method"].clone();
    let plain = normal(&document());
    assert_eq!(
        plain,
        json!({"type": "slicing", "sensitive": "s", "columns": {"explicit": [["b", "s"], ["a", "c"]]},
            "guarantee": {"type": "l_diversity", "l": 2}, "diversity": "bucket", "min_bucket": null, "split": "relaxed",
            "max_attempts": null, "column_k": null, "functional_dependencies": [], "assume_unknown": [],
            "dependencies": {"discover": "singles_and_pairs", "tolerance": "0.01"}})
    );
    let mut said = document();
    for (member, value) in [("diversity", json!("bucket")), ("split", json!("relaxed")), ("column_k", Value::Null)] {
        said["method"][member] = value;
    }
    said["method"]["guarantee"]["l"] = json!("2.0");
    assert_eq!(normal(&said), plain);
    assert_eq!(normal(&with(document(), "/method/guarantee/l", json!("10/4")))["guarantee"]["l"], "2.5");
    // what is written is read back
    let specification = accepted(&document(), &columns(&["a", "b", "c", "d", "s"]));
    let again = accepted(&specification.normalized, &columns(&["a", "b", "c", "d", "s"]));
    assert_eq!((again.normalized, again.method), (specification.normalized, specification.method));
}

const CIRCLE: &[(&str, Kind)] = &[("/method/columns/explicit", BadColumns)];

/// Where a value is replaced, by what, and the faults that follow.
type Case<'a> = (&'a str, Value, &'a [(&'a str, Kind)]);

/// Columns may share attributes; what is not known of such columns is refused.
#[test]
fn columns_may_share_attributes() {
    let names = ["a", "b", "c", "d", "s"];
    let covered = |lists: Value| with(document(), "/method/columns/explicit", lists);
    let shared = covered(json!([["s", "b"], ["c", "a"], ["s", "c"]]));
    let spec = read_slicing(&shared);
    assert_eq!(spec.columns, SlicedColumns::Explicit(vec![set(&[1, 3]), set(&[0, 2]), set(&[2, 3])]));
    assert!(spec.overlaps() && !read_slicing(&document()).overlaps());
    let given = accepted(&shared, &columns(&names)).normalized["method"]["columns"].clone();
    assert_eq!(given, json!({"explicit": [["b", "s"], ["a", "c"], ["c", "s"]]}));
    let refused = |document: &Value| read_on(document, &columns(&names)).faults;
    let refuses = |document: &Value, pointer: &str| assert_eq!(kinds(&refused(document)), [(pointer, Unsupported)]);
    refuses(&with(shared.clone(), "/method/column_k", json!(2)), "/method/column_k");
    let distinct = json!({"type": "distinct_l_diversity", "l": 2});
    refuses(&with(shared.clone(), "/method/guarantee", distinct), "/method/guarantee/type");
    let measured = |document: Value| with(document, "/internal", json!({"utility": ["kl"]}));
    assert!(refused(&measured(shared.clone())).is_empty());
    refuses(&with(shared, "/utility", json!(["entropy"])), "/utility/0");
    let three = with(document(), "/method/columns/explicit", json!([["s"], ["b"], ["c", "a"]]));
    refuses(&with(three, "/utility", json!(["entropy"])), "/utility/0");
    let boxed = with(document(), "/method/column_k", json!(2));
    refuses(&with(boxed, "/utility", json!(["entropy"])), "/utility/0");
    assert!(accepted(&with(document(), "/utility", json!(["entropy"])), &columns(&names)).entropy);
    // a circle is no matter where one column has the sensitive attribute, or combinations alone count
    let circle = covered(json!([["a", "b"], ["b", "c"], ["a", "c", "s"]]));
    assert!(refused(&circle).is_empty());
    refuses(&measured(circle.clone()), "/internal/utility");
    assert_eq!(kinds(&refused(&with(circle, "/method/diversity", json!("mixture_weighted")))), CIRCLE);
    let several = covered(json!([["a", "b"], ["b", "s"], ["a", "c", "s"]]));
    assert_eq!(kinds(&refused(&several)), CIRCLE);
    assert!(refused(&with(several, "/method/diversity", json!("mixture"))).is_empty());
}

#[test]
fn every_fault_is_pointed_at() {
    let cases: &[Case<'_>] = &[
        ("/method/sensitive", json!(null), &[("/method/sensitive", Range)]),
        ("/method/sensitive", json!("x"), &[("/method/sensitive", UnknownAttribute)]),
        ("/method/guarantee", json!(null), &[("/method/guarantee", Range)]),
        ("/method/guarantee/l", json!(1), &[("/method/guarantee/l", Kind::VacuousGuarantee)]),
        ("/method/guarantee/l", json!("1/2"), &[("/method/guarantee/l", Kind::VacuousGuarantee)]),
        ("/method/guarantee/l", json!(0), &[("/method/guarantee/l", Range)]),
        ("/method/guarantee/l", json!(2.123_456_789_01), &[("/method/guarantee/l", Range)]),
        ("/method/guarantee/l", json!("two"), &[("/method/guarantee/l", Range)]),
        ("/method/guarantee/m", json!(2), &[("/method/guarantee/m", UnknownField)]),
        ("/method/guarantee", json!({"type": "k_anonymity", "k": 2}), &[("/method/guarantee/type", Unsupported)]),
        ("/method/guarantee", json!({"type": "t_closeness", "t": "0.2"}), &[("/method/guarantee/type", Unsupported)]),
        (
            "/method/guarantee",
            json!({"type": "alpha_k", "alpha": "0.2", "k": 2}),
            &[("/method/guarantee/type", Unsupported)],
        ),
        ("/method/diversity", json!("some"), &[("/method/diversity", Range)]),
        ("/method/split", json!("loose"), &[("/method/split", Range)]),
        ("/method/min_bucket", json!(0), &[("/method/min_bucket", Range)]),
        ("/method/max_attempts", json!("all"), &[("/method/max_attempts", Range)]),
        ("/method/column_k", json!(1), &[("/method/column_k", Range)]),
        ("/method/column_k", json!("2"), &[("/method/column_k", Range)]),
        ("/method/quasi_identifiers", json!(["a"]), &[("/method/quasi_identifiers", UnknownField)]),
        ("/method/columns", json!(null), &[("/method/columns", Range)]),
        ("/method/columns", json!(3), &[("/method/columns", Range)]),
        ("/method/columns", json!({}), &[("/method/columns", Range)]),
        ("/method/columns", json!({"sensitive_width": 2}), &[("/method/columns", Range)]),
        ("/method/columns/count", json!(2), &[("/method/columns", Range)]),
        ("/method/columns", json!({"count": "2"}), &[("/method/columns/count", Range)]),
        ("/method/columns", json!({"count": 0}), &[("/method/columns/count", BadColumns)]),
        ("/method/columns", json!({"count": 3}), &[("/method/columns/count", BadColumns)]),
        ("/method/columns", json!({"count": 2, "sensitive_width": 2}), &[("/method/columns/count", BadColumns)]),
        (
            "/method/columns",
            json!({"count": 1, "sensitive_width": 3}),
            &[("/method/columns/sensitive_width", BadColumns)],
        ),
        ("/method/columns", json!({"explicit": [["s"]], "more": 1}), &[("/method/columns/more", UnknownField)]),
        (
            "/method/columns/explicit",
            json!([["s", "b"], ["c", "s", 3], "a", []]),
            &[
                ("/method/columns/explicit", BadColumns),
                ("/method/columns/explicit/1/2", Range),
                ("/method/columns/explicit/2", Range),
                ("/method/columns/explicit/3", BadColumns),
            ],
        ),
        (
            "/method/columns/explicit",
            json!([["s", "b"], ["c", "a", "c"], ["b", "s"], ["a"]]),
            &[
                ("/method/columns/explicit/1/2", BadColumns),
                ("/method/columns/explicit/2", BadColumns),
                ("/method/columns/explicit/3", BadColumns),
            ],
        ),
        (
            "/method/columns/explicit",
            json!([["s", "a"], ["s", "b"], ["s", "c"], ["s", "d"], ["s", "e"]]),
            &[("/method/columns/explicit", BadColumns)],
        ),
        // in a circle, with the sensitive attribute and without
        ("/method/columns/explicit", json!([["a", "b"], ["a", "s"], ["b", "s"], ["c", "s"]]), CIRCLE),
        ("/method/columns/explicit", json!([["a", "b"], ["b", "c"], ["a", "c"], ["c", "s"], ["s", "d"]]), CIRCLE),
        ("/method/columns/explicit", json!([["a", "b", "s"], ["b", "c", "s"], ["a", "c", "s"]]), CIRCLE),
    ];
    for (pointer, value, expected) in cases {
        let changed = with(document(), pointer, value.clone());
        let found = read_on(&changed, &columns(&["a", "b", "c", "d", "e", "s"])).faults;
        assert_eq!(kinds(&found), *expected, "{changed}");
    }
    let alone = json!({"dataset": super::ID, "unlisted": "drop", "method": {"type": "slicing", "sensitive": "s",
        "columns": {"count": 1}, "guarantee": {"type": "l_diversity", "l": 2}}});
    let found = read_on(&alone, &columns(&["a", "s"])).faults;
    assert_eq!(kinds(&found), [("/method/columns", BadColumns)]);
}
