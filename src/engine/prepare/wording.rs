use std::fmt::Write;

use serde_json::{Value, json};

use crate::ledger::{CompositionViolation, RuleWeakening};
use crate::microdata::Attr;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{AdversaryModel, MethodKind, NoticeKind, SlicedDiversity, Unit};
use crate::publish::bucketize::PlannedBuckets;
use crate::publish::{CandidateScores, Decision, Design, DesignedRule, DesignedTable};
use crate::report::{MethodName, SpecificationNotice};
use crate::spec::{AutoGoal, MethodSpec, Specification};

/// The notices of a specification, for a plan.
pub(in crate::engine) fn notices_of(specification: &Specification) -> Vec<SpecificationNotice> {
    let warning = |warning: &crate::spec::SpecWarning| SpecificationNotice {
        r#type: warning.type_,
        pointer: warning.pointer.clone(),
        detail: warning.detail.clone(),
    };
    specification.warnings.iter().map(warning).chain(exclusive_by_choice(specification)).collect()
}

/// Notices on a sliced table that is exclusive by choice of the caller: a mixture, or columns that share attributes.
pub(in crate::engine) fn exclusive_by_choice(specification: &Specification) -> Vec<SpecificationNotice> {
    let MethodSpec::Slicing(spec) = &specification.method else { return Vec::new() };
    let notice = |r#type: NoticeKind, pointer: &str, detail: &str| SpecificationNotice {
        r#type,
        pointer: Some(pointer.to_owned()),
        detail: detail.to_owned(),
    };
    if spec.diversity != SlicedDiversity::Bucket {
        let detail = "the guarantee holds over all buckets that match a row: a single bucket may reveal more, and no other table about the \
                      same people may share an attribute";
        let less = "the bound holds for who knows all other attributes of a row: who knows fewer of them may infer a sensitive value \
                    with a probability above 1/l; bucket bounds that too";
        return vec![
            notice(NoticeKind::DiversityByMixture, "/method/diversity", detail),
            notice(NoticeKind::LessKnowledgeMayRevealMore, "/method/diversity", less),
        ];
    }
    let detail = "columns share attributes: the guarantee holds only while no other table about the same people shares an attribute";
    let shared =
        spec.overlaps().then(|| notice(NoticeKind::ColumnsShareAttributes, "/method/columns/explicit", detail));
    shared.into_iter().collect()
}

/// The problem of a release that violates a rule together with earlier ones: the first violation, and the list of all.
pub(in crate::engine) fn composition_problem(violations: &[CompositionViolation]) -> Problem {
    let detail = violations.first().map_or_else(String::new, |violation| violation.detail.clone());
    let mut problem = Problem::new(Kind::CompositionViolated, detail);
    let all: Vec<Value> = violations.iter().map(|violation| json!(violation)).collect();
    if let Some(first) = all.first() {
        for member in ["rule", "release", "path"] {
            problem = problem.with(member, first[member].clone());
        }
    }
    problem.with("violations", all)
}

/// The refusal of a requirement on a join, with the bound that the coarsest release keeps in words and per `unit`.
pub(in crate::engine) fn feasible_bound(mut fault: Fault, unit: &Unit) -> Fault {
    // what an earlier release requires cannot be asked for otherwise
    let is_own = !fault.pointer.starts_with("/method/against");
    let remedy = |bound: &str| match is_own && !bound.is_empty() {
        true => format!("ask for {bound}, or leave attributes out of x"),
        false => "publish fewer of the attributes in x".to_owned(),
    };
    let words = if let Some(rows) = fault.members.get("largest_k").and_then(Value::as_u64) {
        let k = rows / unit.rows();
        fault = fault.with("largest_k", k);
        let bound = if k > 1 { format!("k of at most {k}") } else { String::new() };
        Some(format!("some group then has {k} different values on y: {}", remedy(&bound)))
    } else if let Some(h) = fault.members.get("smallest_h").and_then(Value::as_str) {
        let bound = if h == "1/1" { String::new() } else { format!("h of at least {h}") };
        Some(format!("some value on y then has the share {h} of a group: {}", remedy(&bound)))
    } else {
        None
    };
    if let Some(words) = words {
        let _ = write!(fault.detail, "; {words}");
    }
    fault
}

