"""The columns of system tables, as Postgres 15 and DuckDB have them.

    name = column:letter column ...       a column without a letter is an integer

The letters are those of `KINDS`.
"""

from __future__ import annotations

from functools import lru_cache

from reactive.languages.sql.terms.types import BOOL, FLOAT, INSTANT, INT, TEXT, SqlType

KINDS = {
    "": INT,
    "n": SqlType("int", size=4),
    "b": BOOL,
    "f": FLOAT,
    "t": TEXT,
    "c": TEXT,
    "z": INSTANT,
    "I": SqlType("array", items=(INT,)),
    "T": SqlType("array", items=(TEXT,)),
    "m": SqlType("map", items=(TEXT, TEXT)),
}
"""Types by letters; `c` is a letter, which is '' and not NULL unless a row has it."""
MISSING = {"": 0, "b": False, "f": 0.0, "c": "", "m": ()}
"""Values in `pg_catalog` and the functions of DuckDB, in columns that a row does not give."""
Columns = tuple[tuple[str, str], ...]
"""Names and letters."""


@lru_cache(maxsize=8)
def columns_of(text: str) -> dict[str, Columns]:
    """Return the columns of each table of a text."""
    tables: dict[str, Columns] = {}
    for line in text.strip().replace("\n  ", " ").splitlines():
        name, _, columns = line.partition(" = ")
        parts = (column.partition(":") for column in columns.split())
        tables[name] = tuple((column, letter) for column, _, letter in parts)
    return tables


