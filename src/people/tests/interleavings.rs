//! All interleavings of jobs that announce, draw a ticket, look and end, with crashes in between.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::people::{
    Coverage, CoverageId, Evidence, JudgedRows, KeyedHash, LedgerView, LiveCoverage, Look, SystemEvidence,
    UnrelatedPolicy, look,
};

/// What a job does, in its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Announce,
    Ticket,
    Look,
    End,
}

const PROTOCOL: [Step; 4] = [Step::Announce, Step::Ticket, Step::Look, Step::End];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fate {
    Pending,
    Live,
    Refused,
    Void,
}

/// How far a job is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct JobState {
    done: usize,
    ticket: Option<u8>,
    is_announced: bool,
    fate: Fate,
}

type State = (Vec<JobState>, u8);

/// Pairs of jobs that have a person in common.
type Conflicts = BTreeSet<(usize, usize)>;

struct Protocol {
    steps: [Step; 4],
    waits: bool,
    crashes: bool,
    conflicts: Conflicts,
    persons: Vec<BTreeSet<u8>>,
    evidence: Vec<Evidence>,
}

impl Protocol {
    fn new(jobs: usize, conflicts: &Conflicts) -> Self {
        let mut persons: Vec<BTreeSet<u8>> = (0..jobs).map(|job| BTreeSet::from([job as u8])).collect();
        for (number, (a, b)) in conflicts.iter().enumerate() {
            persons[*a].insert(100 + number as u8);
            persons[*b].insert(100 + number as u8);
        }
        let evidence = |(job, own): (usize, &BTreeSet<u8>)| Evidence {
            systems: [("k".to_owned(), SystemEvidence { persons: own.len() as u64, columns: BTreeMap::new() })].into(),
            table: Some(KeyedHash(job as u128)),
            ..Evidence::default()
        };
        let evidence = persons.iter().enumerate().map(evidence).collect();
        Self { steps: PROTOCOL, waits: true, crashes: true, conflicts: conflicts.clone(), persons, evidence }
    }

    fn against(&self, job: usize, other: usize) -> LiveCoverage {
        let common = self.persons[job].intersection(&self.persons[other]).count() as u64;
        LiveCoverage {
            id: CoverageId(other as i64),
            coverage: Coverage::new(Uuid::from_u128(other as u128), Some("p"), &self.evidence[other]),
            published: BTreeSet::new(),
            common: [("k".to_owned(), common)].into(),
            resemblance: None,
        }
    }

    /// What a job sees of the others, and whether it may end.
    fn look(&self, jobs: &[JobState], job: usize) -> Look {
        let of = |is: &dyn Fn(&JobState) -> bool| {
            let others = (0..jobs.len()).filter(|other| *other != job && is(&jobs[*other]));
            others.map(|other| self.against(job, other)).collect::<Vec<_>>()
        };
        let live = of(&|other| other.fate == Fate::Live);
        let is_before = |other: &JobState| {
            other.fate == Fate::Pending
                && other.is_announced
                && other.ticket.is_some()
                && other.ticket < jobs[job].ticket
        };
        let pending = if self.waits { of(&is_before) } else { Vec::new() };
        let publishes = BTreeSet::new();
        let rows = JudgedRows {
            dataset: Uuid::from_u128(job as u128),
            population: Some("p"),
            evidence: &self.evidence[job],
            publishes: &publishes,
            is_republication: false,
        };
        let view = LedgerView { live: &live, pending: &pending, statements: &[], policy: UnrelatedPolicy::Refuse };
        look(&rows, &view)
    }

