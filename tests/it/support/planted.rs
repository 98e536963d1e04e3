//! Tables with planted dependencies, and what an adversary knows of these.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::worlds::{Part, Published};

/// A dependency between columns.
pub(crate) struct Dependency {
    pub(crate) from: Vec<usize>,
    pub(crate) to: usize,
    /// Whether it holds in every row.
    pub(crate) is_exact: bool,
}

impl Dependency {
    pub(crate) fn new(from: &[usize], to: usize) -> Self {
        Self { from: from.to_vec(), to, is_exact: true }
    }
}

/// A table with planted dependencies.
pub(crate) struct Planted {
    pub(crate) names: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) dependencies: Vec<Dependency>,
}

impl Planted {
    /// A table with these dependencies, of which some may have exceptions.
    pub(crate) fn new(names: Vec<&'static str>, rows: &[Vec<usize>], dependencies: Vec<Dependency>) -> Self {
        let row = |row: &Vec<usize>| row.iter().zip(&names).map(|(value, name)| format!("{name}{value}")).collect();
        let mut planted = Self { rows: rows.iter().map(row).collect(), names, dependencies };
        for at in 0..planted.dependencies.len() {
            planted.dependencies[at].is_exact = planted.holds(&planted.dependencies[at]);
        }
        planted
    }

    /// The table as a file.
    pub(crate) fn csv(&self) -> String {
        let rows = self.rows.iter().map(|row| row.join(",") + "\n");
        self.names.join(",") + "\n" + &rows.collect::<String>()
    }

    /// Whether a dependency has no exception.
    fn holds(&self, dependency: &Dependency) -> bool {
        let mut function: BTreeMap<Vec<&str>, &str> = BTreeMap::new();
        self.rows.iter().all(|row| {
            let from = dependency.from.iter().map(|&at| row[at].as_str()).collect();
            let to = row[dependency.to].as_str();
            *function.entry(from).or_insert(to) == to
        })
    }

    /// The columns that a dependency ties.
    fn link(&self, dependency: &Dependency) -> Vec<usize> {
        let all: BTreeSet<usize> = dependency.from.iter().copied().chain([dependency.to]).collect();
        all.into_iter().collect()
    }

    /// For each link, the plain table of its values.
    pub(crate) fn links(&self, visible: &[&str]) -> Vec<Published> {
        let links: BTreeSet<Vec<usize>> = self.active(visible).into_iter().map(|of| self.link(of)).collect();
        links.iter().map(|link| vec![self.part(link)]).collect()
    }

    /// The dependencies that say something of `visible` columns.
    ///
    /// What determines a column that is not among them, and in no other dependency, says nothing.
    pub(crate) fn active(&self, visible: &[&str]) -> Vec<&Dependency> {
        let mut active: Vec<&Dependency> = self.dependencies.iter().collect();
        loop {
            let before = active.len();
            let mentioned = |to: usize| active.iter().filter(|of| self.link(of).contains(&to)).count() > 1;
            let idle = active.iter().position(|of| !visible.contains(&self.names[of.to]) && !mentioned(of.to));
            idle.map(|at| active.remove(at));
            if active.len() == before {
                return active;
            }
        }
    }

    /// Some columns of all rows.
    pub(crate) fn part(&self, columns: &[usize]) -> Part {
        let values = |row: &Vec<String>| (columns.iter().map(|&at| row[at].clone()).collect(), 0);
        Part {
            attributes: columns.iter().map(|&at| self.names[at].to_owned()).collect(),
            rows: self.rows.iter().map(values).collect(),
        }
    }

    /// The dependencies as a document declares them.
    pub(crate) fn declared(&self) -> Value {
        let names = |columns: &[usize]| columns.iter().map(|&at| self.names[at]).collect::<Vec<_>>();
        let one = |of: &Dependency| json!({"determinant": names(&of.from), "dependent": [self.names[of.to]]});
        self.dependencies.iter().map(one).collect()
    }
}
