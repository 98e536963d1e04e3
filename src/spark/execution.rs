//! Executions over Spark Connect, and their responses over as many streams as it takes.
//!
//! A server ends the stream of an execution after some time, two minutes unless it is set. The execution goes on, and another stream
//! gives the rest. So the end of a stream says nothing: an execution is complete when a response says so.
#![expect(clippy::result_large_err, reason = "the error of the client is passed on")]

use std::time::Duration;

use spark_connect_core::{ExecutePlanResponseReattachableIterator, RetryPolicy, SparkConnectClient, SparkError};
use spark_connect_proto::execute_plan_response::ResponseType;
use spark_connect_proto::plan::OpType;
use spark_connect_proto::{ExecutePlanRequest, ExecutePlanResponse, Plan, UserContext};
use tokio::time::{sleep, timeout};

use crate::control::Control;

/// `UNAVAILABLE` and `DEADLINE_EXCEEDED` of gRPC.
pub(super) const LOST: [i32; 2] = [14, 4];
/// `UNKNOWN` and `INTERNAL`: without a class of Spark, a connection that breaks in the middle of a response.
const BROKEN: [i32; 2] = [2, 13];
/// What a server says of an execution that it has not begun.
const NOT_BEGUN: &str = "INVALID_HANDLE.OPERATION_NOT_FOUND";
/// What a server says where it has put another stream in the place of the one that is read.
const REPLACED: &str = "INVALID_CURSOR.DISCONNECTED";
/// The pauses before a connection that broke is tried again, in milliseconds.
const PAUSES: [u64; 5] = [200, 600, 1_800, 5_400, 10_000];
/// The longest wait for a response. Unless it is set otherwise, a server says every two seconds how far an execution is.
pub(super) const SILENCE: Duration = Duration::from_secs(10 * 60);
/// The longest wait for the end of what is no longer wanted.
pub(super) const PARTING: Duration = Duration::from_secs(20);
/// The pause after the end of a stream, in milliseconds.
const END_PAUSE: u64 = 100;

/// Runs a plan to its end; the batches of Arrow that it gives.
///
/// # Errors
/// [`SparkError`]
pub(super) async fn run(
    client: &SparkConnectClient,
    op_type: OpType,
    control: &Control,
) -> Result<Vec<Vec<u8>>, SparkError> {
    let request = ExecutePlanRequest {
        session_id: client.session_id().to_owned(),
        user_context: Some(user(client)),
        plan: Some(Plan { op_type: Some(op_type) }),
        ..ExecutePlanRequest::default()
    };
    let state = ExecutePlanResponseReattachableIterator::new(request);
    let mut execution = Execution { client, state, control };
    let batches = batches(&mut execution).await?;
    // what is not released goes with the session
    let _ = client.release_execute(execution.state.create_release_request(true).await).await;
    Ok(batches)
}

/// How often requests of one answer are tried again: an address that leads nowhere is known after seconds.
pub(super) fn retries() -> RetryPolicy {
    RetryPolicy {
        max_retries: Some(PAUSES.len() as u32 - 1),
        initial_backoff_ms: PAUSES[0],
        backoff_multiplier: 3.0,
        ..RetryPolicy::default()
    }
}

/// An answer of a server, unless it is silent for too long: its machine may be gone.
pub(super) async fn answered<T>(
    longest: Duration,
    answer: impl Future<Output = Result<T, SparkError>>,
) -> Result<T, SparkError> {
    let silent = || SparkError::from_grpc_status(tonic::Status::deadline_exceeded("the server is silent"));
    timeout(longest, answer).await.unwrap_or_else(|_elapsed| Err(silent()))
}

/// The user of a session, by whom a server distinguishes it from others.
pub(super) fn user(client: &SparkConnectClient) -> UserContext {
    UserContext { user_id: client.user_id().unwrap_or_default().to_owned(), ..UserContext::default() }
}

/// An execution, as it is begun and gone on with.
trait Resumable {
    type Stream;

    async fn begin(&mut self) -> Result<Self::Stream, SparkError>;

    /// Another stream, from behind the last response.
    async fn resume(&mut self) -> Result<Self::Stream, SparkError>;

