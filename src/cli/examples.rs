//! An example of each command, shown by its long help.

use clap::Command;

/// Commands by their names, with lines that run them.
const EXAMPLES: [(&str, &str); 29] = [
    ("serve", "guardian serve --data guardian-data --listen 127.0.0.1:8080"),
    ("worker", "guardian worker --store postgres://guardian@localhost/guardian --workers 2"),
    ("healthcheck", "guardian healthcheck"),
    ("migrate", "guardian migrate --store postgres://guardian@localhost/guardian"),
    ("backup", "guardian backup --data guardian-data guardian-backup.db"),
    ("rotate-key", "guardian rotate-key --data guardian-data --new-master-key new.key"),
    ("keys create", "guardian keys create --name nightly --preset pipeline"),
    ("keys list", "guardian keys list"),
    ("keys revoke", "guardian keys revoke 018f0000-0000-7000-8000-000000000000"),
    ("tenants set", "guardian tenants set clinic --approval-by-another true"),
    ("tenants list", "guardian tenants list"),
    ("populations list", "guardian populations list"),
    (
        "populations relate",
        "guardian populations relate --tenant clinic --all-disjoint --reason 'each person is in one register'",
    ),
    ("audit-log", "guardian audit-log"),
    ("ledger export", "guardian ledger export > ledger.ndjson"),
    ("ledger import", "guardian ledger import ledger.ndjson"),
    ("demo", "guardian demo --exit"),
    ("init", "guardian init patients.csv\nguardian init patients.parquet --yes --role race=sensitive"),
    (
        "plan",
        "guardian plan patients.csv patients.spec.json\nguardian plan patients.csv patients.spec.json --json | jq .rules",
    ),
    (
        "publish",
        "guardian publish patients.csv patients.spec.json --out release\nzcat visits.csv.gz | guardian publish - visits.spec.json --out release --null NA",
    ),
    ("query", "guardian query release --queries queries.json"),
    ("report", "guardian report release --html report.html\nguardian report release --html > report.html"),
    (
        "verify",
        "guardian verify release --original patients.csv\nguardian verify table.csv --rules 'age, zip -> disease' --guarantee '{\"type\":\"l_diversity\",\"l\":2}'",
    ),
    ("nights", "guardian nights --person pid night-1=patients-1.csv night-2=patients-2.csv"),
    ("openapi", "guardian openapi > openapi.json"),
    ("problems", "guardian problems > problems.md"),
    ("metrics", "guardian metrics > metrics.md"),
    ("completions", "guardian completions bash > ~/.local/share/bash-completion/completions/guardian"),
    ("man", "guardian man ~/.local/share/man/man1"),
];

/// The command with an example in the long help of each of its commands.
pub(super) fn with_examples(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        let path = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command.mut_subcommand(name, |inner| with_examples(inner, &path))
    });
    match EXAMPLES.iter().find(|(name, _)| *name == path) {
        Some((_, lines)) => {
            let lines: String = lines.lines().map(|line| format!("\n  {line}")).collect();
            command.after_long_help(format!("Example:{lines}"))
        }
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::arguments::Arguments;

    /// The words of a line; quotes of a shell hold a word together.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for letter in line.chars() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                _ => words.last_mut().unwrap().push(letter),
            }
        }
        words
    }

    fn leaves(command: &Command, path: &str) -> Vec<String> {
        let inner: Vec<&Command> = command.get_subcommands().filter(|inner| inner.get_name() != "help").collect();
        if inner.is_empty() {
            return vec![path.to_owned()];
        }
        inner.iter().flat_map(|inner| leaves(inner, format!("{path} {}", inner.get_name()).trim())).collect()
    }

    #[test]
    fn each_command_has_an_example_that_it_accepts() {
        for leaf in leaves(&Arguments::command(), "") {
            let (_, lines) =
                EXAMPLES.iter().find(|(name, _)| *name == leaf).unwrap_or_else(|| panic!("{leaf} has no example"));
            for line in lines.lines() {
                // what stands before a pipe feeds the command, what stands behind it reads
                let line = line.split(" | ").find(|part| part.starts_with("guardian ")).unwrap();
                let words = words(line.split(" > ").next().unwrap());
                assert!(words.join(" ").starts_with(&format!("guardian {leaf}")), "{line}");
                let parsed = Arguments::command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
