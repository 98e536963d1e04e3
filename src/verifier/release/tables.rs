//! Checks of each published table, part by part: agreement of buckets, and the guarantees of guards.

use std::collections::BTreeSet;

use ahash::AHashMap;

use super::closed::ClosedStrata;
use super::content::PartPlace;
use super::placement::{PlacedPart, RowCounting};
use super::posteriors::{PosteriorTally, posterior, posteriors, prior};
use super::reference::{RelativeBuckets, is_relative};
use super::sequential::details::sequential_details;
use super::tables_report::TablesReport;
use super::{content, decomposed, dependencies, generalized, noise, overlapping, placement, republished, slicing};
use crate::control::Control;
use crate::microdata::AttrSet;
use crate::publication::{
    CellContent, EnforcedBy, EnforcedRule, Guarantee, Part, Protected, PublishedTable, ReadPart, RowMeaning,
    TableGuard, TableProtection,
};
use crate::verifier::contract::checks::{CheckLog, CheckName, TableFigures};
use crate::verifier::contract::claim;
use crate::verifier::contract::claim::{DecompositionClaim, SlicingClaim};
use crate::verifier::contract::input::{PartsReader, VerifierError, VerifierInput};
use crate::verifier::definition::guarantee::BucketShares;
use crate::verifier::definition::measure::BucketMeasure;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::definition::thresholds;
use crate::verifier::read::bucket_classes::BucketClasses;
use crate::verifier::read::part;
use crate::verifier::read::part::{ParsedPart, PartInTable};
use crate::verifier::read::row_keys::{BucketOffsets, RowKeys};

/// Reads and checks every table.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    mut reader: Option<&mut dyn PartsReader>,
    control: &Control,
    log: &mut CheckLog,
) -> Result<TablesReport, VerifierError> {
    let mut report = TablesReport::of_tables(input.publication.tables.len());
    for (index, table) in input.publication.tables.iter().enumerate() {
        let mut check = TableCheck { keeps_parts: reader.is_some(), ..TableCheck::new(input, control, index) };
        for position in 0..table.parts.len() {
            check.part(position, &mut report, log)?;
        }
        report.figures.push(check.finish(log)?);
        if let (Some(reader), Some(parts)) = (&mut reader, check.into_read()) {
            reader.read(index, parts)?;
        }
    }
    if let Some(claim) = DecompositionClaim::from_input(input) {
        decomposed::check(input, &claim, &report.decomposition, control, log)?;
        noise::check(input, &claim, &report.decomposition.0, log);
    }
    lengths(input, &report, log);
    Ok(report)
}

/// Checks that every table holds every row that is not suppressed.
fn lengths(input: &VerifierInput<'_>, tables: &TablesReport, log: &mut CheckLog) {
    let rows = match input.original {
        Some(original) => (original.rows() as u64).saturating_sub(input.publication.suppressed),
        None => tables.figures.first().map_or(0, |figures| figures.rows),
    };
    let claim = DecompositionClaim::from_input(input);
    for (table, figures) in input.publication.tables.iter().zip(&tables.figures) {
        // other checks compare lists of values, and joint values of some rows, with the other parts
        let other = |part: &Part| part.rows == RowMeaning::Values || claim.is_some_and(|claim| claim.is_joint(part));
        if table.parts.iter().all(other) {
            if figures.rows > rows {
                log.fail(CheckName::Columns, format!("table {} has more than {rows} rows", table.name));
            }
            continue;
        }
        let has_rows = |part: &Part| match part.rows {
            RowMeaning::TuplesAndVaryingCounterfeits => part.len >= rows,
            rows_of => part.len == rows + thresholds::counterfeits(rows_of) * figures.buckets,
        };
        if figures.rows != rows || table.parts.iter().any(|part| !other(part) && !has_rows(part)) {
            log.fail(CheckName::Columns, format!("table {} does not have {rows} rows", table.name));
            if table.parts.iter().any(|part| part.bucketed) {
                log.fail(CheckName::Buckets, format!("the buckets of table {} do not hold {rows} rows", table.name));
            }
        }
    }
}

