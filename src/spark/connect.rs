//! A session over Spark Connect, by the client of the Spark project.

use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use spark_connect_core::{ChannelBuilder, SparkConnectClient, SparkError, block_on};
use spark_connect_proto::analyze_plan_request::{Analyze, Schema, SparkVersion};
use spark_connect_proto::analyze_plan_response::Result as Analyzed;
use spark_connect_proto::command::CommandType;
use spark_connect_proto::data_type::Kind;
use spark_connect_proto::plan::OpType;
use spark_connect_proto::relation::RelType;
use spark_connect_proto::write_operation::{SaveMode, SaveType};
use spark_connect_proto::{
    AnalyzePlanRequest, Command, CreateDataFrameViewCommand, Plan, Relation, Sql, WriteOperation,
};

use super::encryption::EngineEncryption;
use super::execution::{self, LOST, PARTING, SILENCE, answered};
use super::kinds::SqlKind;
use super::relation::SqlValue;
use super::session::SqlSession;
use super::statements::FILE;
use crate::control::Control;
use crate::engine::RemoteError;

/// Settings of a session: statements mean the same whatever the cluster has set.
const SETTINGS: [(&str, &str); 9] = [
    ("spark.sql.ansi.enabled", "true"),
    ("spark.sql.caseSensitive", "true"),
    ("spark.sql.files.maxRecordsPerFile", "0"),
    ("spark.sql.parquet.compression.codec", "zstd"),
    ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"),
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.sources.partitionColumnTypeInference.enabled", "false"),
    ("spark.sql.sources.partitionOverwriteMode", "static"),
    ("spark.sql.variable.substitute", "false"),
];

/// How often a running statement looks whether the caller has cancelled it.
const LOOK: Duration = Duration::from_millis(200);

/// A session of Spark.
pub struct ConnectSession {
    client: SparkConnectClient,
    control: Control,
}

impl ConnectSession {
    /// Connects to `sc://HOST:PORT`, and makes the settings of statements.
    ///
    /// # Errors
    /// [`RemoteError`], also where the engine does not encrypt what it must.
    pub fn connect(url: &str, encryption: EngineEncryption, control: &Control) -> Result<Self, RemoteError> {
        let builder = ChannelBuilder::parse(url).map_err(named)?;
        let mut client = block_on(SparkConnectClient::connect(&builder)).map_err(named)?;
        client.set_retry_policy(execution::retries());
        let session = Self { client, control: control.clone() };
        session.run(async |client| {
            if encryption == EngineEncryption::Required {
                let asked = EngineEncryption::SETTINGS.map(|name| (name, Some("false")));
                let set = answered(SILENCE, client.get_config_with_defaults(&asked)).await.map_err(named)?;
                EngineEncryption::check(&set)?;
            }
            for (name, value) in SETTINGS {
                answered(SILENCE, client.set_config(name, value)).await.map_err(named)?;
            }
            let set = answered(SILENCE, client.get_configs(&SETTINGS.map(|(name, _)| name))).await.map_err(named)?;
            match SETTINGS.iter().zip(&set).find(|((_, value), set)| set.as_deref() != Some(value)) {
                None => Ok(()),
                Some(((name, _), _)) => {
                    Err(RemoteError::Failed(format!("the engine does not take the setting {name}")))
                }
            }
        })?;
        Ok(session)
    }