    /// The next response of a stream; `None` where the stream ends.
    async fn next(&mut self, stream: &mut Self::Stream) -> Result<Option<ExecutePlanResponse>, SparkError>;

    async fn pause(&mut self, milliseconds: u64);

    /// Whether no one wants the rest.
    fn is_cancelled(&self) -> bool;
}

struct Execution<'a> {
    client: &'a SparkConnectClient,
    state: ExecutePlanResponseReattachableIterator,
    control: &'a Control,
}

impl Resumable for Execution<'_> {
    type Stream = tonic::Streaming<ExecutePlanResponse>;

    async fn begin(&mut self) -> Result<Self::Stream, SparkError> {
        self.client.execute_plan(self.state.request().clone()).await
    }

    async fn resume(&mut self) -> Result<Self::Stream, SparkError> {
        self.client.reattach_execute(self.state.create_reattach_request().await).await
    }

    async fn next(&mut self, stream: &mut Self::Stream) -> Result<Option<ExecutePlanResponse>, SparkError> {
        let response =
            answered(SILENCE, async { stream.message().await.map_err(SparkError::from_grpc_status) }).await?;
        if let Some(response) = &response {
            self.state.set_last_response_id(response).await;
        }
        Ok(response)
    }

    async fn pause(&mut self, milliseconds: u64) {
        sleep(Duration::from_millis(milliseconds)).await;
    }

    fn is_cancelled(&self) -> bool {
        self.control.check().is_err()
    }
}

/// How the next stream is opened.
#[derive(Clone, Copy)]
enum Opening {
    Begin,
    Resume,
}

/// The next response, of a stream that is opened first where none is open.
async fn answer<E: Resumable>(
    execution: &mut E,
    open: &mut Option<E::Stream>,
    opening: Opening,
) -> Result<Option<ExecutePlanResponse>, SparkError> {
    let stream = match open {
        Some(stream) => stream,
        None => open.insert(match opening {
            Opening::Begin => execution.begin().await?,
            Opening::Resume => execution.resume().await?,
        }),
    };
    execution.next(stream).await
}

