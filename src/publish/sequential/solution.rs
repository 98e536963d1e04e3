//! The solution of a sequential release: cuts, steps and achieved measures.

use super::share::MeasureValue;
use super::span::NodeRange;

/// A label of a generalized column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutLabel {
    /// What it covers.
    pub span: NodeRange,
    /// Its node of the taxonomy; none of an interval.
    pub node: Option<u32>,
}

/// How a column of the new release is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnCut {
    /// The column, of those given.
    pub column: usize,
    /// The labels, those of no row among them: exactly one is above every value.
    pub labels: Vec<CutLabel>,
    /// The label of each code.
    pub of_code: Vec<u32>,
}

/// A step down that was taken.
#[derive(Clone, PartialEq, Debug)]
pub struct TakenStep {
    /// The column, of those given.
    pub column: usize,
    /// The label that was replaced.
    pub label: CutLabel,
    /// The measures afterwards, by requirement, each the worst of its joins.
    pub measures: Vec<MeasureValue>,
    /// What the step was worth.
    pub score: f64,
}

/// What a requirement comes to on joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AchievedMeasure {
    /// The requirement.
    pub requirement: usize,
    /// The joins, each by its releases.
    pub joins: Vec<Vec<usize>>,
    /// The measure.
    pub measure: MeasureValue,
}

/// The new release.
#[derive(Clone, PartialEq, Debug)]
pub struct SequentialSolution {
    /// Its generalized columns, in the order in which they stand in X.
    pub cuts: Vec<ColumnCut>,
    /// The measures of the roots, by requirement, each the worst of its joins.
    pub root: Vec<MeasureValue>,
    /// The steps taken, as many as lead to the cut. They look at the class and at sensitive values: for the owner alone.
    pub steps: Vec<TakenStep>,
    /// What holds.
    pub achieved: Vec<AchievedMeasure>,
    /// Steps of generalization over all cells of the generalized columns, to be divided by the rows.
    pub distortion: u64,
    /// Cells that are not published as they are.
    pub changed: u64,
}
