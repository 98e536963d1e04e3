//! The solution of a sequential release: cuts, steps and achieved measures.

use super::share::MeasureValue;
use super::span::NodeRange;

/// A label of a generalized column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutLabel {
    /// Leaves that the label covers.
    pub span: NodeRange,
    /// Its node of the taxonomy; `None` for an interval.
    pub node: Option<u32>,
}

/// How a column of the new release is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnCut {
    /// Index of the column.
    pub column: usize,
    /// All labels, those without rows included: exactly one covers each value.
    pub labels: Vec<CutLabel>,
    /// Index of the label of each code.
    pub of_code: Vec<u32>,
}

/// A specialization step of the solution.
#[derive(Clone, PartialEq, Debug)]
pub struct TakenStep {
    /// Index of the column.
    pub column: usize,
    /// The replaced label.
    pub label: CutLabel,
    /// The measure of each requirement after the step: the worst of its joins.
    pub measures: Vec<MeasureValue>,
    /// Score of the step.
    pub score: f64,
}

/// Achieved measure of a requirement on joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AchievedMeasure {
    /// Index of the requirement.
    pub requirement: usize,
    /// The joins, each by its releases.
    pub joins: Vec<Vec<usize>>,
    /// The achieved measure.
    pub measure: MeasureValue,
}

/// The solution of a sequential release.
#[derive(Clone, PartialEq, Debug)]
pub struct SequentialSolution {
    /// Generalized columns, in the order of X.
    pub cuts: Vec<ColumnCut>,
    /// The measure of each requirement at the roots: the worst of its joins.
    pub root: Vec<MeasureValue>,
    /// Steps that lead to the cut. They depend on the class and on sensitive values: for the owner alone.
    pub steps: Vec<TakenStep>,
    /// Achieved measures of all requirements.
    pub achieved: Vec<AchievedMeasure>,
    /// Steps of generalization, summed over all cells of generalized columns.
    pub distortion: u64,
    /// Number of cells that are not exact.
    pub changed: u64,
}
