//! From a table to a first specification: `guardian init`, then `guardian publish`, and the suggestion of the service as a job.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::harness::{HOSPITAL, Server, guardian, run, text};

/// A table of a register, and the roles that some of its columns must get.
struct Register {
    name: &'static str,
    header: &'static str,
    rows: usize,
    row: fn(usize) -> String,
    roles: &'static [(&'static str, &'static str)],
}

/// A number below `below` that follows from the row and the column alone.
pub(super) fn draw(row: usize, column: usize, below: usize) -> usize {
    let mut mixed =
        (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (column as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
    mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 29)) % below as u64) as usize
}

const REGISTERS: &[Register] = &[
    Register {
        name: "hospital",
        header: "patient_id,birth_date,age,sex,zip_code,diagnosis,care_days,comments,country",
        rows: 300,
        row: |i| {
            let note = format!("the patient said on day {i} that she felt much better than before");
            let born = format!("19{:02}-{:02}-{:02}", draw(i, 1, 90) + 10, draw(i, 2, 12) + 1, draw(i, 3, 28) + 1);
            let (age, sex, zip) = (draw(i, 4, 80), ["F", "M"][draw(i, 5, 2)], 10_115 + draw(i, 6, 20));
            format!("P{i:05},{born},{age},{sex},{zip},K{},{},{note},DE", draw(i, 7, 25), draw(i, 8, 14))
        },
        roles: &[
            ("patient_id", "dropped"),
            ("birth_date", "dropped"),
            ("age", "known"),
            ("sex", "known"),
            ("zip_code", "known"),
            ("diagnosis", "sensitive"),
            ("comments", "dropped"),
            ("country", "dropped"),
        ],
    },
    Register {
        name: "payroll",
        header: "Personalnummer;Nachname;Geschlecht;Alter;Abteilung;Bruttogehalt;Konfession",
        rows: 200,
        row: |i| {
            let pay = 2_400 + draw(i, 5, 4_000);
            let belief = ["ev", "rk", "keine", ""][draw(i, 6, 4)];
            format!(
                "{};N{};{};{};A{};{pay}.{:02};{belief}",
                70_000 + i,
                draw(i, 1, 90),
                ["m", "w", "d"][draw(i, 2, 3)],
                20 + draw(i, 3, 45),
                draw(i, 4, 6),
                draw(i, 7, 100)
            )
        },
        roles: &[
            ("Personalnummer", "dropped"),
            ("Nachname", "dropped"),
            ("Alter", "known"),
            ("Bruttogehalt", "sensitive"),
            ("Konfession", "sensitive"),
            ("Abteilung", "known"),
        ],
    },
    Register {
        name: "salaries in whole numbers",
        header: "employee_id,age,gender,job_title,salary",
        rows: 150,
        row: |i| format!("{i},{},{},j{},{}", 20 + draw(i, 1, 45), draw(i, 2, 2), draw(i, 3, 9), 30_000 + i * 331),
        roles: &[("employee_id", "dropped"), ("age", "known"), ("job_title", "known"), ("salary", "sensitive")],
    },
    Register {
        name: "school",
        header: "id_eleve,prenom,sexe,annee_naissance,ecole,moyenne,absences",
        rows: 240,
        row: |i| {
            format!(
                "{i},P{},{},{},E{},{},{}",
                draw(i, 1, 60),
                ["F", "G"][draw(i, 2, 2)],
                2006 + draw(i, 3, 6),
                draw(i, 4, 5),
                draw(i, 5, 20),
                draw(i, 6, 9)
            )
        },
        roles: &[
            ("id_eleve", "dropped"),
            ("prenom", "dropped"),
            ("annee_naissance", "known"),
            ("moyenne", "sensitive"),
            ("absences", "sensitive"),
        ],
    },
    Register {
        name: "census",
        header: "edad,sexo,provincia,estado civil,ocupación",
        rows: 500,
        row: |i| {
            format!(
                "{},{},{},{},o{}",
                draw(i, 1, 90),
                ["H", "M"][draw(i, 2, 2)],
                draw(i, 3, 50),
                draw(i, 4, 4),
                draw(i, 5, 12)
            )
        },
        roles: &[("edad", "known"), ("provincia", "known"), ("estado civil", "known"), ("ocupación", "sensitive")],
    },
    Register {
        name: "transactions",
        header: "customer_id,iban,date,amount,category",
        rows: 400,
        row: |i| {
            format!(
                "C{},DE89370400440532013000,2024-0{}-{:02},{}.{:02},c{}",
                i / 2,
                draw(i, 1, 9) + 1,
                draw(i, 2, 28) + 1,
                draw(i, 3, 900),
                draw(i, 4, 100),
                draw(i, 5, 12)
            )
        },
        roles: &[("customer_id", "dropped"), ("iban", "dropped"), ("date", "known"), ("amount", "sensitive")],
    },
    Register {
        name: "survey with empty cells",
        header: "respondent_nr,leeftijd,geslacht,gemeente,partij,inkomen,e-mail",
        rows: 260,
        row: |i| {
            let party = if draw(i, 4, 3) == 0 { String::new() } else { format!("p{}", draw(i, 5, 7)) };
            let income = if draw(i, 6, 4) == 0 { String::new() } else { (draw(i, 7, 30) * 1000).to_string() };
            format!("{i},{},{},g{},{party},{income},a{i}@b.nl", 18 + draw(i, 1, 70), draw(i, 2, 2), draw(i, 3, 12))
        },
        roles: &[
            ("respondent_nr", "dropped"),
            ("leeftijd", "known"),
            ("gemeente", "known"),
            ("partij", "sensitive"),
            ("inkomen", "sensitive"),
            ("e-mail", "dropped"),
        ],
    },
    Register {
        name: "a clinic of Poland",
        header: "PESEL,wiek,płeć,województwo,rozpoznanie",
        rows: 180,
        row: |i| {
            format!(
                "{},{},{},w{},r{}",
                44_051_401_000_u64 + i as u64,
                draw(i, 1, 90),
                ["K", "M"][draw(i, 2, 2)],
                draw(i, 3, 16),
                draw(i, 4, 10)
            )
        },
        roles: &[
            ("PESEL", "dropped"),
            ("wiek", "known"),
            ("płeć", "known"),
            ("województwo", "known"),
            ("rozpoznanie", "sensitive"),
        ],
    },
    Register {
        name: "taxes of the north",
        header: "personnummer\tkön\tålder\tkommun\tlön",
        rows: 220,
        row: |i| {
            format!(
                "19900101-{:04}\t{}\t{}\tk{}\t{}",
                1000 + i,
                draw(i, 1, 2),
                draw(i, 2, 70),
                draw(i, 3, 9),
                draw(i, 4, 40) * 500
            )
        },
        roles: &[
            ("personnummer", "dropped"),
            ("kön", "known"),
            ("ålder", "known"),
            ("kommun", "known"),
            ("lön", "sensitive"),
        ],
    },
    Register {
        name: "taxes of Italy",
        header: "codice_fiscale,eta,sesso,comune,reddito",
        rows: 160,
        row: |i| {
            format!("RSSMRA{i:05},{},{},c{},{}", draw(i, 1, 80), draw(i, 2, 2), draw(i, 3, 8), draw(i, 4, 25) * 1000)
        },
        roles: &[("codice_fiscale", "dropped"), ("eta", "known"), ("comune", "known"), ("reddito", "sensitive")],
    },
    Register {
        name: "rare values",
        header: "idade,sexo,concelho,hiv,doença",
        rows: 400,
        row: |i| {
            format!(
                "{},{},c{},{},{}",
                draw(i, 1, 90),
                draw(i, 2, 2),
                draw(i, 3, 10),
                if i % 80 == 0 { "sim" } else { "nao" },
                if i % 3 == 0 { draw(i, 4, 30) } else { 0 }
            )
        },
        roles: &[("idade", "known"), ("concelho", "known"), ("hiv", "sensitive"), ("doença", "sensitive")],
    },
    Register {
        name: "what fixes a secret",
        header: "age,sex,medication_plan,illness,chapter",
        rows: 300,
        row: |i| {
            let illness = draw(i, 3, 12);
            format!("{},{},m{illness},i{illness},h{}", draw(i, 1, 80), draw(i, 2, 2), illness / 3)
        },
        // each of the two secrets gives the other away: one of them is enough
        roles: &[("age", "known"), ("medication_plan", "sensitive"), ("illness", "dropped")],
    },
    Register {
        name: "no secret",
        header: "age,sex,plz",
        rows: 200,
        row: |i| format!("{},{},{}", draw(i, 1, 60), draw(i, 2, 2), 10_000 + draw(i, 3, 9)),
        roles: &[("age", "known"), ("sex", "known"), ("plz", "known")],
    },
    Register {
        name: "names that say nothing",
        header: "x1,x2,x3,x4,x5",
        rows: 150,
        row: |i| {
            format!("{},{},{},{},{}", draw(i, 1, 4), draw(i, 2, 30), draw(i, 3, 2), i, draw(i, 4, 1000) as f64 / 8.0)
        },
        roles: &[("x1", "known"), ("x4", "dropped"), ("x5", "sensitive")],
    },
    Register {
        name: "three rows",
        header: "name,age,disease",
        rows: 3,
        row: |i| format!("n{i},{},d{i}", 30 + i),
        roles: &[("name", "dropped"), ("age", "known"), ("disease", "sensitive")],
    },
    Register {
        name: "one column",
        header: "diagnosis",
        rows: 50,
        row: |i| format!("d{}", draw(i, 1, 9)),
        roles: &[("diagnosis", "sensitive")],
    },
];

