//! The first quarter of an hour in a browser: a person uploads a table, plans, submits and reads, in Swagger UI.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::browser::Driver;
use crate::support::harness::{Server, text};

/// An operation of the page, opened for a request.
async fn opened<'a>(driver: &'a Driver, operation: &str) -> Operation<'a> {
    let block = format!("[id=\"operations-{operation}\"]");
    driver.click(&format!("{block} .opblock-summary-control")).await;
    driver.click(&format!("{block} .try-out__btn")).await;
    Operation { driver, block }
}

struct Operation<'a> {
    driver: &'a Driver,
    block: String,
}

impl Operation<'_> {
    /// The status of the answer and its document.
    async fn execute(&self) -> (String, Value) {
        self.driver.click(&format!("{} .execute", self.block)).await;
        let table = format!("{} .live-responses-table", self.block);
        let status = self.driver.shown(&format!("{table} tr.response .response-col_status")).await;
        let status = status.split_whitespace().find(|word| word.parse::<u16>().is_ok()).unwrap_or_default().to_owned();
        let body =
            self.driver.shown(&format!("{table} tr.response .response-col_description .highlight-code code")).await;
        (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
    }

    /// The document that the page proposes as the body.
    async fn proposed(&self) -> Value {
        let area = format!("{} textarea.body-param__text", self.block);
        self.driver.shown(&area).await;
        let proposed = self.driver.value(&format!("document.querySelector(`{area}`).value")).await;
        serde_json::from_str(&text(&proposed)).unwrap()
    }

    async fn send(&self, document: &Value) -> (String, Value) {
        self.driver.paste(&format!("{} textarea.body-param__text", self.block), &document.to_string()).await;
        self.execute().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_published_by_clicks_alone() {
    let Some(driver) = Driver::open().await else { return };
    let server = Server::start().await;
    let base = format!("http://{}", server.authority());
    driver.visit(&format!("{base}/docs/")).await;

    // nothing is chosen but the file
    let upload = opened(&driver, "datasets-upload_dataset").await;
    let csv = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/hospital.csv");
    driver.enter(&format!("{} input[type=file]", upload.block), csv.to_str().unwrap()).await;
    let (status, dataset) = upload.execute().await;
    assert_eq!((status.as_str(), &dataset["rows"]), ("201", &json!(6)), "{dataset:#}");

    let plan = opened(&driver, "plans-plan_job").await;
    let mut document = plan.proposed().await;
    document["dataset"] = dataset["id"].clone();
    let (status, planned) = plan.send(&document).await;
    assert_eq!((status.as_str(), &planned["feasible"]), ("200", &json!(true)), "{planned:#}");

    // what a person tries out is held, and a second, different job is not taken for the first
    let job = opened(&driver, "jobs-submit_job").await;
    let mut document = job.proposed().await;
    document["dataset"] = dataset["id"].clone();
    assert_eq!(document["hold"], true, "{document:#}");
    let (status, first) = job.send(&document).await;
    assert!(status.starts_with('2'), "{status}: {first:#}");
    document["hold"] = json!(false);
    let again = opened_again(&driver, &job).await;
    let (status, second) = again.send(&document).await;
    assert!(status.starts_with('2') && second["id"] != first["id"], "{status}: {second:#}");

    let ended = server.get(&format!("/v1/jobs/{}?wait=30", text(&second["id"]))).await.ok(200);
    let address = format!("{base}/v1/releases/{}/report?format=html", text(&ended["release"]));
    driver.visit(&address).await;
    assert!(driver.shown("h2").await.contains("What is promised"));
    // the policy admits the style sheet of the page
    assert_eq!(driver.value("getComputedStyle(document.querySelector('h2')).borderTopWidth").await, json!("2px"));
    let drawings = driver.value("document.querySelectorAll('svg').length").await;
    assert!(drawings.as_u64().unwrap() >= 3, "{drawings}");
    driver.close().await;
    server.stop().await;
}

/// The same operation for another request, without its last answer.
async fn opened_again<'a>(driver: &'a Driver, operation: &Operation<'a>) -> Operation<'a> {
    driver.click(&format!("{} .btn-clear", operation.block)).await;
    Operation { driver, block: operation.block.clone() }
}
