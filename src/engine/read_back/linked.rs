//! The linked view of a bucketed table: one table of its attributes, which matches the rows of its parts at random in each bucket.
//!
//! The view is synthetic. It shows one of the matchings of a bucket, which readers cannot distinguish. The hash of the published
//! parts is the seed, so that every reader of the parts can draw the same matching.
//!
//! Where parts share attributes, matched rows agree on them. Each part attaches to an earlier one that holds all shared attributes,
//! which makes all matchings that agree equally likely. Parts that share attributes in a circle have no such order, and no view.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use sha2::{Digest, Sha256};

use super::hex::hex;
use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES, branches};
use crate::publication::RowKind;
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::{ManifestPart, ManifestTable};

/// Why a table has no linked view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkedViewError {
    /// Its rows are complete tuples.
    Whole,
    /// The rows of a part are not tuples of the original.
    NotTuples,
    /// It has one attribute.
    Single,
    /// Its parts share attributes in a circle.
    Circle,
}

/// The description of the linked view as a part; its digest is the digest of the digests of the parts.
///
/// # Errors
/// [`LinkedViewError`]
pub fn linked_part(table: &ManifestTable) -> Result<ManifestPart, LinkedViewError> {
    if !table.parts.iter().all(|part| part.bucketed) {
        return Err(LinkedViewError::Whole);
    }
    if table.parts.iter().any(|part| part.row_meaning != RowKind::Tuples) {
        return Err(LinkedViewError::NotTuples);
    }
    if table.attributes.len() < 2 {
        return Err(LinkedViewError::Single);
    }
    if attached_parts(table).is_none() {
        return Err(LinkedViewError::Circle);
    }
    let of_parts = |part: &ManifestPart| part.types.clone();
    Ok(ManifestPart {
        name: "linked".to_owned(),
        attributes: table.attributes.clone(),
        types: table.parts.iter().flat_map(of_parts).collect(),
        bucketed: false,
        row_meaning: RowKind::Tuples,
        cells: table.parts.iter().flat_map(|part| part.cells.clone()).collect(),
        rows: table.parts.first().map_or(0, |part| part.rows),
        file: Some(format!("{}.linked.csv", table.name)),
        sha256: Some(hex(&digest(table))),
        files: Vec::new(),
        null: None,
        counterfeits_per_bucket: None,
    })
}

/// A part that shares attributes with an earlier one.
struct JoinedPart {
    part: usize,
    on: usize,
    /// The positions of the shared attributes, in the part and in the earlier one.
    places: Vec<(usize, usize)>,
}

/// The parts of a table that attach to earlier ones, in an order that allows it.
///
/// The list is empty where parts share no attribute; the result is `None` where they share attributes in a circle.
fn attached_parts(table: &ManifestTable) -> Option<Vec<JoinedPart>> {
    let stands: usize = table.parts.iter().map(|part| part.attributes.len()).sum();
    if stands == table.attributes.len() {
        return Some(Vec::new());
    }
    let attr = |name: &String| {
        let at = table.attributes.iter().position(|known| known == name)?;
        (at < MAX_ATTRIBUTES).then(|| Attr::from(at))
    };
    let set = |part: &ManifestPart| part.attributes.iter().map(attr).collect::<Option<AttrSet>>();
    let sets: Vec<AttrSet> = table.parts.iter().map(set).collect::<Option<_>>()?;
    let place = |part: usize, attr: Attr| {
        table.parts[part].attributes.iter().position(|name| *name == table.attributes[attr.index()])
    };
    let attached = branches(&sets)?.into_iter().skip(1).map(|branch| {
        let places = branch.shared.iter().map(|attr| Some((place(branch.set, attr)?, place(branch.on, attr)?)));
        Some(JoinedPart { part: branch.set, on: branch.on, places: places.collect::<Option<_>>()? })
    });
    attached.collect()
}

/// The digest of the digests of the parts.
fn digest(table: &ManifestTable) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"guardian linked view 1\0");
    for part in &table.parts {
        hash.update(part.digest().as_bytes());
        hash.update(b"\0");
    }
    hash.finalize().into()
}

