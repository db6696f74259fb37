-- Who observes what, and what is stated of each function: what hosts are told.
SET LOCAL search_path = specmine;

-- What each host sent of each function so far, and how often it is called there, as it says.
CREATE TABLE sighting(
    host_id int NOT NULL REFERENCES host ON DELETE CASCADE, function_id int NOT NULL REFERENCES function,
    timed bigint NOT NULL DEFAULT 0, timed_by_path bigint NOT NULL DEFAULT 0,
    calls bigint NOT NULL DEFAULT 0, watched_ns bigint NOT NULL DEFAULT 0, newest timestamptz,
    PRIMARY KEY(host_id, function_id));
CREATE INDEX ON sighting(function_id);
-- What a host is asked for, compressed JSON; renewed each minute.
CREATE TABLE assignment(
    host_id int PRIMARY KEY REFERENCES host ON DELETE CASCADE,
    made_at timestamptz NOT NULL DEFAULT now(), document bytea NOT NULL);
-- The same one by one: since when, and whether the host delivers.
CREATE TABLE duty(
    host_id int NOT NULL REFERENCES host ON DELETE CASCADE, function_id int NOT NULL REFERENCES function,
    purpose text NOT NULL, since timestamptz NOT NULL DEFAULT now(), missed_until timestamptz,
    PRIMARY KEY(host_id, function_id));
CREATE INDEX ON duty(function_id);
-- What is stated of a function. A number is never given twice: hosts ask for what is newer than what they have.
CREATE SEQUENCE model_number;
CREATE TABLE model(
    function_id int PRIMARY KEY REFERENCES function, number bigint NOT NULL DEFAULT nextval('model_number'),
    made_at timestamptz NOT NULL DEFAULT now(),
    state text NOT NULL CHECK (state IN ('stated', 'inherited', 'none')),
    found text NOT NULL,  -- what the last mining came to: stated, paths, unstable, few
    hosts int NOT NULL DEFAULT 0, calls bigint NOT NULL DEFAULT 0, left_out text[] NOT NULL DEFAULT '{}',
    document bytea);
CREATE INDEX ON model(number);
-- Functions to be mined. A claim is a lease: an analyst that dies leaves its functions to the others.
CREATE TABLE job(
    function_id int PRIMARY KEY REFERENCES function, priority real NOT NULL DEFAULT 0,
    ready_at timestamptz NOT NULL DEFAULT now(), leased_until timestamptz, worker text, attempts int NOT NULL DEFAULT 0);

-- What a host is asked for, how old that is, and the number of the newest statement.
CREATE FUNCTION duties() RETURNS TABLE(age_seconds double precision, document bytea, newest bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
    SELECT extract(epoch FROM now() - a.made_at)::float8, a.document, coalesce((SELECT max(m.number) FROM model m), 0)
    FROM host h JOIN assignment a USING (host_id) WHERE h.role = session_user AND h.state = 'active'
$$;
-- Statements of functions that the host itself told of, newer than a number.
CREATE FUNCTION statements(since bigint) RETURNS TABLE(number bigint, document bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
    SELECT m.number, m.document FROM host h JOIN held r ON r.host_id = h.host_id AND r.what = 'Function'
    JOIN function f ON f.key = r.key JOIN model m USING (function_id)
    WHERE h.role = session_user AND h.state = 'active' AND m.number > since AND m.document IS NOT NULL
    ORDER BY m.number LIMIT 200
$$;
REVOKE ALL ON FUNCTION duties, statements FROM PUBLIC;
GRANT EXECUTE ON FUNCTION duties, statements TO specmine_host;

-- Planner and analysts.
GRANT USAGE ON SCHEMA specmine TO specmine_mine;
GRANT SELECT ON meta, host, function, path, lifetime, held, observation TO specmine_mine;
GRANT SELECT, INSERT, UPDATE, DELETE ON sighting, assignment, duty, model, job TO specmine_mine;
GRANT INSERT, UPDATE ON meta TO specmine_mine;
GRANT INSERT ON function TO specmine_mine;
GRANT USAGE ON SEQUENCE model_number TO specmine_mine;
CREATE POLICY mine ON host FOR SELECT TO specmine_mine USING (true);
CREATE POLICY mine ON held FOR SELECT TO specmine_mine USING (true);
GRANT SELECT ON sighting, assignment, duty, model, job TO specmine_read, specmine_load;
-- A second wall behind the missing grants.
ALTER TABLE assignment ENABLE ROW LEVEL SECURITY;
ALTER TABLE duty ENABLE ROW LEVEL SECURITY;
ALTER TABLE model ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON assignment TO specmine_mine USING (true);
CREATE POLICY mine ON duty TO specmine_mine USING (true);
CREATE POLICY mine ON model TO specmine_mine USING (true);
CREATE POLICY read ON assignment FOR SELECT TO specmine_read, specmine_load USING (true);
CREATE POLICY read ON duty FOR SELECT TO specmine_read, specmine_load USING (true);
CREATE POLICY read ON model FOR SELECT TO specmine_read, specmine_load USING (true);
