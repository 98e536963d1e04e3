//! Names that resemble each other: what a misspelled one may mean.

/// The longest name, in bytes, that is compared.
const LONGEST_COMPARED: usize = 64;

/// The names with the smallest edit distance, nearest first, regardless of case; the first of equals comes first. Those of
/// which more than half differs are left out; long names resemble nothing.
pub fn nearest_names<'a>(text: &str, among: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    if text.len() > LONGEST_COMPARED {
        return Vec::new();
    }
    let folded: Vec<char> = text.to_lowercase().chars().collect();
    let mut nearest: Vec<(usize, &str)> = Vec::with_capacity(most + 1);
    for name in among.filter(|name| name.len() <= LONGEST_COMPARED) {
        let other: Vec<char> = name.to_lowercase().chars().collect();
        let distance = edit_distance(&folded, &other);
        if distance > folded.len().max(other.len()).div_ceil(2) {
            continue;
        }
        let place = nearest.partition_point(|(other, _)| *other <= distance);
        nearest.insert(place, (distance, name));
        nearest.truncate(most);
    }
    nearest.into_iter().map(|(_, name)| name).collect()
}

/// The name that a misspelled one most likely means: near enough to be meant, or an abbreviation of it.
pub fn similar_name<'a>(text: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let names: Vec<&str> = among.collect();
    let folded = text.to_lowercase();
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let is_meant = |name: &&str| {
        let (distance, length) = (edit_distance(&letters(text), &letters(name)), folded.chars().count());
        distance <= 1 + length / 4 && distance < length
    };
    if let Some(nearest) = nearest_names(text, names.iter().copied(), 1).into_iter().find(is_meant) {
        return Some(nearest);
    }
    let abbreviates = |short: &str, long: &str| short.chars().count() > 2 && long.starts_with(short);
    let is_short_for = |name: &&str| {
        let name = name.to_lowercase();
        abbreviates(&folded, &name) || abbreviates(&name, &folded)
    };
    names.into_iter().find(is_short_for)
}

/// The least number of inserted, deleted and replaced characters that turn one text into the other.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, left) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances_are_those_of_hand() {
        let of = |a: &str, b: &str| edit_distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        let cases = [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("HVI", "HIV", 2), ("grün", "grun", 1)];
        for (a, b, distance) in cases {
            assert_eq!((of(a, b), of(b, a)), (distance, distance), "{a} {b}");
        }
    }

    #[test]
    fn similar_names_are_near_or_abbreviations() {
        let names = ["publish", "quasi_identifiers", "l"];
        let cases = [
            ("publsh", Some("publish")),
            ("quasi", Some("quasi_identifiers")),
            ("diagnosis", None),
            ("k", None),
            ("L", Some("l")),
        ];
        for (text, similar) in cases {
            assert_eq!(similar_name(text, names.into_iter()), similar, "{text}");
        }
    }

    #[test]
    fn the_nearest_names_come_first_and_long_ones_never() {
        let long = "x".repeat(LONGEST_COMPARED + 1);
        let names = ["births", "Clinic", "clinics", long.as_str(), "cline"];
        assert_eq!(nearest_names("clinic", names.into_iter(), 3), ["Clinic", "clinics", "cline"]);
        assert_eq!(nearest_names("birth", names.into_iter(), 1), ["births"]);
        assert_eq!(nearest_names("birth", names.into_iter(), 0), [""; 0]);
        assert_eq!(nearest_names("hvi", ["flu", "HIV"].into_iter(), 3), ["HIV"]);
        // one of six letters is alike
        assert_eq!(nearest_names("salary", ["county", "zip"].into_iter(), 3), [""; 0]);
        assert_eq!(nearest_names(&long, names.into_iter(), 3), [""; 0]);
    }
}