/// Matches the rows of parts while their CSV is read; holds the chunks of the current bucket.
pub struct BucketJoiner {
    feeds: Vec<PartFeed>,
    /// For each attribute its part, and its column there.
    columns: Vec<(usize, usize)>,
    /// The parts that attach to earlier ones.
    attached: Vec<JoinedPart>,
    streams: RandomStreams,
    /// Rows of smaller labels are skipped.
    from: u32,
    header: Option<Vec<u8>>,
}

/// The rows of a part that came and were not yet used.
struct PartFeed {
    csv: Vec<u8>,
    /// Label, and where the cells behind it are.
    rows: Vec<(u32, Range<usize>)>,
    used: usize,
    width: usize,
    ended: bool,
}

impl BucketJoiner {
    /// The joiner of a table with a linked view, from the bucket `from` on; the first bucket comes after a header.
    ///
    /// # Errors
    /// When its parts do not have its attributes.
    pub fn new(table: &ManifestTable, from: u32) -> io::Result<Self> {
        let mut places: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (at, part) in table.parts.iter().enumerate() {
            places.extend(part.attributes.iter().enumerate().map(|(column, name)| (name.as_str(), (at, column))));
        }
        let columns: Option<Vec<(usize, usize)>> =
            table.attributes.iter().map(|name| places.get(name.as_str()).copied()).collect();
        let feed = |part: &ManifestPart| PartFeed {
            csv: Vec::new(),
            rows: Vec::new(),
            used: 0,
            width: part.attributes.len(),
            ended: false,
        };
        Ok(Self {
            feeds: table.parts.iter().map(feed).collect(),
            columns: columns.ok_or_else(|| damaged("the parts of a table do not have its attributes"))?,
            attached: attached_parts(table)
                .ok_or_else(|| damaged("the parts of a table share attributes in a circle"))?,
            streams: RandomStreams::Keyed(ReleaseKey::from_bytes(digest(table))),
            from,
            header: (from <= 1).then(Vec::new),
        })
    }

    /// The part whose next chunk is needed; `None` when all parts ended.
    #[must_use]
    pub fn wanted(&self) -> Option<usize> {
        self.feeds.iter().position(|feed| !feed.ended && !feed.is_ahead())
    }

    /// Adds the next chunk of a part, which begins with the header when `first`.
    ///
    /// # Errors
    /// When it is not the CSV of a part.
    pub fn chunk(&mut self, part: usize, csv: &[u8], first: bool) -> io::Result<()> {
        let feed = self.feeds.get_mut(part).ok_or_else(|| damaged("there is no such part"))?;
        let header = feed.take(csv, first, self.from)?;
        if let (Some(names), Some(header)) = (&mut self.header, header) {
            // the names of all parts, one behind the other, each with the width of its part
            names.extend_from_slice(&header);
            names.push(b'\n');
        }
        Ok(())
    }

    /// Marks the end of a part.
    pub fn ended(&mut self, part: usize) {
        if let Some(feed) = self.feeds.get_mut(part) {
            feed.ended = true;
        }
    }

    /// The rows of all complete buckets, with the header before the first.
    ///
    /// # Errors
    /// When the parts do not agree on their buckets.
    pub fn take(&mut self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        while self.feeds.iter().all(|feed| feed.ended || feed.is_ahead()) {
            let Some(label) = self.feeds.first().and_then(PartFeed::label) else { break };
            self.head(&mut out)?;
            self.bucket(label, &mut out)?;
        }
        if self.wanted().is_none() && self.feeds.iter().any(|feed| feed.label().is_some()) {
            return Err(damaged("the parts of a table have not the same buckets"));
        }
        Ok(out)
    }

    /// Writes the header once.
    fn head(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(headers) = self.header.take() else { return Ok(()) };
        let mut names = Vec::new();
        for line in lines(&headers) {
            names.push((line.clone(), fields(&headers[line])));
        }
        for (at, &(part, column)) in self.columns.iter().enumerate() {
            let name = names.get(part).and_then(|(line, fields)| {
                let field = fields.get(column)?;
                headers.get(line.start + field.start..line.start + field.end)
            });
            separate(at, out);
            out.extend_from_slice(name.ok_or_else(|| damaged("a part has another header"))?);
        }
        out.push(b'\n');
        Ok(())
    }