/// A folder with a table `T.csv`.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn new(csv: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("T.csv"), csv).unwrap();
        folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn init(&self, more: &[&str]) -> Output {
        run(guardian().arg("init").arg(self.path("T.csv")).args(more))
    }

    /// The specification and what was printed.
    #[track_caller]
    pub(super) fn initialized(&self, more: &[&str]) -> (Value, String) {
        let output = self.init(&[&["--yes"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        (read_json(&self.path("T.spec.json")), String::from_utf8(output.stdout).unwrap())
    }

    /// Runs the command that `init` printed, and gives the manifest.
    #[track_caller]
    pub(super) fn published(&self, printed: &str) -> Value {
        let line = printed.lines().find_map(|line| line.strip_prefix("  guardian publish ")).unwrap();
        let mut command = guardian();
        command.arg("publish").args(line.split_whitespace()).current_dir(self.0.path());
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        read_json(&self.path("release/manifest.json"))
    }
}

pub(super) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What the document makes of a column: `sensitive`, `known` or `dropped`.
pub(super) fn placed(specification: &Value, column: &str) -> &'static str {
    let holds = |list: &Value| list.as_array().is_some_and(|names| names.iter().any(|name| name == column));
    let rules = specification["method"]["rules"].as_array().cloned().unwrap_or_default();
    match () {
        () if rules.iter().any(|rule| holds(&rule["sensitive"])) => "sensitive",
        () if rules.iter().any(|rule| holds(&rule["quasi_identifiers"])) => "known",
        () if holds(&specification["method"]["quasi_identifiers"]) => "known",
        () if specification["attributes"][column]["drop"] == true => "dropped",
        () => "nowhere",
    }
}

/// The guarantee of the rule of a column.
fn guarantee<'a>(specification: &'a Value, column: &str) -> &'a Value {
    let rules = specification["method"]["rules"].as_array().unwrap();
    &rules.iter().find(|rule| rule["sensitive"] == json!([column])).unwrap()["guarantee"]
}

