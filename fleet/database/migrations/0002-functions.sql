-- What hosts and the loader may call. Each asks who logged in, never an argument: inside, current_user is the owner.
SET LOCAL search_path = specmine;

CREATE FUNCTION accept(me host, s uuid, n bigint, body bytea, sum bytea, boot text, mono_ns bigint)
RETURNS TABLE(accepted bigint, conflict boolean)
LANGUAGE plpgsql SET search_path = specmine, pg_temp SET timezone = 'UTC' AS $$
DECLARE was stream;
BEGIN
    IF sum <> sha256(body) THEN RAISE EXCEPTION 'the push is damaged' USING ERRCODE = '22023'; END IF;
    SELECT * INTO was FROM stream t WHERE t.host_id = me.host_id AND t.stream = s;
    IF NOT FOUND THEN
        IF (SELECT count(*) FROM stream t WHERE t.host_id = me.host_id AND t.begun_at > now() - interval '1 day') >= 8 THEN
            RAISE EXCEPTION 'too many streams today' USING ERRCODE = '53400';
        END IF;
        INSERT INTO stream(host_id, stream) VALUES (me.host_id, s) RETURNING * INTO was;
    END IF;
    IF n <> was.accepted + 1 THEN  -- known, or after a gap: the host goes on from what it is told
        RETURN QUERY SELECT was.accepted, n < was.accepted OR (n = was.accepted AND sum IS DISTINCT FROM was.digest);
        RETURN;
    END IF;
    IF me.hour < date_trunc('hour', now()) THEN me.bytes := 0; me.refused := 0; END IF;
    IF me.bytes + length(body) > me.quota_bytes THEN
        RAISE EXCEPTION 'more than % bytes in an hour', me.quota_bytes USING ERRCODE = '53400';
    END IF;
    INSERT INTO inbox(host_id, stream, seq, sent_boot, sent_ns, payload)
        VALUES (me.host_id, s, n, boot, mono_ns, body);
    UPDATE stream t SET accepted = n, digest = sum, updated_at = now() WHERE t.host_id = me.host_id AND t.stream = s;
    UPDATE host h SET seen_at = now(), bytes = me.bytes + length(body), refused = me.refused,
        hour = date_trunc('hour', now()) WHERE h.host_id = me.host_id;
    RETURN QUERY SELECT n, false;
END $$;

CREATE FUNCTION push(s uuid, n bigint, body bytea, sum bytea, boot text, mono_ns bigint)
RETURNS TABLE(accepted bigint, conflict boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
DECLARE me host;
BEGIN
    SELECT * INTO me FROM host h WHERE h.role = session_user AND h.state = 'active' FOR UPDATE;  -- one push at a time
    IF NOT FOUND THEN RAISE EXCEPTION 'this host is not enrolled' USING ERRCODE = '28000'; END IF;
    RETURN QUERY SELECT * FROM accept(me, s, n, body, sum, 'boot ' || left(boot, 64), mono_ns);
END $$;

-- The same for a file that an operator imports. It counts against no quota.
CREATE FUNCTION import_push(id int, s uuid, n bigint, body bytea, sum bytea)
RETURNS TABLE(accepted bigint, conflict boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
DECLARE me host;
BEGIN
    SELECT * INTO STRICT me FROM host h WHERE h.host_id = id FOR UPDATE;
    me.quota_bytes := 9223372036854775807;
    me.bytes := 0;
    RETURN QUERY SELECT * FROM accept(me, s, n, body, sum, 'import', 0);
END $$;

CREATE FUNCTION partition_name(level text, at timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE SET timezone = 'UTC' AS $$
    SELECT level || '_' || to_char(date_trunc(CASE level WHEN 'observation' THEN 'day' ELSE 'week' END, at), 'YYYYMMDD')
$$;

CREATE FUNCTION ensure_partition(level text, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp SET timezone = 'UTC' AS $$
DECLARE unit text := CASE level WHEN 'observation' THEN 'day' WHEN 'host_hour' THEN 'week' END;
        first timestamptz := date_trunc(unit, at);
BEGIN
    IF unit IS NULL OR at > now() + interval '8 days' OR at < now() - interval '3660 days' THEN
        RAISE EXCEPTION 'no partition % for %', level, at;
    END IF;
    IF to_regclass(format('specmine_data.%I', partition_name(level, at))) IS NOT NULL THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE specmine_data.%I PARTITION OF specmine.%I FOR VALUES FROM (%L) TO (%L)',
        partition_name(level, at), level, first, first + ('1 ' || unit)::interval);
END $$;

CREATE FUNCTION partitions() RETURNS TABLE(level text, name text, bytes bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
    SELECT p.relname::text, c.relname::text, pg_total_relation_size(c.oid)
    FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent JOIN pg_class c ON c.oid = i.inhrelid
    WHERE p.relnamespace = 'specmine'::regnamespace AND p.relkind = 'p' ORDER BY c.relname
$$;

CREATE FUNCTION drop_partition(partition text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = specmine, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM partitions() WHERE name = partition) THEN RAISE EXCEPTION 'no partition %', partition; END IF;
    EXECUTE format('DROP TABLE specmine_data.%I', partition);
END $$;

-- Hosts have a second of work in minutes: whoever stays longer is ended, whatever it set its own timeouts to.
CREATE FUNCTION end_long_sessions(longest interval) RETURNS int
LANGUAGE sql SECURITY DEFINER SET search_path = specmine, pg_temp AS $$
    SELECT count(pg_terminate_backend(a.pid))::int FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.backend_start < now() - longest
        AND a.usename IN (SELECT role FROM specmine.host)
$$;
