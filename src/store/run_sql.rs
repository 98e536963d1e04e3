/// Binds values to a statement, in order, and runs it: `run_sql!(query_as.fetch_all, executor, statement, values..)`.
macro_rules! run_sql {
    ($query:ident.$run:ident, $executor:expr, $statement:expr $(, $value:expr)* $(,)?) => {
        sqlx::$query($statement)$(.bind($value))*.$run($executor).await
    };
}
