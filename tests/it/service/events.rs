//! Server-sent events of a job: they rise, end, and can be resumed.

use serde_json::{Value, json};

use crate::support::harness::{HOSPITAL, Server, hospital_method, text};

struct Event {
    name: String,
    id: u64,
    job: Value,
}

/// The whole stream: it ends by itself after the job has ended.
async fn events(server: &Server, path: &str, last: Option<u64>) -> Vec<Event> {
    let mut request = server.request(reqwest::Method::GET, path);
    if let Some(last) = last {
        request = request.header("Last-Event-ID", last.to_string());
    }
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let body = answer.text().await.unwrap();
    let member = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {event}")).trim().to_owned()
    };
    let event = |event: &str| Event {
        name: member(event, "event:"),
        id: member(event, "id:").parse().unwrap(),
        job: serde_json::from_str(&member(event, "data:")).unwrap(),
    };
    body.split("\n\n").filter(|event| event.contains("data:")).map(event).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_rise_to_the_end_and_resume() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let job = server.post("/v1/jobs", &json!({"dataset": dataset, "method": hospital_method()})).await.ok(202);
    let path = text(&job["links"]["events"]);

    let seen = events(&server, &path, None).await;
    assert!(seen.windows(2).all(|pair| pair[0].id < pair[1].id), "ids rise");
    assert_eq!(seen[0].name, "status");
    let last = seen.last().unwrap();
    assert_eq!((last.name.as_str(), &last.job["status"]), ("status", &json!("succeeded")));
    assert_eq!(last.job["id"], job["id"]);

    let before_the_end = events(&server, &path, Some(last.id - 1)).await;
    assert_eq!(before_the_end.len(), 1);
    assert_eq!(before_the_end[0].id, last.id);
    assert!(events(&server, &path, Some(last.id)).await.is_empty(), "no event comes twice");

    server.get("/v1/jobs/018f0000-0000-7000-8000-000000000000/events").await.problem(404, "not-found");
    let foreign = server.request(reqwest::Method::GET, &path).header("Last-Event-ID", "x");
    server.send(foreign).await.problem(400, "malformed-request");
    server.stop().await;
}
