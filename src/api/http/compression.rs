//! Compression of answers (RFC 9110, section 12.5.3).

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

/// Media types of text. Parquet, Arrow and archives are compressed already, and events must not wait in a buffer.
const TEXTS: [&str; 8] = [
    "application/json",
    "application/problem+json",
    "application/x-ndjson",
    "text/csv",
    "text/css",
    "text/html",
    "text/javascript",
    "image/svg+xml",
];

/// Codings in the order of preference.
const CODINGS: [&str; 2] = ["zstd", "gzip"];

/// The least length that is compressed, in bytes.
const MIN_BYTES: u64 = 1024;

/// Compresses text, fast rather than small: an answer is compressed each time it is sent.
pub(in crate::api) fn layer() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(MIN_BYTES).and(is_compressible))
}

fn is_compressible(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    TEXTS.contains(&media_type.split(';').next().unwrap_or_default().trim())
}

/// Leaves at most one coding in the request, that of the answer. An answer that no coding suits comes as it is.
///
/// Ranges are of the bytes as they are, and HEAD gives their number. The tag of compressed content is weak: its bytes may change with
/// the compressor.
pub(in crate::api) async fn choose_coding(mut request: Request, next: Next) -> Response {
    let is_whole = request.method() != Method::HEAD && !request.headers().contains_key(header::RANGE);
    let coding = chosen(request.headers()).filter(|_| is_whole);
    request.headers_mut().remove(header::ACCEPT_ENCODING);
    if let Some(coding) = coding {
        request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static(coding));
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if headers.contains_key(header::CONTENT_ENCODING)
        && let Some(strong) = headers.get(header::ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"))
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", strong.as_bytes()].concat())
    {
        headers.insert(header::ETAG, weak);
    }
    response
}

/// The coding of the highest weight; the first of equal ones. `None` where the client names none of them.
fn chosen(headers: &HeaderMap) -> Option<&'static str> {
    let named: Vec<(String, u32)> = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|member| {
            let (name, parameter) = member.split_once(';').unwrap_or((member, "q=1"));
            let weight = parameter.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()).unwrap_or(0.0);
            (name.trim().to_ascii_lowercase(), (weight.clamp(0.0, 1.0) * 1000.0) as u32)
        })
        .collect();
    let of = |name: &str| named.iter().find(|(known, _)| known == name).map(|&(_, weight)| weight);
    let weighed = CODINGS.map(|coding| (coding, of(coding).or_else(|| of("*")).unwrap_or(0)));
    let identity = of("identity").unwrap_or(0);
    let (coding, weight) = weighed.into_iter().rev().max_by_key(|&(_, weight)| weight)?;
    (weight > 0 && weight >= identity).then_some(coding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coding_is_that_of_the_highest_weight() {
        for (accepted, coding) in [
            ("", None),
            ("gzip", Some("gzip")),
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("GZIP;q=0.8, zstd; q=0.5", Some("gzip")),
            ("zstd;q=0, *", Some("gzip")),
            ("*", Some("zstd")),
            ("*;q=0", None),
            ("identity;q=0", None),
            ("identity, gzip;q=0.5", None),
            ("br, gzip;q=none", None),
            ("gzip;q=7, zstd;q=-1", Some("gzip")),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
            assert_eq!(chosen(&headers), coding, "{accepted}");
        }
        assert_eq!(chosen(&HeaderMap::new()), None);
    }
}