/// Notices on a sequential release: the attributes that it publishes exactly, those with one label in every row, and what a bound
/// on a join is of.
pub(in crate::engine) fn describe_exactness(
    specification: &Specification,
    design: &Design,
) -> Vec<SpecificationNotice> {
    let MethodSpec::Sequential(spec) = &specification.method else { return Vec::new() };
    let published = |attr: Attr| specification.published_names[attr.index()].as_str();
    let exact: Vec<&str> = specification.attributes.minus(spec.generalized).iter().map(published).collect();
    let cuts =
        design.tables.iter().find_map(DesignedTable::sequential).map(|designed| designed.details.cuts.as_slice());
    let whole = cuts.unwrap_or_default().iter().filter(|(_, labels)| labels.len() == 1);
    let place = |name: &String| specification.names.iter().position(|own| own == name).map(Attr::from);
    let suppressed: Vec<&str> = whole.filter_map(|(name, _)| place(name)).map(published).collect();
    let notice = |r#type: NoticeKind, attributes: &[&str], detail: &str| {
        (!attributes.is_empty()).then(|| SpecificationNotice {
            r#type,
            pointer: Some("/method/requirements".to_owned()),
            detail: format!("{}: {detail}", attributes.join(", ")),
        })
    };
    let exact = notice(
        NoticeKind::AttributesExact,
        &exact,
        "published exactly, as no x of a requirement names it; readers who know it identify rows by it",
    );
    let suppressed = notice(
        NoticeKind::AttributesSuppressed,
        &suppressed,
        "the same label in every row, which says nothing of it; a taxonomy, a smaller k or fewer attributes in x keep more",
    );
    // in a single table, tuples are rows
    let counted = (!spec.against.is_empty()).then(|| SpecificationNotice {
        r#type: NoticeKind::TuplesCounted,
        pointer: Some("/method/requirements".to_owned()),
        detail: "requirements bound shares and numbers of the tuples of a join, not the posterior of a person, which can be greater"
            .to_owned(),
    });
    exact.into_iter().chain(suppressed).chain(counted).collect()
}

