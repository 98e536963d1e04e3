-- What has a reuse key, also what has ended: a job asks for it, and not for all that its tenant ever published.
CREATE INDEX releases_alike ON releases (tenant, reuse_key);