/// Check of one table, part by part.
struct TableCheck<'a> {
    input: &'a VerifierInput<'a>,
    control: &'a Control,
    index: usize,
    table: &'a PublishedTable,
    /// Whether the table has buckets and generalized cells.
    is_boxed: bool,
    /// Whether the table has generalized cells and no buckets.
    is_generalized: bool,
    is_sequential: bool,
    slicing: Option<SlicingClaim>,
    decomposition: Option<DecompositionClaim<'a>>,
    /// The guards whose guarantees every bucket must satisfy.
    guards: Vec<TableGuard>,
    /// The indexes of the guards that some part checked.
    checked_guards: BTreeSet<usize>,
    figures: TableFigures,
    /// The buckets of the first part with labels.
    buckets: Option<BucketOffsets>,
    /// Whether a reader wants the parts.
    keeps_parts: bool,
    /// The parts, where a check or a reader needs all of them.
    parts: Vec<ParsedPart>,
    /// The strata of guards that close some.
    closed: ClosedStrata,
    /// The bucketed parts against the original, where no witness says which rows are in a bucket.
    placed: Vec<PlacedPart>,
}

impl<'a> TableCheck<'a> {
    fn new(input: &'a VerifierInput<'a>, control: &'a Control, index: usize) -> Self {
        let table = &input.publication.tables[index];
        let is_boxed = claim::is_boxed(table);
        let is_generalized = table.is_generalized() && !is_boxed;
        let slicing = SlicingClaim::from_input(input);
        let decomposition = DecompositionClaim::from_input(input);
        let guards = match &table.protection {
            _ if is_generalized => claim::promised(input, table),
            TableProtection::Guarding(guards) => guards.clone(),
            TableProtection::Exclusive if let Some(claim) = &decomposition => claim.promised(table),
            TableProtection::Exclusive => slicing.iter().map(SlicingClaim::figures_guard).collect(),
            TableProtection::Plain => Vec::new(),
        };
        Self {
            input,
            control,
            index,
            table,
            is_boxed,
            is_generalized,
            is_sequential: sequential_details(input).is_some(),
            slicing,
            decomposition,
            guards,
            checked_guards: BTreeSet::new(),
            figures: TableFigures::default(),
            buckets: None,
            keeps_parts: false,
            parts: Vec::new(),
            closed: ClosedStrata::default(),
            placed: Vec::new(),
        }
    }

    /// Checks one part, by its position in the table.
    fn part(&mut self, position: usize, report: &mut TablesReport, log: &mut CheckLog) -> Result<(), VerifierError> {
        let claimed = &self.table.parts[position];
        let Some(mut part) = self.read(claimed, log)? else {
            return Ok(());
        };
        let is_joint = self.decomposition.is_some_and(|claim| claim.is_joint(claimed));
        let is_listed = claimed.rows == RowMeaning::Values;
        let lacks_rows = is_joint && self.decomposition.is_some_and(|claim| claim.leaves_out());
        // with an original, its counts decide eligibility; but of buckets that persist, their signatures do
        let is_counted = self.input.original.is_none() || claimed.rows == RowMeaning::TuplesAndVaryingCounterfeits;
        if is_counted && !is_listed && !lacks_rows {
            report.add_counts(self.input, &part, self.control)?;
        }
        if position == 0 {
            self.figures.rows = part.rows as u64;
        }
        let place = part::place_of(self.table, claimed);
        if self.is_generalized && !self.is_sequential {
            generalized::label(self.table, &mut part, self.control)?;
        }
        self.closed.read_constants(self.table, &part);
        let constant = dependencies::constant_columns(self.input, claimed, &part);
        report.constant[self.index] = report.constant[self.index].union(constant);
        for attr in dependencies::varying_in_part(self.input, self.table, &part, constant).iter() {
            let detail = format!("{place}: a bucket is not constant in {}", self.input.name(attr));
            log.fail(CheckName::Dependencies, detail);
        }
        match (&part.labels, &part.buckets) {
            (None, _) => {}
            (Some(_), None) => {
                for check in [CheckName::Buckets, CheckName::Guarantee] {
                    log.fail(check, format!("{place}: there are labels above the number of rows"));
                }
            }
            (Some(_), Some(buckets)) => {
                self.control.check()?;
                self.guards(claimed, &part, buckets, log)?;
                if self.is_generalized {
                    generalized::anonymity(self.input, self.table, buckets, log);
                }
            }
        }
        if self.is_boxed {
            self.boxes(&part, &place, log)?;
        }
        if self.input.original.is_some() || self.is_generalized {
            self.control.check()?;
            self.placed.extend(self.placed(claimed, &part));
            self.content(position, &part, &place, log);
        }
        if let Some(buckets) = part.buckets.take() {
            self.compare_buckets(claimed, buckets, log);
        }
        match (self.needs_parts(), self.decomposition.is_some()) {
            (true, _) => self.parts.push(part),
            (false, true) => report.decomposition.0.push(part),
            (false, false) => {}
        }
        Ok(())
    }

