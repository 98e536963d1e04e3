//! Tests of the options together.

use clap::Parser;

use super::*;

#[derive(Parser, Debug)]
struct Line {
    #[command(flatten)]
    store: StoreOptions,
}

fn parse(arguments: &[&str]) -> StoreOptions {
    Line::try_parse_from(["guardian"].iter().chain(arguments)).unwrap().store
}

#[test]
fn the_store_that_is_named_outright_counts() {
    let options = parse(&["--store", "postgres://a/b", "--database-url", "postgres://c/d"]);
    assert_eq!(options.database(), Ok(Some("postgres://a/b")));
    let options = parse(&["--store", "embedded", "--database-url", "postgres://c/d"]);
    assert_eq!(options.database(), Ok(None));
    assert_eq!(StoreOptions::default().database(), Ok(None));
}

#[test]
fn a_master_key_has_one_place_and_is_never_shown() {
    let data = Path::new("data");
    let place = |options: &StoreOptions| options.master_key(data).map(|place| place.to_string());
    assert_eq!(place(&StoreOptions::default()), Ok("data/master.key".to_owned()));
    assert_eq!(place(&parse(&["--master-key", "k"])), Ok("k".to_owned()));
    let options = parse(&["--master-key-digits", "5ec4e7"]);
    assert_eq!(place(&options), Ok("GUARDIAN_MASTER_KEY".to_owned()));
    assert!(!format!("{options:?} {:?}", options.master_key(data)).contains("5ec4e7"));
    let both = place(&parse(&["--master-key", "k", "--master-key-digits", "5ec4e7"])).unwrap_err();
    assert!(both.contains("GUARDIAN_MASTER_KEY") && !both.contains("5ec4e7"), "{both}");
}

#[test]
fn a_password_is_never_shown() {
    for url in ["mysql://me:secret@host/db", "postgres://me:secret@host/db"] {
        let options = parse(&["--store", url]);
        assert!(!format!("{options:?} {:?}", options.database().err()).contains("secret"));
    }
    assert!(parse(&["--store", "mysql://me:secret@host/db"]).database().is_err());
}

#[derive(Parser)]
struct Served {
    #[command(flatten)]
    config: Config,
}

#[test]
fn the_effective_configuration_has_every_option_and_no_secret() {
    use clap::CommandFactory;

    let line = ["guardian", "--store", "postgres://me:secret@db:5432/guard?password=secret&sslmode=require"];
    let shown = Served::try_parse_from(line).unwrap().config.effective();
    // what counts only where another option says nothing
    let hidden = ["database_url", "otel_endpoint", "master_key_digits", "help"];
    for argument in Served::command().get_arguments() {
        let id = if argument.get_id() == "url" { "store" } else { argument.get_id().as_str() };
        assert!(shown.contains_key(id) || hidden.contains(&id), "{id}");
    }
    assert_eq!(shown["store"], "postgres://me:..@db:5432/guard?..");
    assert!(!Value::Object(shown).to_string().contains("secret"));
}

#[test]
fn what_may_hold_a_password_is_not_shown() {
    for url in [
        "postgres://me:sec/ret@host/db",
        "postgres://me:sec?ret@host/db",
        "postgres://me:secret@ho st/db",
        "postgres://me:secret/db",
        "postgres://user@secret@host:x/db",
        "mysql://me:secret@host/db",
        "postgres://host/db@secret",
        "secret",
    ] {
        let shown = StoreUrl::from(url.to_owned()).redacted();
        assert!(!shown.contains("ret"), "{url}: {shown}");
    }
    for (url, shown) in [
        ("postgres:///guard", "postgres:///guard"),
        ("postgresql://h", "postgresql://h/"),
        ("postgres://me@[::1]:5432/guard", "postgres://me@[::1]:5432/guard"),
        ("postgres://me:a@b:c@h/guard", "postgres://me:..@h/guard"),
    ] {
        assert_eq!(StoreUrl::from(url.to_owned()).redacted(), shown);
    }
}

#[test]
fn a_collector_is_named_plainly() {
    let options = |own: Option<&str>, other: Option<&str>| ObservabilityOptions {
        otlp_endpoint: own.map(str::to_owned),
        otel_endpoint: other.map(str::to_owned),
        ..ObservabilityOptions::default()
    };
    assert_eq!(options(None, None).collector(), Ok(None));
    assert_eq!(options(None, Some("http://c:4318")).collector(), Ok(Some("http://c:4318")));
    assert_eq!(options(Some("http://d"), Some("http://c:4318")).collector(), Ok(Some("http://d")));
    for wrong in ["c:4318", "https://c", "http://", "http:///x", "http://me:secret@c", "http://c?secret", "http://c d"]
    {
        let said = options(Some(wrong), None).collector().unwrap_err();
        assert!(!said.contains("secret"), "{said}");
    }
}
