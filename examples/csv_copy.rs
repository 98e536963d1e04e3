//! `csv_copy IN OUT`: copies a CSV file record by record with the `csv` crate. The yardstick of `BENCHMARKS.md`: what a
//! process costs that reads and writes a table and does nothing else.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (paths.next(), paths.next()) else { return Err("usage: csv_copy IN OUT".into()) };
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(from)?;
    let mut writer = csv::Writer::from_path(to)?;
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record)? {
        writer.write_byte_record(&record)?;
    }
    Ok(writer.flush()?)
}
