-- Tables of the fleet. Every large table is found by function_id and has no other unique key: what a host sends must not
-- be able to stop a COPY. Times of day are the database's; hosts tell ages.
CREATE SCHEMA specmine;
CREATE SCHEMA specmine_data;  -- partitions: nobody but the owner has USAGE here
SET LOCAL search_path = specmine;

CREATE TABLE meta(key text PRIMARY KEY, value text NOT NULL);

CREATE TABLE host(
    host_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    role text NOT NULL UNIQUE,  -- of its login; the name in its certificate
    name text NOT NULL UNIQUE,
    labels jsonb NOT NULL DEFAULT '{}',
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'quarantined')),
    quota_bytes bigint NOT NULL DEFAULT 16777216,  -- an hour, over all its streams
    hour timestamptz NOT NULL DEFAULT date_trunc('hour', now()),
    bytes bigint NOT NULL DEFAULT 0,
    refused int NOT NULL DEFAULT 0,  -- in that hour
    enrolled_at timestamptz NOT NULL DEFAULT now(),
    seen_at timestamptz,
    version text NOT NULL DEFAULT '');

CREATE TABLE stream(
    host_id int NOT NULL REFERENCES host ON DELETE CASCADE,
    stream uuid NOT NULL,
    accepted bigint NOT NULL DEFAULT 0,
    digest bytea,  -- of the last push that was accepted
    begun_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY(host_id, stream));

-- One row a push, as it came. The numbers that were accepted are in stream: a row here is gone once it is loaded.
CREATE TABLE inbox(
    host_id int NOT NULL, stream uuid NOT NULL, seq bigint NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    -- 'boot ' and its boot id, and its monotonic clock when it sent this; 'import' of a file
    sent_boot text NOT NULL, sent_ns bigint NOT NULL,
    payload bytea NOT NULL CHECK (length(payload) <= 1048576),
    PRIMARY KEY(host_id, stream, seq))
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE inbox ALTER payload SET STORAGE EXTERNAL;  -- it is compressed already

CREATE TABLE refused(
    host_id int NOT NULL REFERENCES host ON DELETE CASCADE,
    stream uuid NOT NULL, seq bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(), why text NOT NULL,
    PRIMARY KEY(host_id, stream, seq));

-- A boot belongs to one host, so nobody speaks of lifetimes of another host.
CREATE TABLE boot(boot_id text PRIMARY KEY, host_id int NOT NULL REFERENCES host ON DELETE CASCADE);
CREATE INDEX ON boot(host_id);
CREATE TABLE function(function_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE);
-- Found by a hash of all its names, so a path has one meaning whoever sent it.
CREATE TABLE path(
    path_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, hash bigint NOT NULL UNIQUE, complete boolean NOT NULL, frames bytea NOT NULL);
CREATE TABLE lifetime(
    lifetime_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host_id int NOT NULL REFERENCES host ON DELETE CASCADE,
    key text NOT NULL UNIQUE, build_id text NOT NULL);
CREATE INDEX ON lifetime(host_id);
CREATE INDEX ON lifetime(build_id);

-- What a host tells of itself, its programs and functions: the newest of each.
CREATE TABLE held(
    host_id int NOT NULL REFERENCES host ON DELETE CASCADE,
    what text NOT NULL, key text NOT NULL, document bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY(host_id, what, key));
CREATE INDEX ON held(what);

-- What comparisons of lifetimes need: one row a lifetime, as in the store of a host.
CREATE TABLE summary(
    function_id int NOT NULL REFERENCES function, lifetime_id int NOT NULL REFERENCES lifetime ON DELETE CASCADE,
    kind text NOT NULL, start_utc_ns bigint NOT NULL, end_utc_ns bigint NOT NULL, calls bigint NOT NULL,
    watched_ns bigint NOT NULL, bias_ns double precision NOT NULL, early bytea NOT NULL, later bytea NOT NULL,
    PRIMARY KEY(function_id, lifetime_id, kind));
CREATE INDEX ON summary(lifetime_id);

-- Five minutes of one function in one lifetime.
CREATE TABLE observation(
    function_id int NOT NULL, lifetime_id int NOT NULL, host_id int NOT NULL, kind text NOT NULL,
    start_ns bigint NOT NULL, end_ns bigint NOT NULL, ends_at timestamptz NOT NULL,
    load_id bigint NOT NULL,  -- of the transaction that brought it: which rows an hour has already
    windows int NOT NULL, calls bigint NOT NULL, timed bigint NOT NULL, watched_ns bigint NOT NULL,
    inner_calls bigint NOT NULL, censored bigint NOT NULL,
    bias_ns double precision NOT NULL, uncertainty_ns double precision NOT NULL,
    counts bytea NOT NULL, split bytea,
    paths bytea, path_ids bytea,  -- histograms of call paths, and which paths these are
    inside bytea) PARTITION BY RANGE(ends_at);
CREATE INDEX ON observation(function_id, ends_at);
CREATE INDEX ON observation(load_id);
-- An hour of one function in one lifetime. Data that come late are further rows.
CREATE TABLE host_hour(LIKE observation) PARTITION BY RANGE(ends_at);
CREATE INDEX ON host_hour(function_id, ends_at);
-- An hour of one function over all hosts.
CREATE TABLE fleet_hour(
    function_id int NOT NULL, build_id text NOT NULL, kind text NOT NULL, hour timestamptz NOT NULL,
    hosts int NOT NULL, lifetimes int NOT NULL, calls bigint NOT NULL, timed bigint NOT NULL,
    watched_ns bigint NOT NULL, bias_ns double precision NOT NULL, uncertainty_ns double precision NOT NULL,
    counts bytea NOT NULL, paths bytea, path_ids bytea,
    PRIMARY KEY(function_id, build_id, kind, hour));
CREATE SEQUENCE load_number;
-- The load up to which the rows of an hour are in host_hour.
CREATE TABLE hour(hour timestamptz PRIMARY KEY, folded_load bigint NOT NULL DEFAULT 0);
