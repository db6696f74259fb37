-- Who may do what. The roles are made before, since they belong to the whole cluster.
SET LOCAL search_path = specmine;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA specmine FROM PUBLIC;
GRANT USAGE ON SCHEMA specmine TO specmine_host, specmine_load, specmine_read;
GRANT EXECUTE ON FUNCTION push TO specmine_host;

GRANT EXECUTE ON FUNCTION import_push, ensure_partition, partition_name, partitions, drop_partition, end_long_sessions
    TO specmine_load;
GRANT SELECT ON ALL TABLES IN SCHEMA specmine TO specmine_load;
GRANT DELETE ON inbox TO specmine_load;
GRANT UPDATE (refused, state, version, hour) ON host TO specmine_load;
GRANT INSERT ON refused, boot, function, path, lifetime, held, summary, observation, host_hour, fleet_hour, hour
    TO specmine_load;
GRANT UPDATE ON held, summary, lifetime, hour, fleet_hour TO specmine_load;
GRANT UPDATE (seq) ON inbox TO specmine_load;  -- to lock rows while they are loaded
GRANT DELETE ON refused, fleet_hour, hour, summary, held TO specmine_load;
GRANT USAGE ON SEQUENCE load_number TO specmine_load;

GRANT SELECT ON meta, host, boot, function, path, lifetime, held, summary, observation, host_hour, fleet_hour, refused, stream
    TO specmine_read;
GRANT EXECUTE ON FUNCTION partitions TO specmine_read;

-- A second wall behind the missing grants: with row security on, whoever has no policy sees no row.
ALTER TABLE host ENABLE ROW LEVEL SECURITY;
ALTER TABLE stream ENABLE ROW LEVEL SECURITY;
ALTER TABLE inbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE held ENABLE ROW LEVEL SECURITY;
CREATE POLICY load ON host TO specmine_load USING (true);
CREATE POLICY load ON stream TO specmine_load USING (true);
CREATE POLICY load ON inbox TO specmine_load USING (true);
CREATE POLICY load ON held TO specmine_load USING (true);
CREATE POLICY read ON host FOR SELECT TO specmine_read USING (true);
CREATE POLICY read ON stream FOR SELECT TO specmine_read USING (true);
CREATE POLICY read ON held FOR SELECT TO specmine_read USING (true);