    /// Reads a part.
    fn read(&self, claimed: &Part, log: &mut CheckLog) -> Result<Option<ParsedPart>, VerifierError> {
        let of = PartInTable { table: self.table, part: claimed, before: self.parts.last() };
        part::read(self.input, self.control, of, log)
    }

    /// Whether a check or a reader needs all parts.
    fn needs_parts(&self) -> bool {
        let is_read = self.keeps_parts && self.decomposition.is_none();
        is_read || self.slicing.is_some() || republished::details(self.input).is_some()
    }

    /// A bucketed part of exact values, to be compared with the others row by row; `None` where a witness says more.
    fn placed(&self, claimed: &Part, part: &ParsedPart) -> Option<PlacedPart> {
        let original = self.input.original.filter(|_| self.input.witness.is_none() && claimed.bucketed)?;
        let labels = part.labels.as_ref().filter(|_| claimed.columns.iter().all(|c| c.cells == CellContent::Exact))?;
        let counting = match claimed.rows {
            RowMeaning::Tuples => RowCounting::Equal,
            RowMeaning::TuplesAndCounterfeits { .. } | RowMeaning::TuplesAndVaryingCounterfeits => RowCounting::AtMost,
            RowMeaning::Values => RowCounting::Listed,
        };
        let columns = part.columns.iter().map(|c| (&original.column(c.attribute).codes, c.ranks.as_deref()));
        let expected = RowKeys::pack(&part.layout(), original.rows(), columns);
        Some(PlacedPart::new(counting, labels, &part.keys(), &expected, original.rows()))
    }

    /// Compares a part with the original.
    fn content(&self, position: usize, part: &ParsedPart, name: &str, log: &mut CheckLog) {
        if self.is_sequential {
            // the sequential check compares the rows with the cuts
            return;
        }
        let place = PartPlace { table: self.index, position, name };
        if self.is_generalized || (self.is_boxed && self.input.witness.is_none()) {
            return generalized::content(self.input, &place, part, log);
        }
        let claimed = &self.table.parts[position];
        match &self.decomposition {
            Some(claim) if claimed.rows == RowMeaning::Values || claim.is_joint(claimed) => {
                decomposed::content(self.input, claim, &place, part, log);
            }
            _ => content::check(self.input, &place, part, log),
        }
    }

    /// Compares the buckets of a part with those of the first part.
    fn compare_buckets(&mut self, claimed: &Part, buckets: BucketOffsets, log: &mut CheckLog) {
        let Some(first) = &self.buckets else {
            self.buckets = Some(buckets);
            return;
        };
        let agree = match claimed.rows {
            // a list of values has at least one value for each bucket
            RowMeaning::Values => first.len() == buckets.len() && buckets.ranges().all(|range| !range.is_empty()),
            RowMeaning::TuplesAndVaryingCounterfeits => {
                let fits = |(rows, slots): (std::ops::Range<usize>, std::ops::Range<usize>)| rows.len() <= slots.len();
                first.len() == buckets.len() && first.ranges().zip(buckets.ranges()).all(fits)
            }
            _ => first.equals_with_more(thresholds::counterfeits(claimed.rows), &buckets),
        };
        if !agree {
            log.fail(CheckName::Buckets, format!("the parts of table {} have other buckets", self.table.name));
        }
    }

