-- Benchmarks: what is to be run where, by whom, and what came of it. Whoever may write bench_plan runs commands on hosts.
SET LOCAL search_path = specmine;

CREATE TABLE bench_plan(
    plan_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE, document jsonb NOT NULL, plan jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now());
-- A block has runs of all builds, and belongs to the host that took it.
CREATE TABLE bench_block(
    plan_id int NOT NULL REFERENCES bench_plan ON DELETE CASCADE,
    block int NOT NULL, host_id int REFERENCES host ON DELETE SET NULL,
    PRIMARY KEY(plan_id, block));
CREATE TABLE bench_run(
    plan_id int NOT NULL, number int NOT NULL, block int NOT NULL, build text NOT NULL, rebuild int NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    host_id int REFERENCES host ON DELETE SET NULL,
    attempts int NOT NULL DEFAULT 0, token uuid, leased_until timestamptz,
    begun_at timestamptz, ended_at timestamptz,
    result bytea CHECK (length(result) <= 4194304),
    PRIMARY KEY(plan_id, number), FOREIGN KEY(plan_id, block) REFERENCES bench_block ON DELETE CASCADE);
ALTER TABLE bench_run ALTER result SET STORAGE EXTERNAL;  -- it is compressed already
CREATE TABLE bench_failure(
    plan_id int NOT NULL REFERENCES bench_plan ON DELETE CASCADE,
    number int NOT NULL, attempt int NOT NULL, host_id int REFERENCES host ON DELETE SET NULL,
    at timestamptz NOT NULL DEFAULT now(), reason text NOT NULL);
CREATE INDEX ON bench_failure(plan_id, at);
CREATE TABLE bench_host(
    plan_id int NOT NULL REFERENCES bench_plan ON DELETE CASCADE,
    host_id int NOT NULL REFERENCES host ON DELETE CASCADE,
    hello_at timestamptz NOT NULL DEFAULT now(), heard_at timestamptz NOT NULL DEFAULT now(),
    facts jsonb NOT NULL DEFAULT '{}' CHECK (length(facts::text) <= 65536),
    PRIMARY KEY(plan_id, host_id));

-- Which host asks: the one that logged in. Who may load may speak for any host by its name.
CREATE FUNCTION bench_me(wanted text) RETURNS host
LANGUAGE plpgsql STABLE SET search_path = specmine, pg_temp AS $$
DECLARE me host;
BEGIN
    SELECT * INTO me FROM host h WHERE h.role = session_user;
    IF NOT FOUND AND pg_has_role(session_user, 'specmine_load', 'MEMBER') THEN
        SELECT * INTO me FROM host h WHERE h.name = wanted;
    END IF;
    IF me.host_id IS NULL OR me.state <> 'active' THEN
        RAISE EXCEPTION 'this host is not enrolled' USING ERRCODE = '28000';
    END IF;
    RETURN me;
END $$;

CREATE FUNCTION bench_for(me host, wanted text) RETURNS bench_plan
LANGUAGE plpgsql STABLE SET search_path = specmine, pg_temp AS $$
DECLARE chosen bench_plan;
BEGIN
    SELECT * INTO chosen FROM bench_plan p WHERE p.name = wanted;
    IF NOT FOUND THEN RAISE EXCEPTION 'there is no benchmark %', quote_literal(left(wanted, 64)) USING ERRCODE = 'P0002'; END IF;
    IF NOT me.labels @> coalesce(chosen.document -> 'where', '{}') THEN
        RAISE EXCEPTION 'this host has not the labels that benchmark % asks for', quote_literal(chosen.name) USING ERRCODE = '28000';
    END IF;
    RETURN chosen;
END $$;