    /// Writes the rows of a bucket: the first part in its order, each other part in a drawn order.
    fn bucket(&mut self, label: u32, out: &mut Vec<u8>) -> io::Result<()> {
        let ranges: Vec<Range<usize>> = self.feeds.iter().map(|feed| feed.rows(label)).collect();
        let size = ranges.first().map_or(0, Range::len);
        if ranges.iter().any(|range| range.len() != size) {
            return Err(damaged("the parts of a table have not the same buckets"));
        }
        let mut orders: Vec<Vec<u32>> = (0..self.feeds.len())
            .map(|part| match part {
                0 => (0..size as u32).collect(),
                _ if !self.attached.is_empty() => Vec::new(),
                _ => self.streams.stream(&format!("linked/{part}/{label}")).permutation(size as u32),
            })
            .collect();
        for joined in &self.attached {
            orders[joined.part] = self.agreeing(joined, label, &ranges, &orders[joined.on])?;
        }
        let mut cells: Vec<Vec<Range<usize>>> = vec![Vec::new(); self.feeds.len()];
        for row in 0..size {
            let parts = self.feeds.iter().zip(&ranges).zip(&orders).zip(&mut cells);
            for (((feed, range), order), cells) in parts {
                let (_, line) = &feed.rows[range.start + order[row] as usize];
                *cells = fields(&feed.csv[line.clone()]);
                cells.iter_mut().for_each(|cell| *cell = cell.start + line.start..cell.end + line.start);
                if cells.len() != feed.width {
                    return Err(damaged("a row of a part has other cells"));
                }
            }
            for (at, &(part, column)) in self.columns.iter().enumerate() {
                separate(at, out);
                out.extend_from_slice(&self.feeds[part].csv[cells[part][column].clone()]);
            }
            out.push(b'\n');
        }
        for (feed, range) in self.feeds.iter_mut().zip(ranges) {
            feed.used = range.end;
        }
        Ok(())
    }
}

impl BucketJoiner {
    /// An order of the rows of a part that agrees with the part it attaches to; rows that agree alike are shuffled.
    fn agreeing(
        &self,
        joined: &JoinedPart,
        label: u32,
        ranges: &[Range<usize>],
        order: &[u32],
    ) -> io::Result<Vec<u32>> {
        let shared = |part: usize, row: u32, place: &dyn Fn(&(usize, usize)) -> usize| -> io::Result<Vec<&[u8]>> {
            let feed = &self.feeds[part];
            let (_, line) = &feed.rows[ranges[part].start + row as usize];
            let (record, cells) = (&feed.csv[line.clone()], fields(&feed.csv[line.clone()]));
            let cell = |places: &(usize, usize)| cells.get(place(places)).map(|cell| &record[cell.clone()]);
            let cells: Option<Vec<&[u8]>> = joined.places.iter().map(cell).collect();
            cells.ok_or_else(|| damaged("a row of a part has other cells"))
        };
        let mut alike: BTreeMap<Vec<&[u8]>, Vec<u32>> = BTreeMap::new();
        for row in 0..order.len() as u32 {
            alike.entry(shared(joined.part, row, &|places| places.0)?).or_default().push(row);
        }
        let mut stream = self.streams.stream(&format!("linked/{}/{label}", joined.part));
        alike.values_mut().for_each(|rows| stream.shuffle(rows));
        let next = |row: &u32| {
            let rows = alike.get_mut(&shared(joined.on, *row, &|places| places.1)?);
            rows.and_then(Vec::pop).ok_or_else(|| damaged("the parts of a table do not agree on what they share"))
        };
        order.iter().map(next).collect()
    }
}

impl PartFeed {
    /// The label of the next row.
    fn label(&self) -> Option<u32> {
        self.rows.get(self.used).map(|(label, _)| *label)
    }

    /// Whether rows of a bucket behind the next one came.
    fn is_ahead(&self) -> bool {
        self.label().is_some() && self.rows.last().map(|(label, _)| *label) != self.label()
    }