/// The notice that a rule of an earlier release no longer holds beside what the new one knows.
pub(in crate::engine) fn describe_weakened(weakened: &RuleWeakening) -> SpecificationNotice {
    let RuleWeakening { release, pointer, dependency, attributes } = weakened;
    let detail = format!(
        "rule {} of release {release} no longer holds: the tables published then break it beside the dependency of {} on {}, which was not          known; nothing repairs it, and no release may publish one of {} again",
        pointer.as_deref().unwrap_or_default(),
        dependency.dependent,
        dependency.determinant.join(", "),
        attributes.join(", ")
    );
    SpecificationNotice { r#type: NoticeKind::RuleWeakened, pointer: None, detail }
}

/// The method, its algorithm and the model of its adversary, as a manifest writes them.
pub(in crate::engine) fn method_name(method: &MethodSpec, decision: &Decision) -> MethodName {
    let (r#type, algorithm) = match method {
        MethodSpec::Versatile(spec) => (MethodKind::Versatile, Some(spec.algorithm)),
        MethodSpec::Anatomy(_) => (MethodKind::Anatomy, None),
        MethodSpec::Bucketize(_) => (MethodKind::Bucketize, None),
        MethodSpec::Decompose(_) => (MethodKind::Decompose, None),
        MethodSpec::Generalize(_) => (MethodKind::Generalize, None),
        MethodSpec::Sequential(_) => (MethodKind::Sequential, None),
        MethodSpec::Slicing(_) => (MethodKind::Slicing, None),
    };
    let adversary = matches!(decision, Decision::ByData(_)).then_some(AdversaryModel::WithoutMinimality);
    MethodName { r#type, algorithm, adversary }
}

/// Notices on a decomposition: attributes without a bound on the posterior, and attributes with values that can be inferred.
pub(in crate::engine) fn describe_unbounded(design: &Design, names: &[String]) -> Vec<SpecificationNotice> {
    let drawn = design.tables.iter().find_map(|table| table.decomposed()?.drawn.as_deref());
    let bounded = |rule: &&DesignedRule| drawn.is_none_or(|drawn| drawn.bounded.contains(rule.rule.sensitive));
    let notice = |rule: &DesignedRule| {
        let name = &names[rule.rule.sensitive.index()];
        SpecificationNotice {
            r#type: NoticeKind::NotBounded,
            pointer: rule.pointer.clone(),
            detail: format!(
                "a reader of both tables may infer a value of {name} with a posterior above 1/l; versatile, with a rule from the \
                 quasi-identifiers to each sensitive attribute, bounds every posterior"
            ),
        }
    };
    let mut notices: Vec<SpecificationNotice> = design.rules.iter().filter(|rule| !bounded(rule)).map(notice).collect();
    notices.extend(describe_inferred(design, names));
    notices
}

/// Notices on attributes whose values some adversary can infer.
fn describe_inferred(design: &Design, names: &[String]) -> Vec<SpecificationNotice> {
    let decomposed = design.tables.iter().find_map(DesignedTable::decomposed);
    let Some((decomposed, drawn)) = decomposed.and_then(|of| Some((of, of.drawn.as_deref()?))) else {
        return Vec::new();
    };
    let primary = &names[decomposed.primary.index()];
    let notice = |attr: Attr| {
        let inferences = decomposed.inferences_in_words(drawn, attr, names)?;
        let (name, rule) = (&names[attr.index()], design.rules.iter().find(|rule| rule.rule.sensitive == attr));
        Some(SpecificationNotice {
            r#type: NoticeKind::CanBeConcluded,
            pointer: rule.and_then(|rule| rule.pointer.clone()),
            detail: format!(
                "{inferences}; versatile, with a rule from the quasi-identifiers and {primary} to {name}, prevents this"
            ),
        })
    };
    decomposed.others().filter_map(notice).collect()
}

/// The notice, for the holder of the original, on counterfeits with unlikely values.
pub(in crate::engine) fn describe_inference(planned: &PlannedBuckets) -> Option<SpecificationNotice> {
    (planned.seen_through > 0).then(|| SpecificationNotice {
        r#type: NoticeKind::CounterfeitsUnlikely,
        pointer: Some("/method/counterfeits".to_owned()),
        detail: format!(
            "{} counterfeits have a value that a row of their bucket makes unlikely: a reader who knows the data can identify them",
            planned.seen_through
        ),
    })
}

/// The notice on the choice of the tables, for a plan. It names scores, which reveal figures of the data.
pub(in crate::engine) fn describe_choice(method: &MethodSpec, decision: &Decision) -> Option<SpecificationNotice> {
    let (r#type, detail) = match decision {
        Decision::ByRules | Decision::ByData(None) | Decision::Empty | Decision::NotDiverse(_) => return None,
        Decision::ByData(Some(choice)) => {
            let tried: Vec<String> =
                choice.considered.iter().map(|(name, score)| format!("{name}: {:.4}", score.abs())).collect();
            let best = match choice.goal {
                AutoGoal::Classification => "keeps the most information of protected attributes",
                AutoGoal::Entropy | AutoGoal::Count => "leaves the model of readers the least entropy",
            };
            let detail = format!("{} {best}, in nats ({}){}", choice.winner, tried.join("; "), why_only_uad(choice));
            (NoticeKind::AlgorithmChosen, detail)
        }
        Decision::Undecided if matches!(method, MethodSpec::Slicing(_)) => {
            return Some(SpecificationNotice {
                r#type: NoticeKind::NotDecided,
                pointer: Some("/method/columns".to_owned()),
                detail: "the columns follow the associations in the data, and are chosen when the rows are read"
                    .to_owned(),
            });
        }
        Decision::Undecided if matches!(method, MethodSpec::Sequential(_)) => {
            return Some(SpecificationNotice {
                r#type: NoticeKind::NotDecided,
                pointer: Some("/method/requirements".to_owned()),
                detail: "the generalization of attributes is decided when the rows are read".to_owned(),
            });
        }
        Decision::Undecided => {
            let detail = "the tables are chosen by the data, when the rows are read and every rule can be enforced";
            (NoticeKind::NotDecided, detail.to_owned())
        }
    };
    Some(SpecificationNotice { r#type, pointer: Some("/method/algorithm".to_owned()), detail })
}

/// The notice on the chosen algorithm, for readers of the release; it reveals no figure of the others.
pub(in crate::engine) fn choice_for_readers(decision: &Decision) -> Option<SpecificationNotice> {
    let Decision::ByData(Some(choice)) = decision else { return None };
    Some(SpecificationNotice {
        r#type: NoticeKind::AlgorithmChosen,
        pointer: Some("/method/algorithm".to_owned()),
        detail: format!(
            "of the algorithms that were tried, {} preserved the most information{}{}",
            choice.winner,
            if choice.goal == AutoGoal::Classification { " of protected attributes" } else { "" },
            why_only_uad(choice)
        ),
    })
}

/// Why `gd` was not tried, if it was not. The specification says as much.
fn why_only_uad(choice: &CandidateScores) -> String {
    let why = |protected: usize| {
        format!("; with the goal count and {protected} protected attributes forms of uad alone are tried")
    };
    choice.only_uad_for.map(why).unwrap_or_default()
}