CREATE FUNCTION bench_hello(benchmark text, wanted text, facts jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
DECLARE me host := bench_me(wanted); p bench_plan := bench_for(me, benchmark);
BEGIN
    INSERT INTO bench_host AS b(plan_id, host_id, facts) VALUES (p.plan_id, me.host_id, coalesce(facts, '{}'))
        ON CONFLICT (plan_id, host_id) DO UPDATE
        SET heard_at = now(), hello_at = CASE WHEN excluded.facts = '{}' THEN b.hello_at ELSE now() END,
            facts = CASE WHEN excluded.facts = '{}' THEN b.facts ELSE excluded.facts END;
    RETURN p.document;
END $$;

CREATE FUNCTION bench_claim(benchmark text, wanted text)
RETURNS TABLE(number int, block int, build text, rebuild int, attempt int, token uuid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
#variable_conflict use_column
DECLARE me host := bench_me(wanted); p bench_plan := bench_for(me, benchmark);
        lease interval := make_interval(secs => (p.document ->> 'lease')::float8);
        most int := 1 + (p.document ->> 'retries')::int;
        mine int; quota int; chosen int; one bench_run;
BEGIN
    UPDATE bench_host h SET heard_at = now() WHERE h.plan_id = p.plan_id AND h.host_id = me.host_id;
    -- Leases that ran out: whoever had them is gone.
    WITH lost AS (
        SELECT r.number FROM bench_run r WHERE r.plan_id = p.plan_id AND r.state = 'running' AND r.leased_until < now()
        FOR UPDATE SKIP LOCKED),
    freed AS (
        UPDATE bench_run r SET state = CASE WHEN r.attempts >= most THEN 'failed' ELSE 'waiting' END, token = NULL, ended_at = now()
        FROM lost WHERE r.plan_id = p.plan_id AND r.number = lost.number RETURNING r.number, r.attempts, r.host_id)
    INSERT INTO bench_failure(plan_id, number, attempt, host_id, reason)
        SELECT p.plan_id, freed.number, freed.attempts, freed.host_id, 'its runner was not heard of any more' FROM freed;
    -- First what this host has begun.
    SELECT r.* INTO one FROM bench_run r JOIN bench_block b USING (plan_id, block)
        WHERE r.plan_id = p.plan_id AND r.state = 'waiting' AND b.host_id = me.host_id
        ORDER BY r.number FOR UPDATE OF r SKIP LOCKED LIMIT 1;
    IF one.number IS NULL THEN
        -- Then a new block, as long as this is not more than its share of them. Beyond it only if nobody else is there for
        -- them, who had the time of a lease to come.
        SELECT count(*) FILTER (WHERE b.host_id = me.host_id),
               ceil(count(*)::float8 / greatest(1, (p.plan ->> 'hosts')::int)) INTO mine, quota
            FROM bench_block b WHERE b.plan_id = p.plan_id;
        IF mine < quota OR NOT EXISTS (
            SELECT 1 FROM bench_host h WHERE h.plan_id = p.plan_id AND h.host_id = me.host_id AND h.hello_at > now() - lease)
            AND NOT EXISTS (
            SELECT 1 FROM bench_host h WHERE h.plan_id = p.plan_id AND h.host_id <> me.host_id AND h.heard_at > now() - lease
                AND (SELECT count(*) FROM bench_block b WHERE b.plan_id = p.plan_id AND b.host_id = h.host_id) < quota) THEN
            SELECT b.block INTO chosen FROM bench_block b WHERE b.plan_id = p.plan_id AND b.host_id IS NULL
                ORDER BY b.block FOR UPDATE SKIP LOCKED LIMIT 1;
        END IF;
        -- Last what a host left behind that is gone.
        IF chosen IS NULL THEN
            SELECT b.block INTO chosen FROM bench_block b
                WHERE b.plan_id = p.plan_id AND b.host_id <> me.host_id
                AND EXISTS (SELECT 1 FROM bench_run r WHERE r.plan_id = p.plan_id AND r.block = b.block AND r.state = 'waiting')
                AND NOT EXISTS (SELECT 1 FROM bench_host h WHERE h.plan_id = p.plan_id AND h.host_id = b.host_id
                    AND h.heard_at > now() - lease)
                ORDER BY b.block FOR UPDATE SKIP LOCKED LIMIT 1;
        END IF;
        IF chosen IS NULL THEN RETURN; END IF;
        UPDATE bench_block b SET host_id = me.host_id WHERE b.plan_id = p.plan_id AND b.block = chosen;
        SELECT r.* INTO one FROM bench_run r WHERE r.plan_id = p.plan_id AND r.block = chosen AND r.state = 'waiting'
            ORDER BY r.number FOR UPDATE SKIP LOCKED LIMIT 1;
        IF one.number IS NULL THEN RETURN; END IF;
    END IF;
    RETURN QUERY UPDATE bench_run r SET state = 'running', host_id = me.host_id, attempts = r.attempts + 1,
            token = gen_random_uuid(), leased_until = now() + lease, begun_at = now()
        WHERE r.plan_id = p.plan_id AND r.number = one.number
        RETURNING r.number, r.block, r.build, r.rebuild, r.attempts, r.token;
END $$;

CREATE FUNCTION bench_beat(benchmark text, wanted text, n int, t uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
DECLARE me host := bench_me(wanted); p bench_plan := bench_for(me, benchmark);
BEGIN
    UPDATE bench_host h SET heard_at = now() WHERE h.plan_id = p.plan_id AND h.host_id = me.host_id;
    UPDATE bench_run r SET leased_until = now() + make_interval(secs => (p.document ->> 'lease')::float8)
        WHERE r.plan_id = p.plan_id AND r.number = n AND r.token = t AND r.state = 'running' AND r.host_id = me.host_id;
    RETURN FOUND;
END $$;

CREATE FUNCTION bench_finish(benchmark text, wanted text, n int, t uuid, body bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
DECLARE me host := bench_me(wanted); p bench_plan := bench_for(me, benchmark);
BEGIN
    UPDATE bench_run r SET state = 'done', result = body, ended_at = now()
        WHERE r.plan_id = p.plan_id AND r.number = n AND r.token = t AND r.state = 'running' AND r.host_id = me.host_id;
    RETURN FOUND OR EXISTS (  -- the answer was lost, and it is handed in again
        SELECT 1 FROM bench_run r WHERE r.plan_id = p.plan_id AND r.number = n AND r.token = t AND r.state = 'done');
END $$;

CREATE FUNCTION bench_fail(benchmark text, wanted text, n int, t uuid, why text, counts boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
DECLARE me host := bench_me(wanted); p bench_plan := bench_for(me, benchmark);
        most int := 1 + (p.document ->> 'retries')::int; tried int;
BEGIN
    SELECT r.attempts INTO tried FROM bench_run r
        WHERE r.plan_id = p.plan_id AND r.number = n AND r.token = t AND r.state = 'running' AND r.host_id = me.host_id FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    INSERT INTO bench_failure(plan_id, number, attempt, host_id, reason) VALUES (p.plan_id, n, tried, me.host_id, left(why, 500));
    IF NOT counts THEN tried := tried - 1; END IF;
    UPDATE bench_run r SET state = CASE WHEN tried >= most THEN 'failed' ELSE 'waiting' END, attempts = tried, token = NULL,
        ended_at = now() WHERE r.plan_id = p.plan_id AND r.number = n;
    RETURN true;
END $$;

CREATE FUNCTION bench_left(benchmark text, wanted text) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
DECLARE me host := bench_me(wanted); p bench_plan := bench_for(me, benchmark);
BEGIN
    RETURN (SELECT count(*) FROM bench_run r WHERE r.plan_id = p.plan_id AND r.state IN ('waiting', 'running'));
END $$;

REVOKE ALL ON FUNCTION bench_me, bench_for, bench_hello, bench_claim, bench_beat, bench_finish, bench_fail, bench_left FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bench_hello, bench_claim, bench_beat, bench_finish, bench_fail, bench_left
    TO specmine_host, specmine_load;
GRANT SELECT ON bench_plan, bench_block, bench_run, bench_failure, bench_host TO specmine_load, specmine_read;
ALTER TABLE bench_run ENABLE ROW LEVEL SECURITY;  -- a second wall behind the missing grants
CREATE POLICY load ON bench_run FOR SELECT TO specmine_load USING (true);
CREATE POLICY read ON bench_run FOR SELECT TO specmine_read USING (true);