    /// Runs a statement, and has it interrupted where the caller cancels.
    fn run<T: Send>(
        &self,
        run: impl AsyncFnOnce(&SparkConnectClient) -> Result<T, RemoteError> + Send,
    ) -> Result<T, RemoteError> {
        self.control.check().map_err(|_| RemoteError::Cancelled)?;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            scope.spawn(move || sender.send(block_on(run(&self.client))));
            let mut interrupted = false;
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(_) if interrupted || self.control.check().is_err() => return Err(RemoteError::Cancelled),
                    Ok(result) => return result,
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(RemoteError::Failed("a statement ended without an answer".to_owned()));
                    }
                    Err(RecvTimeoutError::Timeout) if !interrupted && self.control.check().is_err() => {
                        // what cannot be interrupted ends by itself
                        let _ = block_on(answered(PARTING, self.client.interrupt_all()));
                        interrupted = true;
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
        })
    }

    /// Runs a plan to its end; the batches of Arrow that it gives.
    fn execute(&self, plan: OpType) -> Result<Vec<Vec<u8>>, RemoteError> {
        self.run(async |client| execution::run(client, plan, &self.control).await.map_err(named))
    }

    fn command(&self, command: CommandType) -> Result<(), RemoteError> {
        self.execute(OpType::Command(Command { command_type: Some(command) })).map(drop)
    }

    fn analyze(&self, analyze: Analyze) -> Result<Option<Analyzed>, RemoteError> {
        self.run(async |client| {
            let request = AnalyzePlanRequest {
                session_id: client.session_id().to_owned(),
                user_context: Some(execution::user(client)),
                analyze: Some(analyze),
                ..AnalyzePlanRequest::default()
            };
            Ok(answered(SILENCE, client.analyze_plan(request)).await.map_err(named)?.result)
        })
    }
}

/// The rows of a query.
fn relation(sql: &str) -> Relation {
    let sql = Sql { query: sql.to_owned(), ..Sql::default() };
    Relation { rel_type: Some(RelType::Sql(sql)), ..Relation::default() }
}

impl Drop for ConnectSession {
    fn drop(&mut self) {
        // views of keys end with the session
        let _ = block_on(answered(PARTING, self.client.release_session()));
    }
}

/// An error by its class and state: its message can quote values.
#[expect(clippy::needless_pass_by_value, reason = "the form of map_err")]
fn named(error: SparkError) -> RemoteError {
    let class = error.get_error_class();
    let state = error.get_sql_state().map_or_else(String::new, |state| format!(", SQLSTATE {state}"));
    match (error.grpc_code(), class) {
        // an error of Spark has a class; without one the connection broke, as with a driver that dies
        (Some(code), class) if class.is_none() || LOST.contains(&code) => {
            RemoteError::Unavailable(broken_connection(code))
        }
        (_, Some(class)) => RemoteError::Failed(format!("{class}{state}")),
        (_, None) => RemoteError::Unavailable("the connection broke".to_owned()),
    }
}

/// What a code of gRPC says where the engine says nothing.
fn broken_connection(code: i32) -> String {
    match code {
        4 => "it does not answer in time".to_owned(),
        7 | 16 => "it does not accept the token".to_owned(),
        14 => "nothing answers at its address, or with a certificate that this machine does not accept".to_owned(),
        other => format!("the connection broke with code {other} of gRPC"),
    }
}

/// The type of a column, if it is offered.
fn kind_of(kind: Kind) -> Option<SqlKind> {
    match kind {
        Kind::Byte(_) | Kind::Short(_) | Kind::Integer(_) | Kind::Long(_) => Some(SqlKind::Integer),
        Kind::Decimal(of) => {
            Some(SqlKind::Decimal { digits: of.precision?.try_into().ok()?, scale: of.scale?.try_into().ok()? })
        }
        Kind::String(_) | Kind::Char(_) | Kind::VarChar(_) => Some(SqlKind::Text),
        Kind::Boolean(_) => Some(SqlKind::Boolean),
        Kind::Date(_) => Some(SqlKind::Date),
        Kind::Timestamp(_) => Some(SqlKind::Timestamp),
        Kind::TimestampNtz(_) => Some(SqlKind::LocalTimestamp),
        _ => None,
    }
}

