//! Documents as they are bound.

use std::error::Error;

use serde::Serialize;
use sqlx::encode::{Encode, IsNull};
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo};
use sqlx::{Postgres, Type};

/// `json` in `pg_type`; a fixed number.
const JSON: Oid = Oid(114);

/// A document for a JSON column, which keeps its text as it is. sqlx's own `Json` binds JSONB, which keeps numbers in another
/// form than they were written in and refuses U+0000; it reads both.
pub(in crate::store) struct JsonText<T>(pub(in crate::store) T);

impl<T> Type<Postgres> for JsonText<T> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(JSON)
    }
}

impl<T: Serialize> Encode<'_, Postgres> for JsonText<T> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, Box<dyn Error + Send + Sync>> {
        serde_json::to_writer(&mut **buffer, &self.0)?;
        Ok(IsNull::No)
    }
}
