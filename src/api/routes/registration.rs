//! Registrations of tables whose rows stay in another engine.

use tokio::runtime::Handle;
use uuid::Uuid;

use super::upload::{AcceptedUpload, UploadHeaders, admit, csv_alone};
use crate::api::http::app::App;
use crate::app::{AppService, IdempotencyClaim, IdempotencyOutcome, Upload, UploadRequest, run_blocking};
use crate::control::Control;
use crate::identity::Caller;
use crate::microdata::formats::InputFormat;
use crate::ports::{DatasetRecord, IdempotencyRecord};
use crate::problem::{Kind, Problem};

/// Registers a table, as long as an upload may take and the caller waits.
///
/// # Errors
/// `source-refused`, `source-unreadable`, or as of an upload.
pub(super) async fn register(
    app: &App,
    caller: Caller,
    mut announced: UploadHeaders,
    query: Option<String>,
) -> Result<DatasetRecord, Problem> {
    announced.request.format = InputFormat::Parquet;
    csv_alone(&announced.request, InputFormat::Parquet)?;
    if let Some(place) = &announced.request.place {
        app.service.engines.find(&caller.tenant, place)?;
    }
    let (admitted, _) = admit(app, caller, announced, query.unwrap_or_default()).await?;
    let service = app.service.clone();
    let (AcceptedUpload { caller, request, query, permit, begun }, handle) = (admitted, Handle::current());
    let registration = Registration { service, caller, handle, query };
    let registered = run_blocking("the registration", move |control| {
        let _permit = permit;
        registration.run(request, begun, control)
    });
    let too_slow = |_elapsed| {
        let detail = "the engine is too slow; try again later, or let the operator raise --max-upload-seconds";
        Problem::new(Kind::SourceUnreadable, detail).with("reason", "too_slow")
    };
    tokio::time::timeout(app.bounds.upload, registered).await.map_err(too_slow)??
}

/// A registration on a blocking thread.
struct Registration {
    service: AppService,
    caller: Caller,
    handle: Handle,
    query: String,
}

impl Registration {
    fn run(
        &self,
        request: UploadRequest,
        begun: Option<IdempotencyOutcome>,
        control: &Control,
    ) -> Result<DatasetRecord, Problem> {
        match begun {
            None => self.register(request, Uuid::now_v7(), control),
            Some(IdempotencyOutcome::First(claim)) => self.claimed(request, claim, control),
            Some(IdempotencyOutcome::Repeat(first)) => self.repeated(&request, &first),
        }
    }

    fn register(&self, request: UploadRequest, id: Uuid, control: &Control) -> Result<DatasetRecord, Problem> {
        let upload = Upload { service: &self.service, caller: &self.caller, handle: &self.handle, id };
        upload.register(request, control)
    }

    /// Registers under an idempotency key, and releases it after a failure.
    fn claimed(
        &self,
        request: UploadRequest,
        claim: IdempotencyClaim,
        control: &Control,
    ) -> Result<DatasetRecord, Problem> {
        let noted = self.handle.block_on(claim.record_content(&self.hash(&request)));
        let registered = noted.and_then(|()| self.register(request, claim.resource(), control));
        if registered.is_err() {
            self.handle.block_on(claim.give_up());
        }
        registered
    }

    /// The dataset of the first request, if this one is equal.
    fn repeated(&self, request: &UploadRequest, first: &IdempotencyRecord) -> Result<DatasetRecord, Problem> {
        first.check_content(&self.hash(request))?;
        let dataset = self.handle.block_on(self.service.store.dataset(&self.caller.tenant, first.resource));
        dataset?.ok_or_else(|| Problem::new(Kind::NotFound, "the dataset does not exist"))
    }

    fn hash(&self, request: &UploadRequest) -> [u8; 32] {
        let place = request.place.as_ref();
        let [engine, table] =
            [place.map_or("", |place| place.engine.as_str()), place.map_or("", |place| place.table.as_str())];
        let pieces = [self.query.as_bytes(), b"table of an engine", engine.as_bytes(), table.as_bytes()];
        self.service.request_hash(&self.caller, &pieces)
    }
}