/// All batches of an execution, up to the response that completes it.
async fn batches<E: Resumable>(execution: &mut E) -> Result<Vec<Vec<u8>>, SparkError> {
    let (mut batches, mut pauses) = (Vec::new(), PAUSES.iter());
    let (mut opening, mut open, mut has_begun) = (Opening::Begin, None, false);
    loop {
        let pause = match answer(execution, &mut open, opening).await {
            Ok(Some(response)) => {
                (pauses, has_begun) = (PAUSES.iter(), true);
                match response.response_type {
                    Some(ResponseType::ArrowBatch(batch)) => batches.push(batch.data.to_vec()),
                    Some(ResponseType::ResultComplete(_)) => return Ok(batches),
                    _ => {}
                }
                continue;
            }
            Ok(None) => {
                opening = Opening::Resume;
                END_PAUSE
            }
            Err(error) => {
                let class = error.get_error_class();
                let is_unknown = !has_begun && class.as_deref() == Some(NOT_BEGUN);
                let is_lost = |code| LOST.contains(&code) || (class.is_none() && BROKEN.contains(&code));
                let is_lost = error.grpc_code().is_none_or(is_lost);
                let is_replaced = class.as_deref() == Some(REPLACED);
                let comes_back = is_unknown || is_lost || is_replaced;
                let Some(pause) = pauses.next().filter(|_| comes_back) else { return Err(error) };
                opening = if is_unknown { Opening::Begin } else { Opening::Resume };
                *pause
            }
        };
        if execution.is_cancelled() {
            return Err(SparkError::connect_msg("cancelled"));
        }
        open = None;
        execution.pause(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use spark_connect_core::block_on;
    use spark_connect_proto::execute_plan_response::{ArrowBatch, ResultComplete};

    use super::*;

    /// What a stand-in for a server answers.
    enum Answer {
        Batch(u8),
        Complete,
        End,
        Fails(SparkError),
    }

    /// The number of openings after which the caller cancels.
    const MOST_OPENINGS: usize = 20;

    /// An execution whose openings and streams are written down.
    #[derive(Default)]
    struct Script {
        openings: VecDeque<Result<Vec<Answer>, SparkError>>,
        opened: Vec<&'static str>,
        pauses: Vec<u64>,
    }

    impl Script {
        fn open(&mut self, how: &'static str) -> Result<VecDeque<Answer>, SparkError> {
            self.opened.push(how);
            self.openings.pop_front().expect("no further stream was expected").map(VecDeque::from)
        }
    }

    impl Resumable for Script {
        type Stream = VecDeque<Answer>;

        async fn begin(&mut self) -> Result<Self::Stream, SparkError> {
            self.open("begin")
        }

        async fn resume(&mut self) -> Result<Self::Stream, SparkError> {
            self.open("resume")
        }

        async fn next(&mut self, stream: &mut Self::Stream) -> Result<Option<ExecutePlanResponse>, SparkError> {
            let of = |response| Ok(Some(ExecutePlanResponse { response_type: Some(response), ..Default::default() }));
            match stream.pop_front().expect("no further response was expected") {
                Answer::Batch(byte) => {
                    of(ResponseType::ArrowBatch(ArrowBatch { data: vec![byte].into(), ..ArrowBatch::default() }))
                }
                Answer::Complete => of(ResponseType::ResultComplete(ResultComplete::default())),
                Answer::End => Ok(None),
                Answer::Fails(error) => Err(error),
            }
        }

        async fn pause(&mut self, milliseconds: u64) {
            self.pauses.push(milliseconds);
        }

        fn is_cancelled(&self) -> bool {
            self.opened.len() == MOST_OPENINGS
        }
    }

    fn lost() -> SparkError {
        SparkError::from_grpc_status(tonic::Status::unavailable("gone"))
    }

    /// What came of a script, whose openings were all wanted.
    fn ran(openings: Vec<Result<Vec<Answer>, SparkError>>) -> (Option<Vec<Vec<u8>>>, Script) {
        let mut script = Script { openings: openings.into(), ..Script::default() };
        (block_on(batches(&mut script)).ok(), script)
    }

    /// A server ends streams while executions go on: what was half read was taken for all.
    #[test]
    fn the_end_of_a_stream_completes_nothing() {
        let (batches, script) = ran(vec![
            Ok(vec![Answer::Batch(1), Answer::End]),
            Ok(vec![Answer::End]),
            Ok(vec![Answer::Batch(2), Answer::Complete]),
        ]);
        assert_eq!(batches, Some(vec![vec![1], vec![2]]));
        assert_eq!((script.opened, script.pauses), (vec!["begin", "resume", "resume"], vec![END_PAUSE; 2]));
    }

    #[test]
    fn a_broken_connection_is_tried_again_some_times() {
        let (batches, script) =
            ran(vec![Ok(vec![Answer::Batch(1), Answer::Fails(lost())]), Err(lost()), Ok(vec![Answer::Complete])]);
        assert_eq!((batches, script.opened), (Some(vec![vec![1]]), vec!["begin", "resume", "resume"]));
        // as a stream ends that breaks in the middle of a response
        let broken = SparkError::from_grpc_status(tonic::Status::unknown("error reading a body from connection"));
        let (batches, _) = ran(vec![Ok(vec![Answer::Fails(broken)]), Ok(vec![Answer::Complete])]);
        assert_eq!(batches, Some(Vec::new()));
        let (batches, script) = ran((0..PAUSES.len() + 1).map(|_| Err(lost())).collect());
        assert_eq!((batches, script.pauses, script.openings.len()), (None, PAUSES.to_vec(), 0));
    }

    #[test]
    fn a_server_that_ends_every_stream_is_left_on_cancellation() {
        let (batches, script) = ran((0..2 * MOST_OPENINGS).map(|_| Ok(vec![Answer::End])).collect());
        assert_eq!((batches, script.openings.len()), (None, MOST_OPENINGS));
    }

    #[test]
    fn an_error_of_the_engine_ends_an_execution() {
        let failed = SparkError::from_grpc_status(tonic::Status::unauthenticated("another token"));
        let (batches, script) = ran(vec![Ok(vec![Answer::Batch(1), Answer::Fails(failed)]), Ok(Vec::new())]);
        assert_eq!((batches, script.opened, script.openings.len()), (None, vec!["begin"], 1));
    }
}
