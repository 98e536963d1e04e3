//! What the texts of statements hold and do not hold, and what is made of files.

use std::fs;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use super::audit::{WrittenForm, WrittenRelations, WrittenRows, contents, sizes};
use super::files::{ScratchFolder, SharedFolders, overlaps};
use super::kinds::SqlKind;
use super::relation::{self, SqlValue};
use super::source::SparkSource;
use super::statements::{self, BucketStatements, ClassStatements, SliceStatements, column};
use super::table::offered;
use super::written;
use crate::engine::{ProtectedRemoteColumn, PublishedRemoteColumn, RemoteBuckets};
use crate::publication::Guarantee;
use crate::publish::ranked::{UseKey, plan_buckets};
use crate::random::ReleaseKey;
use crate::report::PartFilesReader;

fn published(column: usize, name: &str) -> PublishedRemoteColumn {
    PublishedRemoteColumn { column, name: name.to_owned() }
}

/// The buckets of a small table with a rare value.
fn buckets() -> RemoteBuckets {
    let key = ReleaseKey::from_bytes([5; 32]);
    RemoteBuckets {
        sensitive: ProtectedRemoteColumn {
            column: published(2, "disease"),
            values: ["flu", "gout", "kuru"].map(|value| Some(value.to_owned())).to_vec(),
        },
        plan: plan_buckets(&[4, 4, 1], &[Guarantee::LDiversity { l: 2 }], &key, "t1").unwrap(),
        key: UseKey::of_ranks(&key, "t1"),
        ranking: vec![0, 1, 2],
    }
}

fn known() -> Vec<PublishedRemoteColumn> {
    vec![published(0, "age"), published(1, "a `quoted` name")]
}

fn columns() -> Vec<String> {
    (0..3).map(column).collect()
}

/// The texts of the statements that plan and write a table with buckets, a plain one, one with classes and a sliced one.
fn texts_of_makers() -> Vec<String> {
    let (buckets, columns, known) = (buckets(), columns(), known());
    let made = BucketStatements { table: "t1", columns: &columns, rows: 9, buckets: &buckets };
    let classes = ClassStatements { table: "t3", columns: &columns, known: &known, generalized: &[1] };
    let slices = SliceStatements { table: "t4", columns: &columns, known: &known, members: &[0, 1], buckets: 3 };
    vec![
        made.keyed(),
        made.counted(),
        made.assigned(),
        made.known_part(&known, "/scratch/t1.w"),
        made.sensitive_part(),
        statements::plain_part(&known, 9, "/scratch/t2.rows"),
        classes.classed(9),
        classes.classed(1 << 20),
        classes.part(9, "/scratch/t3.w"),
        slices.assigned(9),
        slices.part(&known[..1], 9, "/scratch/t4.w"),
        statements::distinct_rows(&columns),
        statements::number_of_distinct_rows(&columns),
        statements::frequencies("c0"),
        statements::unique(&columns),
        statements::inferred(&columns[..2], "c2"),
        statements::values("c2"),
        statements::determined(&columns[..1], &columns[1..]),
        statements::sample(&columns, 4),
    ]
}

/// The texts of the statements that audit them.
fn texts_of_audits() -> Vec<String> {
    let (columns, known) = (columns(), known());
    let rows = |relation: &str, columns: Vec<PublishedRemoteColumn>| WrittenRows {
        columns,
        relation: format!("parquet.`/release/{relation}`"),
    };
    let relations = |name: &str, parts, form| WrittenRelations {
        columns: columns.clone(),
        parts,
        assignment: format!("parquet.`/scratch/{name}.w`"),
        form,
    };
    let disease = || vec![published(2, "disease")];
    let bucketized = vec![rows("t1.qi", known.clone()), rows("t1.sa", disease())];
    let sliced = vec![rows("t4.c1", known[..1].to_vec()), rows("t4.c2", [&known[1..], &disease()[..]].concat())];
    let all = [
        relations("t1", bucketized, WrittenForm::Bucketed),
        relations("t4", sliced, WrittenForm::Bucketed),
        relations("t3", vec![rows("t3.rows", known.clone())], WrittenForm::Generalized(vec![1])),
        relations("t2", vec![rows("t2.rows", known.clone())], WrittenForm::Plain),
    ];
    let made = ClassStatements { table: "t3", columns: &columns, known: &known, generalized: &[1] };
    let mut texts = vec![
        contents("parquet.`/release/t1.sa`", &["bucket".to_owned()], Some("`disease`")),
        contents("parquet.`/release/t3.rows`", &["`a ``quoted`` name`".to_owned()], None),
        made.covered("parquet.`/scratch/t3.w`"),
        sizes("parquet.`/release/t4.c2`"),
    ];
    texts.extend(all.into_iter().flat_map(|relations| relations.checks()).map(|(_, sql)| sql));
    texts
}