#[test]
fn registers_of_many_kinds_are_published_as_suggested() {
    for register in REGISTERS {
        let rows: String = (0..register.rows).map(|row| (register.row)(row) + "\n").collect();
        let separator = register.header.chars().find(|letter| matches!(letter, ';' | '\t')).unwrap_or(',');
        let table = format!("{}\n{rows}", register.header).replace(separator, ",");
        let folder = Folder::new(&table);
        let (specification, printed) = folder.initialized(&[]);
        for (column, role) in register.roles {
            assert_eq!(placed(&specification, column), *role, "{} {column}: {printed}", register.name);
        }
        for column in register.header.split(separator) {
            assert_ne!(placed(&specification, column), "nowhere", "{} {column}: {printed}", register.name);
            let line = printed.lines().find(|line| line.starts_with(column)).unwrap();
            assert!(line.len() > column.len() + 20, "a reason: {line}");
        }
        let manifest = folder.published(&printed);
        assert_eq!(manifest["verification"]["verified"], true, "{}", register.name);
    }
}

#[test]
fn examples_are_published_as_suggested() {
    for name in ["hospital.csv", "adult.csv.gz"] {
        let folder = Folder::new("");
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
        fs::copy(table, folder.path("T.csv")).unwrap();
        let (specification, printed) = folder.initialized(&[]);
        assert_eq!(placed(&specification, "age"), "known");
        if name == "adult.csv.gz" {
            assert_eq!(guarantee(&specification, "income"), &json!({"type": "t_closeness", "t": "0.2"}));
            assert_eq!(placed(&specification, "fnlwgt"), "dropped");
        } else {
            assert_eq!(guarantee(&specification, "icd9"), &json!({"type": "l_diversity", "l": 3}));
        }
        folder.published(&printed);
    }
}