    /// The rows of a bucket, which is the next one.
    fn rows(&self, label: u32) -> Range<usize> {
        let rows = &self.rows[self.used..];
        self.used..self.used + rows.iter().take_while(|(of, _)| *of == label).count()
    }

    /// Takes the next chunk, and gives its header where there is one, without the name of the labels.
    fn take(&mut self, csv: &[u8], first: bool, from: u32) -> io::Result<Option<Vec<u8>>> {
        // what was used goes
        let kept = self.rows.get(self.used).map_or(self.csv.len(), |(_, line)| line.start);
        self.csv.drain(..kept);
        self.rows.drain(..self.used);
        self.used = 0;
        for (_, line) in &mut self.rows {
            *line = line.start - kept..line.end - kept;
        }
        let before = self.csv.len();
        self.csv.extend_from_slice(csv);
        let mut header = first;
        let mut names = None;
        for line in lines(csv) {
            let text = &csv[line.clone()];
            let comma = text.iter().position(|&byte| byte == b',').ok_or_else(|| damaged("a part has no buckets"))?;
            if std::mem::take(&mut header) {
                names = Some(text[comma + 1..].to_vec());
                continue;
            }
            let label = std::str::from_utf8(&text[..comma]).ok().and_then(|label| label.parse::<u32>().ok());
            let label = label.ok_or_else(|| damaged("a label is no number"))?;
            if self.rows.last().is_some_and(|(last, _)| *last > label) {
                return Err(damaged("the labels of a part do not rise"));
            }
            if label >= from {
                self.rows.push((label, before + line.start + comma + 1..before + line.end));
            }
        }
        Ok(names)
    }
}

/// The labels of the rows of a chunk.
///
/// # Errors
/// When a label is no number.
pub fn labels(csv: &[u8], first: bool) -> io::Result<Vec<u32>> {
    let mut feed = PartFeed { csv: Vec::new(), rows: Vec::new(), used: 0, width: 0, ended: false };
    feed.take(csv, first, 0)?;
    Ok(feed.rows.into_iter().map(|(label, _)| label).collect())
}

fn separate(at: usize, out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
}

/// The records of CSV that this service wrote, without their line feeds.
fn lines(csv: &[u8]) -> Vec<Range<usize>> {
    let mut lines = unquoted_pieces(csv, b'\n');
    // the last line feed ends a record, and begins none
    lines.pop_if(|last| last.start == last.end);
    lines
}

/// The fields of a record, as they are written.
fn fields(record: &[u8]) -> Vec<Range<usize>> {
    unquoted_pieces(record, b',')
}

