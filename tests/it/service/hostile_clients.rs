//! Clients that take places and give nothing: silent ones, those that read nothing, and a tenant that asks for everything.

use std::time::Duration;

use guardian::identity::Preset;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::security::identity::Guarded;
use crate::support::harness::{Client, Server, part_path, text};

/// Long enough for whatever must happen, and shorter than the time that a silent client has.
const PATIENCE: Duration = Duration::from_secs(40);

async fn health(server: &Client) -> u16 {
    tokio::time::timeout(PATIENCE, server.get("/healthz")).await.expect("an answer").status
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_keep_no_client_out() {
    let server = Server::start_with(|config| {
        config.request_limits.max_connections = 4;
        config.request_limits.max_connections_per_address = Some(100);
    })
    .await;
    for beginning in ["", "GET /healthz HTT", "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"] {
        let mut silent = Vec::new();
        for _ in 0..10 {
            let mut connection = TcpStream::connect(server.authority()).await.unwrap();
            connection.write_all(beginning.as_bytes()).await.unwrap();
            silent.push(connection);
        }
        assert_eq!(health(&server).await, 200, "{beginning:?}");
    }
    server.stop().await;
}

async fn connected_from(address: &str, server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    socket.connect(server.authority().parse().unwrap()).await.unwrap()
}

/// Whether a connection is answered; it is kept open.
async fn is_answered(connection: &mut TcpStream) -> bool {
    // a connection that was cut off fails at the one or the other
    if connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.is_err() {
        return false;
    }
    let mut answer = [0; 12];
    connection.read_exact(&mut answer).await.is_ok_and(|_| answer == *b"HTTP/1.1 200")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_share_of_connections() {
    let server = Server::start_with(|config| {
        config.request_limits.max_connections = 40;
        config.request_limits.max_connections_per_address = Some(3);
    })
    .await;
    let mut taken = Vec::new();
    for _ in 0..3 {
        let mut connection = connected_from("127.0.0.1", &server).await;
        assert!(is_answered(&mut connection).await);
        taken.push(connection);
    }
    assert!(!is_answered(&mut connected_from("127.0.0.1", &server).await).await);
    assert!(is_answered(&mut connected_from("127.0.0.2", &server).await).await);
    taken.pop();
    let free = async {
        while !is_answered(&mut connected_from("127.0.0.1", &server).await).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.unwrap();
    server.stop().await;
}

/// A table of which a part is larger than what systems keep for a client that does not read.
fn large() -> String {
    let rows = (0..4000).map(|row| format!("{}{},d{}\n", "x".repeat(4000), row % 20, row / 20 % 5));
    std::iter::once("note,disease\n".to_owned()).chain(rows).collect()
}

fn anatomy() -> Value {
    json!({"method": {"type": "anatomy", "quasi_identifiers": ["note"], "sensitive": "disease",
        "guarantee": {"type": "l_diversity", "l": 2}}})
}

/// A client that asks for a path and reads nothing.
async fn stalled(server: &Client, path: &str, token: Option<&str>) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut connection = socket.connect(server.authority().parse().unwrap()).await.unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    connection.read_exact(&mut head).await.unwrap();
    assert_eq!(head, *b"HTTP/1.1 200");
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_that_are_not_read_end() {
    let server = Server::start_with(|config| {
        config.request_limits.max_downloads = 2;
        config.request_limits.unread_seconds = 1;
    })
    .await;
    let dataset = server.dataset(large()).await;
    let release = server.publish(&dataset, anatomy()).await;
    let path = part_path(&release, "t1", "qi");
    let readers = [stalled(&server, &path, None).await, stalled(&server, &path, None).await];
    let rows = async {
        loop {
            let answer = server.get(&path).await;
            match answer.status {
                200 => return answer.text().lines().count(),
                _ => drop(answer.problem(429, "too-many-requests")),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, rows).await.expect("a place"), 4001);
    drop(readers);
    server.stop().await;
}

/// What comes of an answer that a client takes without a longer pause, but slowly.
async fn taken_slowly(server: &Client, path: &str) -> Vec<u8> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut connection = socket.connect(server.authority().parse().unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let (mut taken, mut piece) = (Vec::new(), vec![0; 32 << 10]);
    // a connection that was cut off may fail
    while let Ok(bytes @ 1..) = connection.read(&mut piece).await {
        taken.extend_from_slice(&piece[..bytes]);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    taken
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_that_are_read_too_slowly_end() {
    let whole = large().len();
    for (min_bytes_per_second, is_whole) in [(1, true), (256 << 20, false)] {
        let server = Server::start_with(|config| {
            config.request_limits.max_downloads = 1;
            config.request_limits.unread_seconds = if is_whole { 60 } else { 1 };
            config.request_limits.min_bytes_per_second = min_bytes_per_second;
            // of bodies nothing is asked here
            config.request_limits.upload_idle_seconds = 86_400;
        })
        .await;
        let dataset = server.dataset(large()).await;
        let path = part_path(&server.publish(&dataset, anatomy()).await, "t1", "qi");
        let taken = taken_slowly(&server, &path).await;
        assert!(taken.starts_with(b"HTTP/1.1 200"));
        // the end of a body in pieces
        assert_eq!(taken.ends_with(b"\r\n0\r\n\r\n"), is_whole, "{} of {whole} bytes", taken.len());
        // the one place is free again
        assert_eq!(server.get(&path).await.status, 200);
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_leaves_places_to_the_others() {
    let guarded = Guarded::start_with(|config| config.request_limits.max_downloads = 2).await;
    let tenants = [guarded.preset(Preset::Admin), guarded.server.with_token(&guarded.unknown_value)];
    let mut paths = Vec::new();
    for tenant in &tenants {
        let dataset = tenant.dataset(large()).await;
        paths.push(part_path(&tenant.publish(&dataset, anatomy()).await, "t1", "qi"));
    }
    let greedy = stalled(&guarded.server, &paths[1], Some(&guarded.unknown_value)).await;
    let problem = tenants[1].get(&paths[1]).await.problem(429, "too-many-requests");
    assert_eq!(problem["limit"], 1, "{problem:#}");
    assert!(text(&problem["detail"]).contains("of one tenant"), "{problem:#}");
    assert_eq!(tenants[0].get(&paths[0]).await.status, 200);
    drop(greedy);
    guarded.server.stop().await;
}

/// A client that begins a request and never ends its body.
async fn unfinished(server: &Client, token: &str) -> TcpStream {
    let mut connection = TcpStream::connect(server.authority()).await.unwrap();
    let head = format!(
        "POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nExpect: 100-continue\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    // the body is asked for: the request has a place
    let mut head = [0; 12];
    connection.read_exact(&mut head).await.unwrap();
    assert_eq!(head, *b"HTTP/1.1 100");
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_requests_of_a_tenant_keep_no_other_out() {
    let guarded = Guarded::start_with(|config| config.request_limits.max_requests = 4).await;
    let (server, other) = (&guarded.server, guarded.server.with_token(&guarded.unknown_value));
    let greedy = [unfinished(server, &guarded.unknown_value).await, unfinished(server, &guarded.unknown_value).await];
    let problem = other.get("/v1/datasets").await.problem(429, "too-many-requests");
    assert_eq!(problem["limit"], 2, "{problem:#}");
    assert!(text(&problem["detail"]).contains("of one tenant"), "{problem:#}");
    guarded.preset(Preset::Admin).get("/v1/datasets").await.ok(200);
    drop(greedy);
    let freed = async { while other.get("/v1/datasets").await.status != 200 {} };
    tokio::time::timeout(PATIENCE, freed).await.expect("a place");
    guarded.server.stop().await;
}