/// The cells of a column of integers or texts; `None` of another type.
fn cells(column: &dyn Array) -> Option<Vec<SqlValue>> {
    let integer = |value: Option<i64>| value.map_or(SqlValue::Null, SqlValue::Integer);
    let text = |value: Option<&str>| value.map_or(SqlValue::Null, |text| SqlValue::Text(text.to_owned()));
    Some(match column.data_type() {
        DataType::Null => vec![SqlValue::Null; column.len()],
        DataType::Utf8 => column.as_string::<i32>().iter().map(text).collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().map(text).collect(),
        DataType::Int8 => column.as_primitive::<Int8Type>().iter().map(|of| integer(of.map(i64::from))).collect(),
        DataType::Int16 => column.as_primitive::<Int16Type>().iter().map(|of| integer(of.map(i64::from))).collect(),
        DataType::Int32 => column.as_primitive::<Int32Type>().iter().map(|of| integer(of.map(i64::from))).collect(),
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().map(integer).collect(),
        _ => return None,
    })
}

/// Adds the rows of a batch.
fn received(batch: &RecordBatch, rows: &mut Vec<Vec<SqlValue>>) -> Result<(), RemoteError> {
    let columns: Option<Vec<Vec<SqlValue>>> = batch.columns().iter().map(|column| cells(column)).collect();
    let other = || RemoteError::Failed("a value of another type than was asked for".to_owned());
    let mut columns: Vec<_> = columns.ok_or_else(other)?.into_iter().map(Vec::into_iter).collect();
    rows.extend((0..batch.num_rows()).map(|_| columns.iter_mut().filter_map(Iterator::next).collect()));
    Ok(())
}

impl SqlSession for ConnectSession {
    fn schema(&mut self, sql: &str) -> Result<Vec<(String, Option<SqlKind>)>, RemoteError> {
        let plan = Some(Plan { op_type: Some(OpType::Root(relation(sql))) });
        let found = match self.analyze(Analyze::Schema(Schema { plan }))? {
            Some(Analyzed::Schema(found)) => found.schema.and_then(|schema| schema.kind),
            _ => None,
        };
        match found {
            Some(Kind::Struct(of)) => {
                let kind = |kind: Option<spark_connect_proto::DataType>| kind.and_then(|of| of.kind).and_then(kind_of);
                Ok(of.fields.into_iter().map(|field| (field.name, kind(field.data_type))).collect())
            }
            _ => Err(RemoteError::Failed("a table without columns".to_owned())),
        }
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<SqlValue>>, RemoteError> {
        let failed = |_: arrow_schema::ArrowError| RemoteError::Failed("a batch of rows that is none".to_owned());
        let mut rows = Vec::new();
        for batch in self.execute(OpType::Root(relation(sql)))? {
            for batch in StreamReader::try_new(batch.as_slice(), None).map_err(failed)? {
                received(&batch.map_err(failed)?, &mut rows)?;
            }
        }
        Ok(rows)
    }

    fn view(&mut self, name: &str, sql: &str) -> Result<(), RemoteError> {
        self.command(CommandType::CreateDataframeView(CreateDataFrameViewCommand {
            input: Some(relation(sql)),
            name: name.to_owned(),
            is_global: false,
            replace: true,
        }))
    }

    fn write(&mut self, sql: &str, folder: &str, by_file: bool) -> Result<(), RemoteError> {
        let partitioning_columns = if by_file { vec![FILE.to_owned()] } else { Vec::new() };
        self.command(CommandType::WriteOperation(WriteOperation {
            input: Some(relation(sql)),
            source: Some("parquet".to_owned()),
            mode: SaveMode::ErrorIfExists.into(),
            partitioning_columns,
            save_type: Some(SaveType::Path(folder.to_owned())),
            ..WriteOperation::default()
        }))
    }

    fn version(&mut self) -> Result<String, RemoteError> {
        match self.analyze(Analyze::SparkVersion(SparkVersion::default()))? {
            Some(Analyzed::SparkVersion(of)) => Ok(of.version),
            _ => Err(RemoteError::Failed("the engine does not say its version".to_owned())),
        }
    }
}
