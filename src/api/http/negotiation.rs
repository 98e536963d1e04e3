//! Content negotiation between several formats.

use axum::http::{HeaderMap, header};

/// A format: its name as a parameter, its media type and its value.
pub(in crate::api) type MediaOffer<T> = (&'static str, &'static str, T);

/// The requested format: by the parameter, otherwise by the `Accept` header, otherwise the first.
///
/// A media range selects the first format that it contains. `None` if no format matches.
pub(in crate::api) fn negotiate<T: Copy>(
    offers: &[MediaOffer<T>],
    parameter: Option<&str>,
    headers: &HeaderMap,
) -> Option<MediaOffer<T>> {
    if let Some(parameter) = parameter {
        return offers.iter().find(|(name, ..)| *name == parameter).copied();
    }
    let Some(accept) = headers.get(header::ACCEPT) else { return offers.first().copied() };
    let accept = accept.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut best = None;
    for range in accept.split(',') {
        let mut members = range.split(';').map(str::trim);
        let named = members.next().unwrap_or_default();
        let wanted = |media_type: &str| match named.strip_suffix('*') {
            Some("*/") => true,
            Some(beginning) => beginning.ends_with('/') && media_type.starts_with(beginning),
            None => media_type == named,
        };
        let Some(offer) = offers.iter().find(|(_, media_type, _)| wanted(media_type)) else { continue };
        let weight = members.find_map(|member| member.strip_prefix("q=")).and_then(|q| q.parse::<f32>().ok());
        let weight = (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32;
        if weight > 0 && best.is_none_or(|(other, _)| weight > other) {
            best = Some((weight, *offer));
        }
    }
    best.map(|(_, offer)| offer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_precedes_header_and_weight_precedes_order() {
        const OFFERS: [MediaOffer<u8>; 3] =
            [("csv", "text/csv", 0), ("json", "application/json", 1), ("html", "text/html", 2)];
        let negotiated = |parameter, accept: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, accept.parse().unwrap());
            }
            negotiate(&OFFERS, parameter, &headers).map(|(.., format)| format)
        };
        assert_eq!(negotiated(None, None), Some(0));
        assert_eq!(negotiated(Some("json"), Some("text/html")), Some(1));
        assert_eq!(negotiated(Some("xml"), Some("*/*")), None);
        assert_eq!(negotiated(None, Some("text/html, application/xhtml+xml, */*;q=0.8")), Some(2));
        assert_eq!(negotiated(None, Some("*/*;q=0.1, Application/*")), Some(1));
        assert_eq!(negotiated(None, Some("text/*")), Some(0));
        assert_eq!(negotiated(None, Some("text/html;q=0, image/png, text*")), None);
    }
}
