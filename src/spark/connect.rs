//! A session over Spark Connect, by the client of the Spark project.

use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use spark_connect::row::Value;
use spark_connect::{DataFrame, DataType, SparkError, SparkSession};

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

/// `UNAVAILABLE` and `DEADLINE_EXCEEDED` of gRPC.
const LOST: [i32; 2] = [14, 4];

/// A session of Spark.
pub struct ConnectSession {
    spark: SparkSession,
    control: Control,
}

impl ConnectSession {
    /// Connects to `sc://HOST:PORT`, and makes the settings of statements.
    ///
    /// # Errors
    /// [`RemoteError`]
    pub fn connect(url: &str, control: &Control) -> Result<Self, RemoteError> {
        let spark = SparkSession::builder().remote(url).get_or_create().map_err(named)?;
        let session = Self { spark, control: control.clone() };
        for (name, value) in SETTINGS {
            session.spark.conf().set(name, value).map_err(named)?;
            let set = session.spark.conf().get(name).map_err(named)?;
            if set.as_deref() != Some(value) {
                return Err(RemoteError::Failed(format!("the engine does not take the setting {name}")));
            }
        }
        Ok(session)
    }

    /// Runs a statement, and has it interrupted where the caller cancels.
    fn run<T: Send>(&self, run: impl FnOnce(&SparkSession) -> Result<T, RemoteError> + Send) -> Result<T, RemoteError> {
        self.control.check().map_err(|_| RemoteError::Cancelled)?;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let spark = self.spark.clone();
            scope.spawn(move || sender.send(run(&spark)));
            let mut interrupted = false;
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(_) if interrupted => return Err(RemoteError::Cancelled),
                    Ok(result) => return result,
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(RemoteError::Failed("a statement ended without an answer".to_owned()));
                    }
                    Err(RecvTimeoutError::Timeout) if !interrupted && self.control.check().is_err() => {
                        // what cannot be interrupted ends by itself
                        let _ = self.spark.interrupt_all();
                        interrupted = true;
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
        })
    }

    fn frame<T: Send>(
        &self,
        sql: &str,
        run: impl FnOnce(DataFrame) -> Result<T, RemoteError> + Send,
    ) -> Result<T, RemoteError> {
        self.run(|spark| run(spark.sql(sql).map_err(named)?))
    }
}

impl Drop for ConnectSession {
    fn drop(&mut self) {
        // views of keys end with the session
        let _ = self.spark.stop();
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
            RemoteError::Unavailable(format!("gRPC code {code}"))
        }
        (_, Some(class)) => RemoteError::Failed(format!("{class}{state}")),
        (_, None) => RemoteError::Unavailable("the connection broke".to_owned()),
    }
}

fn kind_of(of: &DataType) -> Option<SqlKind> {
    match *of {
        DataType::Byte | DataType::Short | DataType::Integer | DataType::Long => Some(SqlKind::Integer),
        DataType::Decimal { precision, scale } => {
            Some(SqlKind::Decimal { digits: precision.try_into().ok()?, scale: scale.try_into().ok()? })
        }
        DataType::String { .. } | DataType::Char { .. } | DataType::Varchar { .. } => Some(SqlKind::Text),
        DataType::Boolean => Some(SqlKind::Boolean),
        DataType::Date => Some(SqlKind::Date),
        DataType::Timestamp => Some(SqlKind::Timestamp),
        DataType::TimestampNtz => Some(SqlKind::LocalTimestamp),
        _ => None,
    }
}

fn received(value: Value) -> Result<SqlValue, RemoteError> {
    match value {
        Value::Null => Ok(SqlValue::Null),
        Value::String(text) => Ok(SqlValue::Text(text)),
        number => {
            let whole = number.as_i64().map(SqlValue::Integer);
            whole.ok_or_else(|| RemoteError::Failed("a value of another type than was asked for".to_owned()))
        }
    }
}

impl SqlSession for ConnectSession {
    fn schema(&mut self, sql: &str) -> Result<Vec<(String, Option<SqlKind>)>, RemoteError> {
        match self.frame(sql, |frame| frame.schema().map_err(named))? {
            DataType::Struct { fields } => {
                Ok(fields.into_iter().map(|field| (field.name, kind_of(&field.data_type))).collect())
            }
            _ => Err(RemoteError::Failed("a table without columns".to_owned())),
        }
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<SqlValue>>, RemoteError> {
        let rows = self.frame(sql, |frame| frame.collect().map_err(named))?;
        rows.into_iter().map(|row| row.into_values().into_iter().map(received).collect()).collect()
    }

    fn view(&mut self, name: &str, sql: &str) -> Result<(), RemoteError> {
        self.frame(sql, |frame| frame.create_or_replace_temp_view(name).map_err(named))
    }

    fn write(&mut self, sql: &str, folder: &str, by_file: bool) -> Result<(), RemoteError> {
        self.frame(sql, |frame| {
            let writer = frame.write().mode("error");
            let writer = if by_file { writer.partition_by([FILE]) } else { writer };
            writer.parquet(folder).map_err(named)
        })
    }

    fn version(&mut self) -> Result<String, RemoteError> {
        self.run(|spark| spark.version().map_err(named))
    }
}