fn texts() -> Vec<String> {
    [texts_of_makers(), texts_of_audits()].concat()
}

/// The attack: a reader of the engine's pages and logs, who sees every text, looks for keys, plans and rare values.
#[test]
fn texts_hold_no_key_no_plan_and_no_value() {
    let buckets = buckets();
    for text in texts() {
        assert!(!text.contains(buckets.key.digits()), "{text}");
        assert!(buckets.sensitive.values.iter().flatten().all(|value| !text.contains(value)), "{text}");
    }
}

#[test]
fn texts_mean_the_same_when_a_task_is_repeated() {
    let volatile = [
        "rand",
        "uuid",
        "monotonically_increasing_id",
        "input_file",
        "now(",
        "current_",
        "shuffle(",
        "first(",
        "any_value",
    ];
    for text in texts() {
        for name in volatile {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }
}

/// Equal rows that are hashed before they are numbered stand side by side, and neighbouring buckets say which share a value.
#[test]
fn equal_rows_are_numbered_before_they_are_hashed() {
    let keyed = &texts()[0];
    let (copies, hash) = (keyed.find("as copy").unwrap(), keyed.find("sha2(k ||").unwrap());
    assert!(keyed[hash..].contains("cast(copy as string)") && copies > 0, "{keyed}");
}

#[test]
fn audits_use_other_means_than_those_that_wrote() {
    for text in texts_of_audits() {
        for name in ["sha2", " over ", " join ", "segment_", "key_", "offset_", "piece_", "member_"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
    }
}

#[test]
fn sources_are_names_or_paths_and_nothing_else() {
    let sql = |text: &str| SparkSource::parse(text).map(|source| source.sql().to_owned());
    assert_eq!(sql("lake.db.t").unwrap(), "`lake`.`db`.`t`");
    assert_eq!(sql("/data/t").unwrap(), "parquet.`/data/t`");
    assert_eq!(sql("s3a://bucket/t").unwrap(), "parquet.`s3a://bucket/t`");
    let refused = [
        "",
        "a.b.c.d",
        "a..b",
        "t; drop table u",
        "t version as of 3",
        "(select 1)",
        "/data/*",
        "/data/../other",
        "/data/`x`",
        "t\n",
        "a`b",
    ];
    for text in refused {
        assert!(SparkSource::parse(text).is_err(), "{text:?}");
    }
}

/// A Parquet file of buckets and ages.
struct SmallFile {
    buckets: Vec<i32>,
    ages: Vec<Option<i64>>,
    nullable: bool,
    metadata: Vec<(&'static str, &'static str)>,
}

impl SmallFile {
    fn new(buckets: &[i32], ages: &[Option<i64>]) -> Self {
        let row = r#"{"type":"struct","fields":[{"name":"bucket","type":"integer","nullable":true,"metadata":{}}]}"#;
        let metadata = vec![("org.apache.spark.version", "4.3.0"), ("org.apache.spark.sql.parquet.row.metadata", row)];
        Self { buckets: buckets.to_vec(), ages: ages.to_vec(), nullable: true, metadata }
    }

    fn read(&self) -> (bool, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let fields =
            vec![Field::new("bucket", DataType::Int32, self.nullable), Field::new("age", DataType::Int64, true)];
        let schema = Arc::new(Schema::new(fields));
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int32Array::from(self.buckets.clone())), Arc::new(Int64Array::from(self.ages.clone()))];
        let metadata = self.metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
        let properties = WriterProperties::builder().set_key_value_metadata(Some(metadata.collect())).build();
        let options = ::parquet::arrow::arrow_writer::ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let file = fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new_with_options(file, schema.clone(), options).unwrap();
        writer.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
        writer.close().unwrap();
        assert_eq!(written::rows(&path).unwrap(), self.ages.len() as u64);
        let read = written::check(&path, &[("age".to_owned(), SqlKind::Integer)], true).unwrap();
        (read.has_columns, read.is_ordered)
    }
}