/// The pieces between marks that stand outside of quotes.
fn unquoted_pieces(text: &[u8], mark: u8) -> Vec<Range<usize>> {
    let (mut pieces, mut begun, mut quoted) = (Vec::new(), 0, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if byte == mark && !quoted => {
                pieces.push(begun..at);
                begun = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(begun..text.len());
    pieces
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use crate::publication::{ProtectionKind, TableKind};
    use proptest::prelude::*;

    use super::*;
    use crate::microdata::AttributeType;

    fn part(name: &str, attributes: &[&str], rows: u64, digest: &str) -> ManifestPart {
        ManifestPart {
            name: name.to_owned(),
            attributes: attributes.iter().map(|name| (*name).to_owned()).collect(),
            types: attributes.iter().map(|name| ((*name).to_owned(), AttributeType::Text)).collect(),
            bucketed: true,
            row_meaning: RowKind::Tuples,
            cells: BTreeMap::new(),
            rows,
            file: Some(format!("t1.{name}.csv")),
            sha256: Some(digest.to_owned()),
            files: Vec::new(),
            null: None,
            counterfeits_per_bucket: None,
        }
    }

    fn table(rows: u64, digest: &str) -> ManifestTable {
        ManifestTable {
            name: "t1".to_owned(),
            kind: TableKind::Sliced,
            attributes: ["a", "s", "b"].map(str::to_owned).to_vec(),
            protection: ProtectionKind::Guarding,
            guards: Vec::new(),
            parts: vec![part("c1", &["a", "b"], rows, digest), part("c2", &["s"], rows, digest)],
        }
    }

    /// The CSV of both parts for buckets of the given sizes, in chunks of at most `chunk` rows.
    fn csv(sizes: &[usize], chunk: usize) -> [Vec<Vec<u8>>; 2] {
        let rows = |cells: &dyn Fn(usize, usize) -> String, header: &str| {
            let mut chunks = vec![Vec::new()];
            let mut held = 0;
            chunks[0].extend_from_slice(header.as_bytes());
            for (bucket, &size) in sizes.iter().enumerate() {
                for row in 0..size {
                    if held == chunk {
                        chunks.push(Vec::new());
                        held = 0;
                    }
                    held += 1;
                    let line = format!("{},{}\n", bucket + 1, cells(bucket, row));
                    chunks.last_mut().expect("a chunk").extend_from_slice(line.as_bytes());
                }
            }
            chunks
        };
        [
            rows(&|bucket, row| format!("\"a,\"\"{bucket}\"\"\n{row}\",b{row}"), "bucket,a,b\n"),
            rows(&|bucket, row| format!("s{bucket}-{row}"), "bucket,s\n"),
        ]
    }

    fn linked(table: &ManifestTable, parts: &[Vec<Vec<u8>>; 2], from: u32) -> io::Result<String> {
        let (mut linker, mut next, mut out) = (BucketJoiner::new(table, from)?, [0, 0], Vec::new());
        while let Some(part) = linker.wanted() {
            match parts[part].get(next[part]) {
                Some(chunk) => linker.chunk(part, chunk, next[part] == 0)?,
                None => linker.ended(part),
            }
            next[part] += 1;
            out.extend(linker.take()?);
        }
        out.extend(linker.take()?);
        Ok(String::from_utf8(out).expect("text"))
    }

    proptest! {
        /// Every row of every part occurs once, matched within its bucket; the chunks of the parts change nothing.
        #[test]
        fn the_rows_of_a_bucket_stand_side_by_side(
            sizes in prop::collection::vec(1usize..6, 1..9),
            cuts in (1usize..7, 1usize..7),
            digests in ("[a-f]{8}", "[a-f]{8}"),
        ) {
            let rows: usize = sizes.iter().sum();
            let view = |chunk, digest: &str| linked(&table(rows as u64, digest), &csv(&sizes, chunk), 1).expect("linked");
            let whole = view(cuts.0, &digests.0);
            prop_assert_eq!(&whole, &view(cuts.1, &digests.0));
            prop_assert_eq!(&whole[..6], "a,s,b\n");
            let mut matched: Vec<(usize, usize, usize)> = Vec::new();
            for record in lines(&whole.as_bytes()[6..]) {
                let record = &whole[6..][record];
                let cells: Vec<&str> = fields(record.as_bytes()).into_iter().map(|field| &record[field]).collect();
                let (bucket, row) = cells[0].trim_matches('"').split_once('\n').expect("two lines");
                let bucket: usize = bucket.trim_start_matches("a,").replace('"', "").parse().expect("a bucket");
                let (of, s) = cells[1].trim_start_matches('s').split_once('-').expect("two numbers");
                prop_assert_eq!(of, bucket.to_string());
                prop_assert_eq!(cells[2], format!("b{row}"));
                matched.push((bucket, row.parse().expect("a row"), s.parse().expect("a row")));
            }
            let all: Vec<(usize, usize)> =
                sizes.iter().enumerate().flat_map(|(bucket, &size)| (0..size).map(move |row| (bucket, row))).collect();
            let mut first: Vec<(usize, usize)> = matched.iter().map(|&(bucket, row, _)| (bucket, row)).collect();
            let mut second: Vec<(usize, usize)> = matched.iter().map(|&(bucket, _, row)| (bucket, row)).collect();
            first.sort_unstable();
            second.sort_unstable();
            prop_assert_eq!(&first, &all);
            prop_assert_eq!(&second, &all);
            // a page begins at a bucket and shows the same
            let from = sizes.len() / 2 + 1;
            let skipped: usize = sizes[..from - 1].iter().sum();
            let page = linked(&table(rows as u64, &digests.0), &csv(&sizes, cuts.1), from as u32).expect("linked");
            let records = lines(whole.as_bytes());
            let begin = records[skipped + 1].start;
            prop_assert_eq!(page, if from == 1 { whole.clone() } else { whole[begin..].to_owned() });
        }
    }

    /// Parts that share attributes, with several agreeing matchings in bucket 1.
    #[test]
    fn rows_that_share_attributes_agree() {
        let mut shared = table(4, "ab");
        shared.attributes = ["a", "b", "s"].map(str::to_owned).to_vec();
        shared.parts = vec![part("c1", &["a", "b"], 4, "ab"), part("c2", &["b", "s"], 4, "ab")];
        let parts = |second: &str| {
            let first = "bucket,a,b\n1,1,x\n1,2,x\n1,3,\"y,\"\n2,4,x\n";
            [vec![first.as_bytes().to_vec()], vec![format!("bucket,b,s\n{second}").into_bytes()]]
        };
        let sound = parts("1,x,s1\n1,x,s2\n1,\"y,\",s3\n2,x,s4\n");
        let mut seen = std::collections::BTreeSet::new();
        for digest in ["ab", "cd", "ef", "01", "02", "03", "04", "05"] {
            shared.parts.iter_mut().for_each(|part| part.sha256 = Some(digest.to_owned()));
            let view = linked(&shared, &sound, 1).expect("linked");
            assert_eq!(view, linked(&shared, &sound, 1).expect("linked"));
            assert!(view.starts_with("a,b,s\n1,x,s") && view.ends_with("3,\"y,\",s3\n4,x,s4\n"), "{view}");
            seen.insert(view);
        }
        assert_eq!(seen.len(), 2, "either of the rows with x matched either");
        assert!(linked(&shared, &parts("1,x,s1\n1,z,s2\n1,\"y,\",s3\n2,x,s4\n"), 1).is_err());
        assert_eq!(linked_part(&shared).expect("a view").types.len(), 3);
        shared.parts.push(part("c3", &["a", "s"], 4, "ab"));
        assert_eq!(linked_part(&shared), Err(LinkedViewError::Circle));
        assert!(BucketJoiner::new(&shared, 1).is_err());
    }

    #[test]
    fn other_parts_are_linked_otherwise() {
        let view = |digest| linked(&table(40, digest), &csv(&[20, 20], 7), 1).expect("linked");
        assert_eq!(view("ab"), view("ab"));
        assert_ne!(view("ab"), view("cd"));
    }

    #[test]
    fn parts_that_do_not_agree_are_damaged() {
        let [first, _] = csv(&[2, 3], 9);
        let [_, second] = csv(&[3, 2], 9);
        assert!(linked(&table(5, "ab"), &[first, second], 1).is_err());
        let [first, second] = csv(&[2], 9);
        let [longer, _] = csv(&[2, 1], 9);
        assert!(linked(&table(2, "ab"), &[longer.clone(), second.clone()], 1).is_err());
        assert!(linked(&table(2, "ab"), &[first, second], 1).is_ok());
        assert_eq!(labels(&longer[0], true).expect("labels"), [1, 1, 2]);
    }

    #[test]
    fn tables_without_buckets_have_no_such_view() {
        let mut plain = table(3, "ab");
        plain.parts[0].bucketed = false;
        assert_eq!(linked_part(&plain), Err(LinkedViewError::Whole));
        let mut values = table(3, "ab");
        values.parts[1].row_meaning = RowKind::Values;
        assert_eq!(linked_part(&values), Err(LinkedViewError::NotTuples));
        let mut single = table(3, "ab");
        single.attributes.truncate(1);
        assert_eq!(linked_part(&single), Err(LinkedViewError::Single));
        let part = linked_part(&table(3, "ab")).expect("a view");
        assert_eq!((part.csv().as_str(), part.rows, part.types.len()), ("t1.linked.csv", 3, 3));
        assert_ne!(part.sha256, linked_part(&table(3, "cd")).expect("a view").sha256);
    }
}
