//! What the presets of keys suffice for.

use guardian::identity::Preset;
use serde_json::json;

use crate::security::identity::Guarded;
use crate::support::harness::{Client, HOSPITAL, hospital_method};

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_sees_what_its_own_tables_say() {
    let guarded = Guarded::start().await;
    let (pipeline, admin) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Admin));
    let foreign = admin.newcomers(HOSPITAL).await;
    let own = pipeline.newcomers(HOSPITAL).await;
    let looks = async |client: &Client, dataset: &str| {
        let path = format!("/v1/datasets/{dataset}");
        let document = json!({"dataset": dataset, "unlisted": "drop", "method": hospital_method()});
        vec![
            client.get(&format!("{path}/profile")).await,
            client.get(&format!("{path}/attributes/race/values")).await,
            client.post(&format!("{path}/suggestion"), &json!({})).await,
            client.post("/v1/plans", &document).await,
        ]
    };
    for answer in looks(&pipeline, &own).await {
        answer.ok(200);
    }
    for answer in looks(&pipeline, &foreign).await {
        assert_eq!(answer.problem(403, "forbidden")["scope"], "datasets:inspect");
    }
    for answer in looks(&guarded.preset(Preset::Officer), &own).await {
        answer.ok(200);
    }
    // what a table is shows nothing of what it says
    assert_eq!(pipeline.get(&format!("/v1/datasets/{foreign}")).await.ok(200)["id"], foreign);
    assert_eq!(guarded.preset(Preset::Officer).items("/v1/datasets").await.len(), 2);
    guarded.server.stop().await;
}