    /// Checks what needs all parts, and completes the figures.
    fn finish(&mut self, log: &mut CheckLog) -> Result<TableFigures, VerifierError> {
        match self.slicing {
            Some(claim) if claim.shared => {
                let found = overlapping::check(self.input, &claim, &self.parts, self.control, log)?;
                self.figures.posteriors.extend(found.map(|found| (claim.sensitive, found)));
            }
            Some(claim) => slicing::check(self.input, &claim, &self.parts, self.control, log)?,
            None => republished::check(self.input, &self.parts, log),
        }
        self.figures.closed = self.closed.check(self.input, self.table, log);
        let place = format!("table {}", self.table.name);
        placement::check(&self.placed, self.input.publication.suppressed, &place, self.control, log)?;
        if self.checked_guards.len() < self.guards.len() {
            log.fail(CheckName::Guarantee, format!("table {}: a guard could not be checked", self.table.name));
        }
        if let Some(buckets) = &self.buckets {
            for size in buckets.ranges().map(|range| range.len() as u64).filter(|&size| size > 0) {
                self.figures.buckets += 1;
                *self.figures.sizes.entry(size).or_default() += 1;
            }
        }
        Ok(std::mem::take(&mut self.figures))
    }

    /// The rows of all parts; `None` unless every cell is a value of the original.
    fn into_read(self) -> Option<Vec<ReadPart>> {
        let (original, claimed) = (self.input.original?, &self.table.parts);
        let parts = self.parts.into_iter().zip(claimed).map(|(part, claimed)| part.into_read(original, claimed));
        let parts: Vec<ReadPart> = parts.collect::<Option<_>>()?;
        (parts.len() == claimed.len()).then_some(parts)
    }

    /// Checks that every box of a part holds as many rows as declared.
    fn boxes(&self, part: &ParsedPart, place: &str, log: &mut CheckLog) -> Result<(), VerifierError> {
        let rare = slicing::rare_boxes(self.input, part, self.control)?;
        if rare > 0 {
            log.fail(CheckName::Guarantee, format!("{place}: {rare} boxes hold fewer rows than declared"));
        }
        Ok(())
    }

    /// Checks the guards of this part, and measures the rules that the table enforces.
    ///
    /// Every bucket satisfies each guarantee of a guard [Jin et al. 2010, section 2], also for each value of the
    /// known attributes that the part shows.
    fn guards(
        &mut self,
        claimed: &Part,
        part: &ParsedPart,
        buckets: &BucketOffsets,
        log: &mut CheckLog,
    ) -> Result<(), VerifierError> {
        for (number, guard) in self.guards.iter().enumerate() {
            // a combination of one attribute is no valid claim
            if matches!(guard.protects, Protected::Joint(attrs) if attrs.len() < 2) {
                continue;
            }
            let Some(classes) = BucketClasses::new(part, buckets, guard, self.control)? else { continue };
            let sensitive = guard.protects.attributes();
            let measured = self.measured_rules(sensitive);
            self.checked_guards.insert(number);
            // declarations are about single attributes
            let column = part.columns.iter().find(|column| guard.protects == Protected::Attribute(column.attribute));
            let default = DeclaredValues::default();
            let declared = column.map_or(&default, |column| &column.declared);
            let requirements = BucketRequirements { declared, counterfeits: thresholds::counterfeits(claimed.rows) };
            let (relative, absolute): (Vec<Guarantee>, Vec<Guarantee>) =
                guard.guarantees.iter().partition(|of| is_relative(of));
            let (of_strata, measured): (Vec<_>, Vec<_>) = measured.into_iter().partition(|(_, of)| is_relative(of));
            let mut observed = ObservedBuckets::read(&classes, &requirements, &absolute, &measured, self.control)?;
            if !relative.is_empty() {
                let measured = &of_strata;
                let compared = RelativeBuckets { guard, classes: &classes, buckets, declared, measured };
                observed.measures.extend(self.compare_with_strata(&compared, log)?);
            }
            if guard.closes {
                self.closed.read_buckets(guard, &classes, buckets, declared, self.control)?;
            }
            let broken = absolute.iter().zip(&observed.broken).filter(|(_, broken)| **broken > 0);
            for (guarantee, broken) in broken.filter(|_| !guard.closes) {
                let (names, word) = (self.input.list(sensitive), guarantee.as_str());
                let detail = format!("table {}: {broken} buckets do not keep {word} of {names}", self.table.name);
                log.fail(CheckName::Guarantee, detail);
            }
            self.figures.measures.extend(observed.measures);
            let sizes = buckets.ranges().map(|range| range.len() as u64).filter(|&rows| rows > 0);
            let smallest = sizes.min().unwrap_or(0).saturating_sub(requirements.counterfeits);
            let is_of_tuples = claimed.rows == RowMeaning::Tuples;
            let prior = is_of_tuples.then(|| prior(&classes.protected.counts(), &declared.excluded));
            let Some(posteriors) = posteriors(observed.tallies, smallest, prior) else { continue };
            match guard.protects {
                Protected::Attribute(attr) => self.figures.posteriors.insert(attr, posteriors),
                Protected::Joint(attrs) => self.figures.combined.insert(attrs, posteriors),
                Protected::Rows => None,
            };
        }
        Ok(())
    }