PG_CATALOG = """
pg_class = oid relname:t relnamespace reltype reloftype relowner relam relfilenode reltablespace
  relpages reltuples:f relallvisible reltoastrelid relhasindex:b relisshared:b relpersistence:c
  relkind:c relnatts relchecks relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b
  relforcerowsecurity:b relispopulated:b relreplident:c relispartition:b relrewrite relfrozenxid
  relminmxid relacl:T reloptions:T relpartbound:t
pg_namespace = oid nspname:t nspowner nspacl:T
pg_attribute = attrelid attname:t atttypid attstattarget attlen attnum attndims attcacheoff
  atttypmod attbyval:b attalign:c attstorage:c attcompression:c attnotnull:b atthasdef:b
  atthasmissing:b attidentity:c attgenerated:c attisdropped:b attislocal:b attinhcount
  attcollation attacl:T attoptions:T attfdwoptions:T attmissingval:t
pg_attrdef = oid adrelid adnum adbin:t
pg_type = oid typname:t typnamespace typowner typlen typbyval:b typtype:c typcategory:c
  typispreferred:b typisdefined:b typdelim:c typrelid typsubscript:t typelem typarray typinput:t
  typoutput:t typreceive:t typsend:t typmodin:t typmodout:t typanalyze:t typalign:c typstorage:c
  typnotnull:b typbasetype typtypmod typndims typcollation typdefaultbin:t typdefault:t typacl:T
pg_index = indexrelid indrelid indnatts indnkeyatts indisunique:b indnullsnotdistinct:b
  indisprimary:b indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b
  indisready:b indislive:b indisreplident:b indkey:I indcollation:I indclass:I indoption:I
  indexprs:t indpred:t
pg_constraint = oid conname:t connamespace contype:c condeferrable:b condeferred:b convalidated:b
  conrelid contypid conindid conparentid confrelid confupdtype:c confdeltype:c confmatchtype:c
  conislocal:b coninhcount connoinherit:b conkey:I confkey:I conpfeqop:I conppeqop:I conffeqop:I
  confdelsetcols:I conexclop:I conbin:t
pg_database = oid datname:t datdba encoding datlocprovider:c datistemplate:b datallowconn:b
  datconnlimit datfrozenxid datminmxid dattablespace datcollate:t datctype:t daticulocale:t
  datcollversion:t datacl:T
pg_settings = name:t setting:t unit:t category:t short_desc:t extra_desc:t context:t vartype:t
  source:t min_val:t max_val:t enumvals:T boot_val:t reset_val:t sourcefile:t sourceline
  pending_restart:b
pg_tables = schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b
  hastriggers:b rowsecurity:b
pg_views = schemaname:t viewname:t viewowner:t definition:t
pg_matviews = schemaname:t matviewname:t matviewowner:t tablespace:t hasindexes:b ispopulated:b
  definition:t
pg_indexes = schemaname:t tablename:t indexname:t tablespace:t indexdef:t
pg_am = oid amname:t amhandler:t amtype:c
pg_collation = oid collname:t collnamespace collowner collprovider:c collisdeterministic:b
  collencoding collcollate:t collctype:t colliculocale:t collversion:t
pg_roles = rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b
  rolreplication:b rolconnlimit rolpassword:t rolvaliduntil:z rolbypassrls:b rolconfig:T oid
pg_user = usename:t usesysid usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t
  valuntil:z useconfig:T
pg_auth_members = roleid member grantor admin_option:b
pg_tablespace = oid spcname:t spcowner spcacl:T spcoptions:T
pg_description = objoid classoid objsubid description:t
pg_sequence = seqrelid seqtypid seqstart seqincrement seqmax seqmin seqcache seqcycle:b
pg_sequences = schemaname:t sequencename:t sequenceowner:t data_type:t start_value min_value
  max_value increment_by cycle:b cache_size last_value
pg_inherits = inhrelid inhparent inhseqno inhdetachpending:b
pg_policy = oid polname:t polrelid polcmd:c polpermissive:b polroles:I polqual:t polwithcheck:t
pg_trigger = oid tgrelid tgparentid tgname:t tgfoid tgtype tgenabled:c tgisinternal:b
  tgconstrrelid tgconstrindid tgconstraint tgdeferrable:b tginitdeferred:b tgnargs tgattr:I
  tgargs:t tgqual:t tgoldtable:t tgnewtable:t
pg_rewrite = oid rulename:t ev_class ev_type:c ev_enabled:c is_instead:b ev_qual:t ev_action:t
pg_statistic_ext = oid stxrelid stxname:t stxnamespace stxowner stxstattarget stxkeys:I stxkind:T
  stxexprs:t
pg_publication = oid pubname:t pubowner puballtables:b pubinsert:b pubupdate:b pubdelete:b
  pubtruncate:b pubviaroot:b
pg_publication_rel = oid prpubid prrelid prqual:t prattrs:I
pg_publication_namespace = oid pnpubid pnnspid
pg_enum = oid enumtypid enumsortorder:f enumlabel:t
pg_range = rngtypid rngsubtype rngmultitypid rngcollation rngsubopc rngcanonical:t rngsubdiff:t
pg_proc = oid proname:t pronamespace proowner prolang procost:f prorows:f provariadic
  prosupport:t prokind:c prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:c
  proparallel:c pronargs pronargdefaults prorettype proargtypes:I proallargtypes:I proargmodes:T
  proargnames:T proargdefaults:t protrftypes:I prosrc:t probin:t prosqlbody:t proconfig:T
  proacl:T
pg_language = oid lanname:t lanowner lanispl:b lanpltrusted:b lanplcallfoid laninline
  lanvalidator lanacl:T
pg_extension = oid extname:t extowner extnamespace extrelocatable:b extversion:t extconfig:I
  extcondition:T
pg_depend = classid objid objsubid refclassid refobjid refobjsubid deptype:c
pg_opclass = oid opcmethod opcname:t opcnamespace opcowner opcfamily opcintype opcdefault:b
  opckeytype
pg_foreign_table = ftrelid ftserver ftoptions:T
pg_foreign_server = oid srvname:t srvowner srvfdw srvtype:t srvversion:t srvacl:T srvoptions:T
pg_partitioned_table = partrelid partstrat:c partnatts partdefid partattrs:I partclass:I
  partcollation:I partexprs:t
pg_stat_activity = datid datname:t pid leader_pid usesysid usename:t application_name:t
  client_addr:t client_hostname:t client_port backend_start:z xact_start:z query_start:z
  state_change:z wait_event_type:t wait_event:t state:t backend_xid backend_xmin query_id query:t
  backend_type:t
pg_stat_user_tables = relid schemaname:t relname:t seq_scan seq_tup_read idx_scan idx_tup_fetch
  n_tup_ins n_tup_upd n_tup_del n_tup_hot_upd n_live_tup n_dead_tup n_mod_since_analyze
  n_ins_since_vacuum last_vacuum:z last_autovacuum:z last_analyze:z last_autoanalyze:z
  vacuum_count autovacuum_count analyze_count autoanalyze_count
pg_stat_user_indexes = relid indexrelid schemaname:t relname:t indexrelname:t idx_scan
  idx_tup_read idx_tup_fetch
"""
INFORMATION_SCHEMA = """
tables = table_catalog:t table_schema:t table_name:t table_type:t self_referencing_column_name:t
  reference_generation:t user_defined_type_catalog:t user_defined_type_schema:t
  user_defined_type_name:t is_insertable_into:t is_typed:t commit_action:t
columns = table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:n
  column_default:t is_nullable:t data_type:t character_maximum_length character_octet_length
  numeric_precision numeric_precision_radix numeric_scale datetime_precision interval_type:t
  interval_precision character_set_catalog:t character_set_schema:t character_set_name:t
  collation_catalog:t collation_schema:t collation_name:t domain_catalog:t domain_schema:t
  domain_name:t udt_catalog:t udt_schema:t udt_name:t scope_catalog:t scope_schema:t scope_name:t
  maximum_cardinality dtd_identifier:t is_self_referencing:t is_identity:t identity_generation:t
  identity_start:t identity_increment:t identity_maximum:t identity_minimum:t identity_cycle:t
  is_generated:t generation_expression:t is_updatable:t
schemata = catalog_name:t schema_name:t schema_owner:t default_character_set_catalog:t
  default_character_set_schema:t default_character_set_name:t sql_path:t
views = table_catalog:t table_schema:t table_name:t view_definition:t check_option:t
  is_updatable:t is_insertable_into:t is_trigger_updatable:t is_trigger_deletable:t
  is_trigger_insertable_into:t
table_constraints = constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t
  table_schema:t table_name:t constraint_type:t is_deferrable:t initially_deferred:t enforced:t
  nulls_distinct:t
key_column_usage = constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t
  table_schema:t table_name:t column_name:t ordinal_position position_in_unique_constraint
referential_constraints = constraint_catalog:t constraint_schema:t constraint_name:t
  unique_constraint_catalog:t unique_constraint_schema:t unique_constraint_name:t match_option:t
  update_rule:t delete_rule:t
constraint_column_usage = table_catalog:t table_schema:t table_name:t column_name:t
  constraint_catalog:t constraint_schema:t constraint_name:t
check_constraints = constraint_catalog:t constraint_schema:t constraint_name:t check_clause:t
triggers = trigger_catalog:t trigger_schema:t trigger_name:t event_manipulation:t
  event_object_catalog:t event_object_schema:t event_object_table:t action_order
  action_condition:t action_statement:t action_orientation:t action_timing:t
  action_reference_old_table:t action_reference_new_table:t action_reference_old_row:t
  action_reference_new_row:t created:z
sequences = sequence_catalog:t sequence_schema:t sequence_name:t data_type:t numeric_precision
  numeric_precision_radix numeric_scale start_value:t minimum_value:t maximum_value:t increment:t
  cycle_option:t
"""
OF_DUCKDB = """
tables = table_catalog:t table_schema:t table_name:t table_type:t self_referencing_column_name:t
  reference_generation:t user_defined_type_catalog:t user_defined_type_schema:t
  user_defined_type_name:t is_insertable_into:t is_typed:t commit_action:t TABLE_COMMENT:t
columns = table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:n
  column_default:t is_nullable:t data_type:t character_maximum_length:n character_octet_length:n
  numeric_precision:n numeric_precision_radix:n numeric_scale:n datetime_precision:n
  interval_type:t interval_precision:n character_set_catalog:t character_set_schema:t
  character_set_name:t collation_catalog:t collation_schema:t collation_name:t domain_catalog:t
  domain_schema:t domain_name:t udt_catalog:t udt_schema:t udt_name:t scope_catalog:t
  scope_schema:t scope_name:t maximum_cardinality dtd_identifier:t is_self_referencing:b
  is_identity:b identity_generation:t identity_start:t identity_increment:t identity_maximum:t
  identity_minimum:t identity_cycle:b is_generated:t generation_expression:t is_updatable:b
  COLUMN_COMMENT:t
constraint_column_usage = table_catalog:t table_schema:t table_name:t column_name:t
  constraint_catalog:t constraint_schema:t constraint_name:t constraint_type:t constraint_text:t
"""
"""Tables of `information_schema` in which DuckDB has other columns."""
FUNCTIONS_OF_DUCKDB = """
duckdb_tables = database_name:t database_oid schema_name:t schema_oid table_name:t table_oid
  comment:t tags:m internal:b temporary:b has_primary_key:b estimated_size column_count
  index_count check_constraint_count sql:t
duckdb_columns = database_name:t database_oid schema_name:t schema_oid table_name:t table_oid
  column_name:t column_index:n comment:t internal:b column_default:t is_nullable:b data_type:t
  data_type_id character_maximum_length:n numeric_precision:n numeric_precision_radix:n
  numeric_scale:n tags:m is_generated:b generation_expression:t
duckdb_views = database_name:t database_oid schema_name:t schema_oid view_name:t view_oid
  comment:t tags:m internal:b temporary:b column_count sql:t is_bound:b
duckdb_schemas = oid database_name:t database_oid schema_name:t comment:t tags:m internal:b sql:t
  parent_schema:t parent_schema_oid
duckdb_databases = database_name:t database_oid path:t comment:t tags:m internal:b type:t
  readonly:b encrypted:b cipher:t options:m
duckdb_constraints = database_name:t database_oid schema_name:t schema_oid table_name:t table_oid
  constraint_index constraint_type:t constraint_text:t expression:t constraint_column_indexes:I
  constraint_column_names:T constraint_name:t referenced_table:t referenced_column_names:T
duckdb_indexes = database_name:t database_oid schema_name:t schema_oid index_name:t index_oid
  table_name:t table_oid comment:t tags:m is_unique:b is_primary:b expressions:t sql:t
duckdb_sequences = database_name:t database_oid schema_name:t schema_oid sequence_name:t
  sequence_oid comment:t tags:m temporary:b start_value min_value max_value increment_by cycle:b
  last_value sql:t
duckdb_settings = name:t value:t description:t input_type:t scope:t aliases:T typed_value:t
duckdb_types = database_name:t database_oid schema_name:t schema_oid type_oid type_name:t
  type_size logical_type:t type_category:t comment:t tags:m internal:b extension_name:t labels:T
  parameters:T parameter_types:T varargs:t
"""