    /// The states that can follow.
    fn moves(&self, state: &State) -> Vec<State> {
        let (jobs, next_ticket) = state;
        let mut found = Vec::new();
        for (number, job) in jobs.iter().enumerate().filter(|(_, job)| job.fate == Fate::Pending) {
            let mut put = |job: JobState, ticket: u8| {
                let mut jobs = jobs.clone();
                jobs[number] = job;
                found.push((jobs, ticket));
            };
            if self.crashes && job.done > 0 {
                put(JobState { fate: Fate::Void, ..*job }, *next_ticket);
            }
            let done = JobState { done: job.done + 1, ..*job };
            match self.steps[job.done] {
                Step::Announce => put(JobState { is_announced: true, ..done }, *next_ticket),
                Step::Ticket => put(JobState { ticket: Some(*next_ticket), ..done }, next_ticket + 1),
                Step::Look => match self.look(jobs, number) {
                    Look::Wait(_) => {}
                    Look::Decided(Ok(_)) => put(done, *next_ticket),
                    Look::Decided(Err(_)) => put(JobState { fate: Fate::Refused, ..done }, *next_ticket),
                },
                Step::End => put(JobState { fate: Fate::Live, ..done }, *next_ticket),
            }
        }
        found
    }

    fn explore(&self) -> Explored {
        let start = JobState { done: 0, ticket: None, is_announced: false, fate: Fate::Pending };
        let start = (vec![start; self.persons.len()], 1);
        let (mut seen, mut open) = (BTreeSet::from([start.clone()]), vec![start]);
        let mut explored = Explored { states: 0, has_doubled: false, is_stuck: false };
        while let Some(state) = open.pop() {
            let is_live = |job: usize| state.0[job].fate == Fate::Live;
            explored.has_doubled |= self.conflicts.iter().any(|(a, b)| is_live(*a) && is_live(*b));
            let moves = self.moves(&state);
            explored.is_stuck |= moves.is_empty() && state.0.iter().any(|job| job.fate == Fate::Pending);
            open.extend(moves.into_iter().filter(|next| seen.insert(next.clone())));
        }
        explored.states = seen.len();
        explored
    }
}

struct Explored {
    states: usize,
    /// Two jobs in conflict were both published.
    has_doubled: bool,
    /// A job waited for ever.
    is_stuck: bool,
}

/// All sets of pairs of some jobs.
fn graphs(jobs: usize) -> Vec<Conflicts> {
    let pairs: Vec<(usize, usize)> = (0..jobs).flat_map(|a| (a + 1..jobs).map(move |b| (a, b))).collect();
    let chosen =
        |bits: usize| pairs.iter().enumerate().filter(move |(at, _)| bits >> at & 1 == 1).map(|(_, pair)| *pair);
    (0..1 << pairs.len()).map(|bits| chosen(bits).collect()).collect()
}

#[test]
fn no_interleaving_publishes_a_person_twice() {
    let mut states = 0;
    for jobs in 2..=4 {
        for conflicts in graphs(jobs) {
            let explored = Protocol { crashes: jobs < 4, ..Protocol::new(jobs, &conflicts) }.explore();
            assert!(!explored.has_doubled && !explored.is_stuck, "{jobs} jobs, {conflicts:?}");
            states += explored.states;
        }
    }
    assert!(states > 50_000, "{states}");
}

#[test]
fn broken_protocols_publish_a_person_twice() {
    let pair = Conflicts::from([(0, 1)]);
    let sound = || Protocol::new(2, &pair);
    assert!(Protocol { waits: false, ..sound() }.explore().has_doubled, "without waits");
    let late = [Step::Ticket, Step::Look, Step::Announce, Step::End];
    assert!(Protocol { steps: late, ..sound() }.explore().has_doubled, "announced after the look");
    let early = [Step::Ticket, Step::Announce, Step::Look, Step::End];
    assert!(Protocol { steps: early, ..sound() }.explore().has_doubled, "a ticket from before the announcement");
}

#[test]
fn jobs_of_other_people_do_not_wait() {
    let protocol = Protocol::new(3, &Conflicts::from([(0, 2)]));
    let pending = |ticket| JobState { done: 2, ticket: Some(ticket), is_announced: true, fate: Fate::Pending };
    let jobs = [pending(1), pending(2), pending(3)];
    assert!(matches!(protocol.look(&jobs, 1), Look::Decided(Ok(admission)) if !admission.basis.is_empty()));
    assert_eq!(protocol.look(&jobs, 2), Look::Wait(CoverageId(0)));
    let published = [JobState { fate: Fate::Live, ..jobs[0] }, jobs[1], jobs[2]];
    assert!(matches!(protocol.look(&published, 2), Look::Decided(Err(_))), "a refusal waits for no one");
}