/// Visits of patients, each with at most two; a flag that most of them do not have.
fn visits() -> String {
    let row = |i: usize| {
        format!(
            "p{},{},w{},d{},{}\n",
            i / 2,
            draw(i / 2, 1, 60),
            draw(i, 2, 4),
            draw(i, 3, 20),
            ["no", "low", "high"][draw(i, 4, 3)]
        )
    };
    format!("patient_id,age,ward,diagnosis,pregnancy\n{}", (0..300).map(row).collect::<String>())
}

#[test]
fn guarantees_hold_for_persons_of_several_rows() {
    let folder = Folder::new(&visits());
    let (specification, printed) = folder.initialized(&[]);
    assert!(printed.contains("does it identify persons who have several rows? (subject)"), "{printed}");
    assert!(printed.contains("--subject patient_id --max-rows-per-subject 2"), "{printed}");
    // two rows of a person may take two thirds of a bucket: no diversity, and no distance of persons
    assert_eq!(guarantee(&specification, "pregnancy")["type"], "alpha_k");
    assert_eq!(folder.published(&printed)["unit"], json!({"subject": "patient_id", "max_rows": 2}));

    // who knows that each row is a person says so
    let folder = Folder::new(&visits());
    let (specification, printed) = folder.initialized(&["--role", "patient_id=identifier"]);
    assert_eq!(guarantee(&specification, "pregnancy")["type"], "l_diversity");
    assert!(!printed.contains("--subject"), "{printed}");
    assert_eq!(folder.published(&printed)["unit"], "row");

    // a value of such a column is that of one person, whatever it is named
    let dni = |csv: &str| {
        let letter = |number: usize| char::from(b"TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]);
        (0..150).fold(csv.to_owned(), |csv, i| {
            csv.replace(&format!("\np{i},"), &format!("\n{:08}{},", 41_000_000 + i, letter(41_000_000 + i)))
        })
    };
    for csv in [
        visits().replace("patient_id", "pesel"),
        visits().replace("patient_id", "matricule"),
        dni(&visits().replace("patient_id", "numero")),
        visits().replace("\np", "\nx@y.z").replace("patient_id", "kontakt"),
    ] {
        let folder = Folder::new(&csv);
        let (_, printed) = folder.initialized(&[]);
        assert!(printed.contains("does it identify persons who have several rows? (subject)"), "{printed}");
        assert_eq!(folder.published(&printed)["unit"]["max_rows"], 2);
    }

    let folder = Folder::new(&visits().replace("patient_id", "x"));
    let (_, printed) = folder.initialized(&["--subject", "x"]);
    assert_eq!(folder.published(&printed)["unit"], json!({"subject": "x", "max_rows": 2}));
}

#[test]
fn declared_roles_are_taken_and_wrong_ones_named() {
    let folder = Folder::new(HOSPITAL);
    let (specification, printed) = folder.initialized(&["--role", "race=sensitive", "--role", "hospital=dropped"]);
    assert_eq!((placed(&specification, "race"), placed(&specification, "hospital")), ("sensitive", "dropped"));
    assert!(printed.contains("you declare it") && !printed.contains("questions"), "{printed}");
    folder.published(&printed);

    let output =
        folder.init(&["--yes", "--force", "--role", "rase=sensitive", "--role", "age=secret", "--subject", "genre"]);
    assert_eq!(output.status.code(), Some(3));
    let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
    let pointers: Vec<String> =
        problem["errors"].as_array().unwrap().iter().map(|fault| text(&fault["pointer"])).collect();
    assert_eq!(pointers, ["/roles/age", "/roles/rase", "/subject"]);
    assert_eq!(
        (&problem["errors"][1]["nearest"][0], &problem["errors"][2]["nearest"][0]),
        (&json!("race"), &json!("gender"))
    );
}

#[test]
fn files_are_kept_and_terminals_needed() {
    let folder = Folder::new(HOSPITAL);
    let error = |output: Output| (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap());
    let (code, said) = error(folder.init(&[]));
    assert!(code == 2 && said.contains("--yes"), "{said}");
    folder.initialized(&[]);
    let (code, said) = error(folder.init(&["--yes"]));
    assert!(code == 2 && said.contains("--force"), "{said}");
    folder.initialized(&["--force"]);
    let other = folder.path("other.json");
    assert_eq!(error(folder.init(&["--yes", "-o", other.to_str().unwrap()])).0, 0);
    assert_eq!(read_json(&other), read_json(&folder.path("T.spec.json")));
    assert_eq!(error(folder.init(&["--yes", "--force", "--role", "age"])).0, 2);
    for (csv, kind) in
        [("age\n", "empty-table"), ("name\nann\nbob\n", "invalid-specification"), ("a,b\n1\n", "upload-malformed")]
    {
        let folder = Folder::new(csv);
        let (code, said) = error(folder.init(&["--yes"]));
        assert!(code == 3 && said.contains(kind), "{said}");
        assert!(!folder.path("T.spec.json").exists());
    }
    assert_eq!(error(run(guardian().args(["init", "/nowhere/T.csv", "--yes"]))).0, 4);
}

#[test]
fn a_terminal_is_asked() {
    let folder = Folder::new(HOSPITAL);
    let command = format!("{} init {}", guardian().get_program().to_str().unwrap(), folder.path("T.csv").display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = terminal.spawn().unwrap();
    // the hospital as suggested, the race by its number
    child.stdin.take().unwrap().write_all(b"\n2\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && printed.contains("race: ethnic origin"), "{printed}");
    let specification = read_json(&folder.path("T.spec.json"));
    assert_eq!((placed(&specification, "race"), placed(&specification, "hospital")), ("sensitive", "known"));
}

#[tokio::test(flavor = "multi_thread")]
async fn suggestions_of_the_service_are_jobs() {
    let server = Server::start().await;
    let dataset = server.dataset(visits()).await;
    let path = format!("/v1/datasets/{dataset}/suggestion");
    let without_body = server.send(server.request(reqwest::Method::POST, &path)).await.ok(200);
    assert_eq!(without_body, server.post(&path, &json!({})).await.ok(200));
    assert_eq!(without_body["subject"], json!({"column": "patient_id", "max_rows": 2}));
    assert_eq!(without_body["questions"][0]["choices"], json!(["subject", "identifier", "quasi_identifier"]));
    let suggestion =
        server.post(&path, &json!({"roles": {"patient_id": "identifier", "ward": "sensitive"}})).await.ok(200);
    let names: Vec<String> =
        suggestion["columns"].as_array().unwrap().iter().map(|column| text(&column["role"])).collect();
    assert_eq!(names, ["identifier", "quasi_identifier", "sensitive", "sensitive", "sensitive"]);
    let job = server.post("/v1/jobs?wait=60", &suggestion["specification"]).await.ok(200);
    assert_eq!(job["status"], "succeeded", "{job:#}");
    let release = text(&job["release"]);
    assert_eq!(server.get(&format!("/v1/releases/{release}")).await.ok(200)["status"], "held");
    server.post(&format!("/v1/releases/{release}/approve"), &json!({"reason": "read"})).await.ok(200);

    let fault =
        server.post(&path, &json!({"roles": {"wart": "sensitive"}})).await.fault("/roles/wart", "unknown-attribute");
    assert_eq!(fault["nearest"][0], "ward");
    server.post(&path, &json!({"role": {}})).await.fault("/role", "unknown-field");
    let foreign = "/v1/datasets/018f0000-0000-7000-8000-00000000ffff/suggestion";
    server.post(foreign, &json!({})).await.problem(404, "not-found");
    let log = server.get("/v1/audit-log?action=dataset.read_profile").await.ok(200);
    assert_eq!(log["items"].as_array().unwrap().len(), 3, "what was answered");
    server.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    server.post(&path, &json!({})).await.problem(410, "gone");
    server.stop().await;
}

/// A dataset that declares persons gets guarantees for them.
#[tokio::test(flavor = "multi_thread")]
async fn suggestions_know_the_persons_of_a_dataset() {
    let server = Server::start().await;
    let uploaded = server.upload("subject=patient_id&max_rows_per_subject=2", visits()).await.ok(201);
    let path = format!("/v1/datasets/{}/suggestion", text(&uploaded["id"]));
    let suggestion = server.post(&path, &json!({})).await.ok(200);
    assert_eq!(suggestion["subject"], json!({"column": "patient_id", "max_rows": 2}));
    assert_eq!(suggestion["columns"][0]["role"], "subject");
    server.post(&path, &json!({"subject": "ward"})).await.fault("/subject", "bad-columns");
    let job = server.post("/v1/jobs?wait=60", &suggestion["specification"]).await.ok(200);
    assert_eq!(job["status"], "succeeded", "{job:#}");
    let release = server.get(&format!("/v1/releases/{}", text(&job["release"]))).await.ok(200);
    assert_eq!(release["unit"], json!({"subject": "patient_id", "max_rows": 2}));
    server.stop().await;
}
