//! The plan of a release of a table in another engine.

use super::counted::{RemoteOrder, clearing};
use super::port::{RemoteError, RemoteTable};
use super::release::PlannedRemotely;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::plan::dry_run::assess;
use crate::engine::plan::exposure;
use crate::engine::plan::exposure::RowFigures;
use crate::engine::plan::types::Plan;
use crate::microdata::{Attr, AttrSet};
use crate::model::InferredByOthers;
use crate::publication::NoticeKind;
use crate::publish::PlanRefusal;
use crate::report::SpecificationNotice;
use crate::utility::PractitionerKnowledge;

/// Plans a release from counts, up to what would be judged before anything is written.
///
/// # Errors
/// [`EngineError`]: cancelled, failed, or refused before there are tables.
pub fn plan_remotely(
    order: &RemoteOrder<'_>,
    table: &mut dyn RemoteTable,
    control: &Control,
) -> Result<Plan, EngineError> {
    clearing(table, |table| planned(order, table, control))
}

fn planned(order: &RemoteOrder<'_>, table: &mut dyn RemoteTable, control: &Control) -> Result<Plan, EngineError> {
    let mut counted = order.counted(table, control)?;
    let mut faults = std::mem::take(&mut counted.faults);
    let tables = faults.is_empty().then(|| order.tables(&mut counted, table, control)).transpose()?;
    let prepared = match tables {
        Some(Ok(tables)) => {
            let planned = PlannedRemotely::new(order, counted, tables);
            faults = planned.faults(control)?;
            planned.prepared
        }
        Some(Err(PlanRefusal(of_rows))) => {
            faults = of_rows;
            counted.prepared
        }
        None => counted.prepared,
    };
    let mut plan = assess(order.specification, order.earlier, &prepared, faults, Vec::new());
    plan.warnings.push(SpecificationNotice {
        r#type: NoticeKind::ExposureNotComplete,
        pointer: None,
        detail: "attributes that predict sensitive ones, or single out rows with them, were not searched: the rows are in another \
                 engine"
            .to_owned(),
    });
    if plan.feasible {
        let mut rows = RowsElsewhere { columns: &order.specification.used, table, control };
        let names = &order.specification.published_names;
        plan.exposures = Some(exposure::exposures(&prepared.design, names, &mut rows)?);
    }
    Ok(plan)
}

/// The rows of a table in another engine, which counts them.
struct RowsElsewhere<'a> {
    /// The columns of attributes.
    columns: &'a [usize],
    table: &'a mut dyn RemoteTable,
    control: &'a Control,
}

impl RowsElsewhere<'_> {
    fn columns(&self, attributes: AttrSet) -> Vec<usize> {
        attributes.iter().map(|attribute| self.columns[attribute.index()]).collect()
    }

    fn by_others(&mut self, attribute: Attr, published: AttrSet) -> Result<InferredByOthers, RemoteError> {
        let known = self.columns(published.without(attribute));
        let inferred = self.table.inferred(&known, self.columns[attribute.index()])?;
        Ok(InferredByOthers { attribute, inferred })
    }
}

impl RowFigures for RowsElsewhere<'_> {
    fn rows(&self) -> u64 {
        self.table.rows()
    }

    fn unique(&mut self, known: AttrSet) -> Result<u64, EngineError> {
        self.control.check()?;
        match known.is_empty() {
            true => Ok(u64::from(self.rows() == 1)),
            false => Ok(self.table.unique(&self.columns(known))?),
        }
    }

    fn practitioner(&mut self, published: AttrSet) -> Result<PractitionerKnowledge, EngineError> {
        let unique = self.unique(published)?;
        // a single attribute has no others
        let known = if published.len() > 1 { published } else { AttrSet::EMPTY };
        let mut values = Vec::new();
        for attribute in known.iter() {
            self.control.check()?;
            values.push(self.by_others(attribute, published)?);
        }
        Ok(PractitionerKnowledge { unique, values })
    }
}
