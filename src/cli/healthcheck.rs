//! `guardian healthcheck`: checks the readiness of a service, without another program in its container.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use axum::http::Uri;
use clap::Args;

use super::exit::CommandOutcome;

/// The service to check.
#[derive(Args)]
pub struct HealthcheckArguments {
    /// The URL of the service with its path prefix, or the address of --metrics-listen
    #[arg(long, env = "GUARDIAN_HEALTHCHECK_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Seconds to wait for each step of an answer
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
}

pub(super) fn run(arguments: &HealthcheckArguments) -> Result<CommandOutcome, CommandOutcome> {
    let usage = || CommandOutcome::Usage("--url must be http://HOST:PORT with an optional path prefix".to_owned());
    let uri: Uri = arguments.url.parse().map_err(|_| usage())?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(usage)?;
    if uri.scheme_str() != Some("http") || uri.query().is_some() {
        return Err(usage());
    }
    let host = authority.host().trim_matches(['[', ']']);
    let port = authority.port_u16().unwrap_or(80);
    let path = format!("{}/readyz", uri.path().trim_end_matches('/'));
    let addresses = (host, port).to_socket_addrs();
    let asked = addresses
        .and_then(|addresses| ask(addresses, authority.as_str(), &path, Duration::from_secs(arguments.timeout)));
    match asked.map_err(|error| CommandOutcome::NotReady(format!("{authority} does not answer: {error}")))? {
        200 => Ok(CommandOutcome::Done),
        status => Err(CommandOutcome::NotReady(format!("{authority} is not ready: status {status}"))),
    }
}

/// Requests `path` and returns the status of the answer.
fn ask(
    addresses: impl Iterator<Item = SocketAddr>,
    authority: &str,
    path: &str,
    patience: Duration,
) -> io::Result<u16> {
    let mut connected = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        connected = TcpStream::connect_timeout(&address, patience);
        if connected.is_ok() {
            break;
        }
    }
    let mut stream = connected?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")?;
    // the first bytes contain the status: `HTTP/1.1 200 OK`
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    let status = std::str::from_utf8(&head).ok().filter(|head| head.starts_with("HTTP/1."));
    let status = status.and_then(|head| head.get(9..)?.parse().ok());
    status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
}