#[test]
fn files_that_say_more_than_their_rows_are_found() {
    let (buckets, ages) = ([1, 1, 1, 2], [None, Some(-3), Some(7), Some(1)]);
    assert_eq!(SmallFile::new(&buckets, &ages).read(), (true, true));
    // null comes first, numbers by value
    assert_eq!(SmallFile::new(&buckets, &[Some(-3), None, Some(7), Some(1)]).read(), (true, false));
    assert_eq!(SmallFile::new(&[2, 1, 1, 2], &ages).read(), (true, false));
    let never_missing = SmallFile { nullable: false, ..SmallFile::new(&buckets, &ages) };
    assert_eq!(never_missing.read(), (false, false));
    let comment = r#"{"fields":[{"name":"age","nullable":true,"metadata":{"comment":"HIV clinic"}}]}"#;
    for (key, value) in
        [("org.apache.spark.sql.parquet.row.metadata", comment), ("note", "made of visits"), ("ARROW:schema", "x")]
    {
        let file = SmallFile { metadata: vec![(key, value)], ..SmallFile::new(&buckets, &ages) };
        assert_eq!(file.read(), (false, false), "{key}");
    }
}

#[test]
fn texts_stand_in_the_order_of_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let is_ordered = |values: &[&str]| {
        let schema = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
        let file = fs::File::create(&path).unwrap();
        let options = ::parquet::arrow::arrow_writer::ArrowWriterOptions::new().with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(file, schema.clone(), options).unwrap();
        let column: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        writer.write(&RecordBatch::try_new(schema, vec![column]).unwrap()).unwrap();
        writer.close().unwrap();
        written::check(&path, &[("name".to_owned(), SqlKind::Text)], false).unwrap().is_ordered
    };
    assert!(is_ordered(&["", "Zoe", "anna", "étienne"]));
    assert!(!is_ordered(&["anna", "Zoe"]));
}