    /// Checks the guarantees that compare buckets with their strata, and gives their measures.
    fn compare_with_strata(
        &self,
        compared: &RelativeBuckets<'_>,
        log: &mut CheckLog,
    ) -> Result<Vec<(usize, BucketMeasure)>, VerifierError> {
        let name = &self.table.name;
        let Some(figures) = compared.compare(&self.closed.values, self.control)? else {
            let detail = format!("table {name}: no part shows the strata that a guarantee compares with");
            log.fail(CheckName::Guarantee, detail);
            return Ok(Vec::new());
        };
        let names = self.input.list(compared.guard.protects.attributes());
        for (guarantee, broken) in figures.broken.into_iter().filter(|(_, broken)| *broken > 0) {
            let word = guarantee.as_str();
            let detail = format!("table {name}: {broken} buckets do not keep {word} of {names} in their strata");
            log.fail(CheckName::Guarantee, detail);
        }
        Ok(figures.measures)
    }

    /// The rules that this table enforces on a protected side and whose guarantees have measures.
    fn measured_rules(&self, sensitive: AttrSet) -> Vec<(usize, Guarantee)> {
        let enforces = |rule: &EnforcedRule| match &rule.enforced_by {
            EnforcedBy::Guardian { table, .. } | EnforcedBy::Table(table) => *table == self.table.name,
            EnforcedBy::Unreachable => false,
        };
        let rules = self.input.publication.rules.iter().enumerate();
        rules
            .filter(|(_, rule)| enforces(rule) && sensitive.is_subset(rule.protects.attributes()))
            .map(|(index, rule)| (index, rule.guarantee))
            .filter(|(_, guarantee)| BucketMeasure::is_of(*guarantee))
            .collect()
    }
}

/// Properties of the protected values of a part, other than guarantees.
struct BucketRequirements<'a> {
    /// What the caller declares about the values.
    declared: &'a DeclaredValues,
    /// Number of counterfeits in each bucket.
    counterfeits: u64,
}

impl BucketRequirements<'_> {
    /// The largest posterior for an adversary who knows the number of counterfeits.
    ///
    /// A value that occurs more than once is real; one that occurs once may be a counterfeit.
    fn posterior(&self, shown: ShareOfRows) -> ShareOfRows {
        let fakes = if shown.count > 1 { self.counterfeits } else { 0 };
        ShareOfRows { of: shown.of.saturating_sub(fakes), ..shown }
    }
}

/// Figures of the buckets of a part for one guard.
struct ObservedBuckets {
    tallies: PosteriorTally,
    /// For each guarantee, the number of buckets that violate it.
    broken: Vec<u64>,
    /// For each measured rule, the measure of its worst bucket.
    measures: Vec<(usize, BucketMeasure)>,
}

