//! Traces for a collector (OTLP over HTTP): spans of requests, jobs and phases, without log lines.

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Status, TraceContextExt, TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// Sends spans in batches on a separate thread.
pub(super) fn provider(collector: &str) -> Result<SdkTracerProvider, String> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", collector.trim_end_matches('/')))
        .build()
        .map_err(|error| format!("the exporter of traces cannot start: {error}"))?;
    let resource = Resource::builder()
        .with_service_name("guardian")
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Filters this program's spans, without their log lines.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S> {
    let own = |metadata: &Metadata<'_>| metadata.is_span() && metadata.target().starts_with(env!("CARGO_CRATE_NAME"));
    let layer: OpenTelemetryLayer<S, Tracer> = tracing_opentelemetry::layer().with_tracer(provider.tracer("guardian"));
    layer
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(own))
}

/// The headers of W3C Trace Context.
struct TraceHeaders<'h> {
    traceparent: Option<&'h str>,
    tracestate: Option<&'h str>,
}

impl Extractor for TraceHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.traceparent,
            "tracestate" => self.tracestate,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// Attaches a new span to the caller's trace, if any, and names it; no effect without a collector.
pub fn continue_trace(span: &Span, name: &str, traceparent: Option<&str>, tracestate: Option<&str>) {
    let parent = TraceContextPropagator::new().extract(&TraceHeaders { traceparent, tracestate });
    if span.set_parent(parent).is_ok() {
        span.context().span().update_name(name.to_owned());
    }
}

/// Records the status of the answer on a request's span.
pub fn note_status(span: &Span, status: u16) {
    span.set_attribute("http.response.status_code", i64::from(status));
    if status >= 500 {
        span.set_status(Status::error(""));
    }
}