#[test]
fn files_get_names_that_say_their_place_alone() {
    let (release, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folders = SharedFolders::new(release.path(), scratch.path()).unwrap();
    let put = |path: &str| {
        let path = release.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    };
    for path in [
        "t1.qi/guardian_file=1/part-00003-8a7f.zstd.parquet",
        "t1.qi/guardian_file=0/part-00001-11.parquet",
        "t1.qi/_SUCCESS",
        "t1.qi/guardian_file=0/.a.crc",
    ] {
        put(path);
    }
    let names: Vec<String> = folders.settle("t1.qi").unwrap().into_iter().map(|of| of.file).collect();
    assert_eq!(names, ["t1.qi/00000.parquet", "t1.qi/00001.parquet"]);
    let left: Vec<_> =
        fs::read_dir(release.path().join("t1.qi")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2);
    // two files of one place are of two attempts
    put("t1.sa/guardian_file=0/part-1.parquet");
    put("t1.sa/guardian_file=0/part-2.parquet");
    assert!(folders.settle("t1.sa").is_err());
    put("t2.rows/notes.txt");
    assert!(folders.settle("t2.rows").is_err());
}

#[test]
fn scratch_is_outside_of_the_release_and_goes() {
    let (release, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(release.path().join("inside")).unwrap();
    assert!(SharedFolders::new(release.path(), &release.path().join("inside")).is_err());
    let folders = SharedFolders::new(release.path(), scratch.path()).unwrap();
    fs::create_dir_all(folders.staged("t1.w")).unwrap();
    folders.clear().unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    folders.clear().unwrap();
}

/// The attack: a caller names the scratch folder, by itself or through a link, and reads which row is in which bucket.
#[test]
fn scratch_is_no_table_of_callers() {
    let home = tempfile::tempdir().unwrap();
    let scratch = home.path().join("scratch");
    fs::create_dir_all(scratch.join("guardian-1/t1.w")).unwrap();
    fs::create_dir_all(home.path().join("lake/t")).unwrap();
    std::os::unix::fs::symlink(&scratch, home.path().join("lake/link")).unwrap();
    let at = |place: &str| home.path().join(place).display().to_string();
    for place in
        ["scratch", "scratch/guardian-1/t1.w", "scratch/later", "lake/link/guardian-1/t1.w", "lake/link/later/t1.w", ""]
    {
        assert!(overlaps(&scratch, &at(place)), "{place}");
        assert!(overlaps(&scratch, &format!("file://{}", at(place))), "{place}");
    }
    for table in [at("lake/t"), at("lake/none"), at("scratch2"), "hive.db.t".to_owned()] {
        assert!(!overlaps(&scratch, &table), "{table}");
    }
}

#[test]
fn scratch_of_a_killed_attempt_goes_with_the_next_one() {
    let (release, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let names = || {
        let names =
            fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<std::collections::BTreeSet<String>>()
    };
    let alive = SharedFolders::new(release.path(), scratch.path()).unwrap();
    let of_alive = names();
    assert_eq!(of_alive.len(), 2);
    // what a killed attempt leaves: its lock is free
    fs::create_dir_all(scratch.path().join("guardian-killed/t1.w")).unwrap();
    fs::write(scratch.path().join("guardian-killed.lock"), "").unwrap();
    // and what the engine writes after a sweep
    fs::create_dir_all(scratch.path().join("guardian-swept/t1.w")).unwrap();
    fs::write(scratch.path().join("other.txt"), "").unwrap();
    let next = SharedFolders::new(release.path(), scratch.path()).unwrap();
    let left = names();
    assert!(of_alive.is_subset(&left) && left.contains("other.txt") && left.len() == 5, "{left:?}");
    drop((alive, next));
    assert_eq!(names().into_iter().collect::<Vec<_>>(), ["other.txt"]);
}

#[test]
fn files_that_wait_in_scratch_outlive_the_attempt() {
    let scratch = tempfile::tempdir().unwrap();
    let waiting = ScratchFolder::begin(scratch.path()).unwrap();
    let release = waiting.as_ref().join("release");
    fs::create_dir(&release).unwrap();
    let folders = SharedFolders::of_waiting(&release, scratch.path()).unwrap();
    fs::create_dir_all(folders.staged("t1.w")).unwrap();
    fs::create_dir_all(folders.part("t1.qi")).unwrap();
    folders.clear().unwrap();
    drop(folders);
    assert!(release.join("t1.qi").is_dir());
    // another attempt deletes what nothing wants, and this is wanted
    drop(SharedFolders::from_scratch(scratch.path()).unwrap());
    assert!(release.join("t1.qi").is_dir());
    drop(waiting);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn relations_keep_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let text = |text: &str| SqlValue::Text(text.to_owned());
    let columns = EVERY_KIND.map(|(name, kind, _)| (name, kind));
    let rows = [
        EVERY_KIND
            .map(|(_, kind, value)| if kind == SqlKind::Integer { SqlValue::Integer(-7) } else { text(value) })
            .to_vec(),
        vec![SqlValue::Null; columns.len()],
    ];
    relation::write(&path, &columns, rows.clone()).unwrap();
    let file = fs::File::open(path.join("rows.parquet")).unwrap();
    let mut csv = String::new();
    std::io::Read::read_to_string(&mut PartFilesReader::new(vec![file]), &mut csv).unwrap();
    let values = EVERY_KIND.map(|(.., value)| if value.is_empty() { "\"\"" } else { value }).join(",");
    assert_eq!(csv, format!("n,t,d,b,fee,at,clock\n{values}\n,,,,,,\n"));
    // the audit wants of a part the types that it was written with
    let attributes = EVERY_KIND.map(|(name, kind, _)| (name.to_owned(), kind));
    let read = written::check(&path.join("rows.parquet"), &attributes, false).unwrap();
    assert_eq!((read.has_columns, read.is_ordered), (true, false), "missing values come first");
    let mut other = attributes;
    other[4].1 = SqlKind::Decimal { digits: 9, scale: 3 };
    assert!(!written::check(&path.join("rows.parquet"), &other, false).unwrap().has_columns);
    assert!(relation::write(&path, &columns, rows.clone()).is_err());
}

/// A column of each type, and the canonical text of a value.
const EVERY_KIND: [(&str, SqlKind, &str); 7] = [
    ("n", SqlKind::Integer, "-7"),
    ("t", SqlKind::Text, ""),
    ("d", SqlKind::Date, "1969-12-31"),
    ("b", SqlKind::Boolean, "true"),
    ("fee", SqlKind::Decimal { digits: 9, scale: 2 }, "-0.50"),
    ("at", SqlKind::Timestamp, "1969-12-31T23:59:59.5Z"),
    ("clock", SqlKind::LocalTimestamp, "2026-03-01T00:00:00"),
];

/// The engine spells moments otherwise; each text leads back.
#[test]
fn texts_of_the_engine_and_of_releases_are_translated() {
    for (name, kind, value) in EVERY_KIND {
        assert!(kind.attribute_type().admits(value.as_bytes()), "{name}");
        assert_eq!(kind.canonical(kind.of_engine(value).into_owned()), value, "{name}");
    }
    assert_eq!(SqlKind::Timestamp.of_engine("1969-12-31T23:59:59.5Z"), "1969-12-31 23:59:59.5");
    assert_eq!(SqlKind::LocalTimestamp.of_engine("2026-03-01T00:00:00"), "2026-03-01 00:00:00");
    // a text may look like a moment
    assert_eq!(SqlKind::Text.of_engine("2026-03-01T00:00:00Z"), "2026-03-01T00:00:00Z");
}

#[test]
fn numbers_and_moments_stand_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    for (at, (kind, ordered)) in [
        (SqlKind::Decimal { digits: 12, scale: 2 }, ["-10.00", "-9.50", "9.50", "10.00"]),
        (
            SqlKind::Timestamp,
            ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.5Z", "1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let is_ordered = |values: &[&str], name: &str| {
            let path = folder.path().join(format!("{name}{at}"));
            let rows: Vec<Vec<SqlValue>> =
                values.iter().map(|value| vec![SqlValue::Text((*value).to_owned())]).collect();
            relation::write(&path, &[("x", kind)], rows).unwrap();
            written::check(&path.join("rows.parquet"), &[("x".to_owned(), kind)], false).unwrap().is_ordered
        };
        assert!(is_ordered(&ordered, "ordered"), "{kind:?}");
        let [first, second, rest @ ..] = ordered;
        assert!(!is_ordered(&[&[second, first], &rest[..]].concat(), "exchanged"), "{kind:?}");
    }
}

#[test]
fn every_column_can_be_searched_or_the_table_is_refused() {
    let schema = |columns: &[(&str, Option<SqlKind>)]| {
        columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect::<Vec<_>>()
    };
    let text = Some(SqlKind::Text);
    // names that statements once gave to columns of their own
    assert_eq!(offered(schema(&[("p", text), ("d", text), ("s", text), ("bucket_", text)])).unwrap().len(), 4);
    for (name, kind) in [("score", None), ("guardian_file", text), ("guardian_sign", text), ("_metadata", text)] {
        let refused = offered(schema(&[("age", text), (name, kind)])).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("{name}: ")), "{refused}");
    }
}
