//! Settings of tenants.

pub(crate) const TENANT_SETTINGS: &str = "\
-- tenant_settings
SELECT settings FROM tenants WHERE tenant = $1";

pub(crate) const TENANTS: &str = "\
-- tenants
SELECT known.tenant, t.settings
FROM (SELECT tenant FROM api_keys UNION SELECT tenant FROM tenants) AS known LEFT JOIN tenants AS t ON t.tenant = known.tenant
ORDER BY known.tenant";

pub(crate) const SET_TENANT: &str = "\
-- set_tenant
INSERT INTO tenants (tenant, settings) VALUES ($1, $2) ON CONFLICT (tenant) DO UPDATE SET settings = excluded.settings";
