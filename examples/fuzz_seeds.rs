//! Small inputs from which fuzzing begins, one folder a target: `cargo run --example fuzz_seeds -- FOLDER`.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{BooleanArray, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray};
use flate2::write::GzEncoder;
use guardian::microdata::{ChunkColumn, Interner};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

const CSV: &str =
    "age,price,name,smoker\n30,1.50,\"Smith, J\",true\n-7,,,false\n,0.05,\"\",true\n5,3.00,\"line\nend\",false\n";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    each_seed(|target, name, bytes| {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)
    })
}

/// Gives the seeds of all targets but that of releases: target, name and bytes.
pub(crate) fn each_seed(mut put: impl FnMut(&str, &str, &[u8]) -> std::io::Result<()>) -> Result<(), Box<dyn Error>> {
    for (flags, name) in [(0, "detected"), (1, "comma"), (6, "semicolon")] {
        let text = if flags == 6 { CSV.replace(',', ";") } else { CSV.to_owned() };
        put("csv", name, &[&[flags], text.as_bytes()].concat())?;
    }
    put("csv", "one", b"\x05a\nNA\n\n\"\"\nx\n")?;
    put("ndjson", "types", b"{\"a\":1,\"b\":\"x\",\"c\":true}\n{\"b\":null,\"a\":-2.50,\"c\":false}\n{\"a\":1e3}\n")?;
    let batch = batch()?;
    for (name, compression) in [("plain", Compression::UNCOMPRESSED), ("snappy", Compression::SNAPPY)] {
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
        writer.write(&batch)?;
        put("parquet", name, &writer.into_inner()?)?;
    }
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()?;
    put("arrow", "stream", writer.get_ref())?;
    let rules = ["a, b -> c", "a -> b, c", "a -> (b & c)", "-> c", "\"a, \"\"b\"\"\" -> \"->\""];
    for (number, rule) in rules.iter().enumerate() {
        put("rule", &number.to_string(), rule.as_bytes())?;
    }
    put("specification", "hospital", include_bytes!("hospital.json"))?;
    put("specification", "everything", EVERYTHING.as_bytes())?;
    let mut gzip = GzEncoder::new(vec![1], flate2::Compression::default());
    gzip.write_all(CSV.as_bytes())?;
    put("compression", "gzip", &gzip.finish()?)?;
    put("compression", "zstd", &[vec![2], zstd::encode_all(CSV.as_bytes(), 1)?].concat())?;
    let tokens = [
        "0193a6b07c1e70008000000000000001",
        "gk_0193a6b07c1e70008000000000000001_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        "datasets:write jobs",
        "succeeded",
        "P1DT2H3M4S",
        "-9223372036854775808",
        "2024-02-29",
        "2024-02-29T23:59:59.5Z",
    ];
    for (number, token) in tokens.iter().enumerate() {
        put("tokens", &number.to_string(), token.as_bytes())?;
    }
    let mut values = Interner::default();
    let codes = [Some("x"), None, Some("long enough to be itself"), Some("x")]
        .map(|value| value.map_or(0, |value| values.intern(value.as_bytes()) as u16 + 1));
    put("chunk", "four", &ChunkColumn::new(values.take(), &codes).encode())?;
    Ok(())
}

fn batch() -> Result<RecordBatch, Box<dyn Error>> {
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("age", Arc::new(Int64Array::from(vec![Some(30), None, Some(-7)])) as _, true),
        ("name", Arc::new(StringArray::from(vec![Some("x"), Some(""), None])) as _, true),
        (
            "price",
            Arc::new(Decimal128Array::from(vec![Some(150), Some(5), None]).with_precision_and_scale(10, 2)?) as _,
            true,
        ),
        ("born", Arc::new(Date32Array::from(vec![Some(0), Some(-1), Some(19_000)])) as _, true),
        ("smoker", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])) as _, true),
    ])?)
}

const EVERYTHING: &str = r#"{"dataset": "0193a6b0-7c1e-7000-8000-000000000001", "hold": true, "priority": 3, "deadline": "PT10M",
"reason": "why", "unlisted": "drop", "composition": {"mode": "enforce"}, "internal": {"utility": []}, "utility": [],
"attributes": {"age": {"publish": true, "identifier": false, "rename": "years", "discretize": {"equal_width": 5}},
"a/b~c": {"drop": true}}, "method": {"type": "versatile", "algorithm": "uad", "correlated": "together", "score": "entropy",
"rules": [{"quasi_identifiers": ["age"], "sensitive": ["race"], "guarantee": {"type": "l_diversity", "l": 2}}, "gender -> zipcode"],
"default_guarantee": {"type": "l_diversity", "l": 2}, "functional_dependencies": [], "assume_unknown": [], "dependencies": {"discover": "singles", "tolerance": "0.02"},
"uad": {"saturate": false, "addback": false}, "gd": {"try_all": false, "fill": false}}}"#;