impl ObservedBuckets {
    fn read(
        classes: &BucketClasses<'_>,
        requirements: &BucketRequirements<'_>,
        guarantees: &[Guarantee],
        measured: &[(usize, Guarantee)],
        control: &Control,
    ) -> Result<Self, VerifierError> {
        let BucketRequirements { declared, counterfeits } = *requirements;
        let overall = classes.protected.counts();
        let mut observed =
            Self { tallies: PosteriorTally::new(), broken: vec![0; guarantees.len()], measures: Vec::new() };
        let mut worst: Vec<Option<BucketMeasure>> = vec![None; measured.len()];
        // l-diversity needs the most frequent value alone; other guarantees compare all values, once for each kind of bucket
        let plain =
            |guarantee: &Guarantee| matches!(guarantee, Guarantee::LDiversity { .. }) && declared.excluded.is_empty();
        let compared = !measured.is_empty() || !guarantees.iter().all(plain);
        let mut kinds: AHashMap<Vec<(u32, u64)>, u64> = AHashMap::new();
        let mut classes_by_share = PosteriorTally::new();
        classes.each(|class| {
            let runs = class.chunk_by(|a, b| a == b);
            *classes_by_share.entry(posterior(class, &declared.excluded)).or_default() += 1;
            if compared {
                *kinds.entry(runs.map(|run| (run[0], run.len() as u64)).collect()).or_default() += 1;
            }
        });
        for (broken, guarantee) in observed.broken.iter_mut().zip(guarantees) {
            if let Guarantee::LDiversity { l } = *guarantee
                && plain(guarantee)
            {
                // the guarantee holds for the real rows of a bucket
                let breaks = |shown: &ShareOfRows| {
                    u128::from(shown.count) * u128::from(l) > u128::from(shown.of.saturating_sub(counterfeits))
                };
                *broken = classes_by_share.iter().filter(|(shown, _)| breaks(shown)).map(|(_, buckets)| buckets).sum();
            }
        }
        for (first, (kind, number)) in kinds.into_iter().enumerate().map(|(index, kind)| (index == 0, kind)) {
            control.check()?;
            let shares = BucketShares::new(&kind, &overall, declared);
            for (broken, guarantee) in observed.broken.iter_mut().zip(guarantees).filter(|(_, g)| !plain(g)) {
                *broken += if shares.satisfies(*guarantee) { 0 } else { number };
            }
            for (worst, (_, guarantee)) in worst.iter_mut().zip(measured) {
                let here = BucketMeasure::new(*guarantee, &shares);
                *worst = if first { here } else { BucketMeasure::worse(*worst, here) };
            }
        }
        for (shown, buckets) in classes_by_share {
            *observed.tallies.entry(requirements.posterior(shown)).or_default() += buckets;
        }
        observed.measures = measured.iter().zip(worst).filter_map(|((rule, _), worst)| Some((*rule, worst?))).collect();
        Ok(observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::contract::checks::PosteriorSummary;

    #[test]
    fn posterior_excluded_values_count_among_all_rows() {
        assert_eq!(posterior(&[0, 1, 1, 2], &[]), ShareOfRows::new(2, 4));
        // two of the three remaining rows exceed one of four
        assert_eq!(posterior(&[0, 1, 1, 2], &[0]), ShareOfRows::new(2, 3));
        assert_eq!(posterior(&[0, 0, 1, 2], &[0]), ShareOfRows::new(1, 2));
        assert_eq!(posterior(&[0, 0, 0, 1, 2], &[0]), ShareOfRows::new(3, 5));
        assert_eq!(posterior(&[0, 0], &[0]), ShareOfRows::new(2, 2));
    }

    #[test]
    fn prior_is_the_posterior_of_all_rows_as_one_bucket() {
        for (class, excluded) in
            [(&[0, 1, 1, 2][..], &[][..]), (&[0, 1, 1, 2], &[0]), (&[0, 0, 0, 1, 2], &[0]), (&[0, 0], &[0]), (&[], &[])]
        {
            let mut counts = [0; 3];
            class.iter().for_each(|&value| counts[value as usize] += 1);
            assert_eq!(prior(&counts, excluded), posterior(class, excluded), "{class:?}");
        }
    }

    #[test]
    fn posteriors_equal_shares_takes_the_smaller_bucket() {
        let tallies = |list: &[(ShareOfRows, u64)]| posteriors(list.iter().copied().collect(), 2, None);
        let all = tallies(&[(ShareOfRows::new(1, 3), 2), (ShareOfRows::new(2, 4), 1), (ShareOfRows::new(1, 2), 1)]);
        assert_eq!(
            all,
            Some(PosteriorSummary {
                worst: ShareOfRows::new(1, 2),
                median: ShareOfRows::new(2, 4),
                smallest_bucket: 2,
                prior: None
            })
        );
        let odd = tallies(&[(ShareOfRows::new(1, 3), 2), (ShareOfRows::new(1, 2), 1)]);
        assert_eq!(
            odd,
            Some(PosteriorSummary {
                worst: ShareOfRows::new(1, 2),
                median: ShareOfRows::new(1, 3),
                smallest_bucket: 2,
                prior: None
            })
        );
        assert_eq!(tallies(&[]), None);
    }
}
