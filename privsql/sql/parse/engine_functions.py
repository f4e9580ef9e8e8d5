"""DuckDB's functions, judged one by one: which may stand above the noise, and why the others may not.

Allowed is what computes its result from its arguments alone, the same each time, and changes nothing. Written
by tools/engine_functions.py from the engine's own catalogue; a judgement is changed by moving a name.
"""

from __future__ import annotations

import re


def unlisted(name: str) -> str | None:
    """The category of a function that is not in the table because its name says what it is."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        return "operators"
    if name.startswith("__"):
        return "internals"
    return "collations" if name.startswith(("collate_", "icu_collate_")) else None


ALLOWED = frozenset(
    """
abs acos acosh add age aggregate any_value approx_count_distinct approx_quantile arbitrary arg_max
arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg array_aggr
array_aggregate array_append array_apply array_cat array_concat array_contains array_cosine_distance
array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product array_extract
array_filter array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product
array_intersect array_length array_negative_dot_product array_negative_inner_product array_pop_back
array_pop_front array_position array_prepend array_push_back array_push_front array_reduce array_resize
array_reverse array_reverse_sort array_select array_slice array_sort array_to_json array_to_string
array_transform array_unique array_value array_where array_zip ascii asin asinh atan atan2 atanh avg bar
base64 bin binom bit_and bit_count bit_length bit_or bit_xor bool_and bool_or cardinality cbrt ceil ceiling
century char_length character_length chr concat concat_ws contains corr cos cosh cot count count_if countif
covar_pop covar_samp cume_dist damerau_levenshtein date_add date_diff date_part date_sub date_trunc datediff
datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade decimal_average
decimal_division decode degrees dense_rank divide editdist3 element_at encode ends_with entropy epoch
epoch_ms epoch_ns epoch_us equi_width_bins era even exp factorial favg fdiv fill filter first first_value
flatten floor fmod format format_bytes from_base64 from_binary from_hex from_json from_json_strict fsum
gamma gcd generate_series generate_subscripts geomean geometric_mean grade_up greatest
greatest_common_divisor group_concat hamming hash hex histogram histogram_exact hour if ilike_escape instr
invoke is_histogram_other_bin isfinite isinf isnan isodow isoyear jaccard jaro_similarity
jaro_winkler_similarity json json_array json_array_length json_contains json_deep_merge json_exists
json_extract json_extract_path json_extract_path_text json_extract_string json_group_array json_group_object
json_group_structure json_insert json_keys json_merge_patch json_merge_patch_diff json_normalize json_object
json_pretty json_quote json_remove json_replace json_set json_strip_nulls json_structure json_transform
json_transform_strict json_type json_valid json_value julian kahan_sum kurtosis kurtosis_pop lag last
last_day last_value lcase lcm lead least least_common_multiple left left_grapheme len length length_grapheme
levenshtein lgamma like_escape list list_aggr list_aggregate list_any_value list_append list_apply
list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor list_bool_and list_bool_or
list_cat list_concat list_contains list_cosine_distance list_cosine_similarity list_count list_distance
list_distinct list_dot_product list_element list_entropy list_extract list_filter list_first list_grade_up
list_has list_has_all list_has_any list_histogram list_indexof list_inner_product list_intersect
list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode
list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend list_product
list_reduce list_resize list_reverse list_reverse_sort list_select list_sem list_skewness list_slice
list_sort list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value
list_var_pop list_var_samp list_where list_zip listagg ln log log10 log2 lower lpad ltrim lttb mad make_date
make_time make_timestamp make_timestamp_ms make_timestamp_ns map map_concat map_contains map_contains_entry
map_contains_value map_entries map_extract map_extract_value map_from_entries map_keys map_values max max_by
md5 md5_number md5_number_lower md5_number_upper mean median microsecond millennium millisecond min min_by
minute mismatches mod mode month monthname multiply nanosecond nextafter nfc_normalize normalized_interval
not_ilike_escape not_like_escape nth_value ntile nullif octet_length ord overlay parse_dirname parse_dirpath
parse_filename parse_formatted_bytes parse_path path_join percent_rank pi position pow power prefix printf
product quantile quantile_cont quantile_disc quarter radians range rank rank_dense regexp_escape
regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array
regexp_split_to_table regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
regr_syy repeat replace reverse right right_grapheme round round_even roundbankers row row_number
row_to_json rpad rtrim second sem sha1 sha256 sign signbit sin sinh skewness split split_part sqrt
starts_with stddev stddev_pop stddev_samp str_split str_split_regex strftime string_agg string_split
string_split_regex string_to_array strip_accents strlen strpos strptime struct_concat struct_contains
struct_extract struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack
struct_position struct_update struct_values substr substring substring_grapheme subtract suffix sum sumkahan
switch tan tanh time_bucket to_base to_base64 to_binary to_centuries to_days to_decades to_hex to_hours
to_json to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_weeks
to_years translate trim trunc try_strptime typeof ucase unbin unhex unicode union_extract union_tag
union_value unnest upper url_decode url_encode uuid_extract_version var_pop var_samp variance wavg week
weekday weekofyear weighted_avg xor year yearweek
""".split()
)
# By category, each of which has its message in above_refusals.py.
REFUSED = {
    "catalogue": frozenset(
        """
col_description currval format_pg_type format_type has_any_column_privilege has_column_privilege
has_database_privilege has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege
has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege
has_tablespace_privilege map_to_pg_oid nextval obj_description pg_collation_is_visible
pg_conversion_is_visible pg_function_is_visible pg_get_constraintdef pg_get_expr pg_get_viewdef pg_has_role
pg_is_other_temp_schema pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible
pg_opfamily_is_visible pg_size_pretty pg_table_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible
pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible pg_typeof setval shobj_description
""".split()
    ),
    "clock": frozenset(
        """
ago current_date current_localtime current_localtimestamp get_current_time get_current_timestamp now
pg_conf_load_time pg_postmaster_start_time today transaction_timestamp
""".split()
    ),
    "dynamic-sql": frozenset(
        """
json_deserialize_sql json_execute_serialized_sql json_serialize_plan json_serialize_sql python_map_function
query query_table
""".split()
    ),
    "internals": frozenset(
        """
alias array_to_string_comma_default bitstring_byte_comparable can_cast_implicitly cast_to_type combine
combine_aggr constant_or_null count_star create_sort_key enum_code enum_first enum_last enum_range
enum_range_boundary finalize get_type hive_partition_component icu_sort_key index_key
json_copy_strftime_if_date json_copy_strftime_if_timestamp make_type parse_duckdb_log_message remap_struct
replace_type stats sum_no_overflow to_aggregate_state unpivot_list variant_bytes_to_variant
variant_comparator variant_normalize variant_to_parquet_variant vector_type
""".split()
    ),
    "misread": frozenset(
        """
apply approx_top_k reduce
""".split()
    ),
    "other-types": frozenset(
        """
bit_position bitstring bitstring_agg get_bit set_bit st_asbinary st_asgeojson st_astext st_aswkb st_aswkt
st_crs st_geomfromgeojson st_geomfromwkb st_intersects_extent st_setcrs variant_array_length
variant_contains variant_exists variant_extract variant_extract_string variant_group_array
variant_group_object variant_keys variant_type variant_typeof vertex_extract
""".split()
    ),
    "random": frozenset(
        """
gen_random_uuid random reservoir_quantile setseed uuid uuidv4 uuidv7
""".split()
    ),
    "settings": frozenset(
        """
current_catalog current_connection_id current_database current_query current_query_id current_role
current_schema current_schemas current_setting current_transaction_id current_user get_block_size
getvariable in_search_path inet_client_addr inet_client_port inet_server_addr inet_server_port session_user
txid_current user version
""".split()
    ),
    "side-effects": frozenset(
        """
assert_true error pg_sleep sleep_ms write_log
""".split()
    ),
    "table-functions": frozenset(
        """
add_parquet_key arrow_scan arrow_scan_dumb checkpoint collations copy_database create_external_resource
database_list database_size deregister_external_resource destroy_external_resource
disable_checkpoint_on_shutdown disable_logging disable_object_cache disable_optimizer
disable_print_progress_bar disable_profile disable_profiling disable_progress_bar disable_verification
disable_verify_parallelism duckdb_approx_database_count duckdb_available_metrics duckdb_columns
duckdb_connection_count duckdb_constraints duckdb_coordinate_systems duckdb_databases duckdb_dependencies
duckdb_dialects duckdb_eviction_queues duckdb_extension_repositories duckdb_extensions
duckdb_external_file_cache duckdb_external_resource_types duckdb_external_resources duckdb_functions
duckdb_grammar_extensions duckdb_indexes duckdb_keywords duckdb_log_contexts duckdb_logs duckdb_logs_parsed
duckdb_memory duckdb_optimizers duckdb_prepared_statements duckdb_profiling_settings duckdb_schemas
duckdb_secret_type_parameters duckdb_secret_types duckdb_secrets duckdb_sequences duckdb_settings
duckdb_table_sample duckdb_tables duckdb_temporary_files duckdb_triggers duckdb_types duckdb_variables
duckdb_views enable_checkpoint_on_shutdown enable_logging enable_object_cache enable_optimizer
enable_print_progress_bar enable_profile enable_profiling enable_progress_bar enable_verification
extension_versions force_checkpoint functions glob histogram_values import_database json_each json_tree
metadata_info pandas_scan parquet_bloom_probe parquet_file_metadata parquet_full_metadata
parquet_kv_metadata parquet_metadata parquet_scan parquet_schema platform pragma_collations
pragma_database_size pragma_metadata_info pragma_platform pragma_show pragma_storage_info pragma_table_info
pragma_user_agent pragma_version python_arrow_scan read_blob read_csv read_csv_auto read_duckdb read_json
read_json_auto read_json_objects read_json_objects_auto read_ndjson read_ndjson_auto read_ndjson_objects
read_parquet read_single_csv_file read_single_json_file read_single_parquet_file read_text
register_external_resource register_external_resource_type repeat_row seq_scan show show_databases
show_tables show_tables_expanded sniff_csv storage_info summary table_info test_all_types test_vector_types
truncate_duckdb_logs user_agent verify_parallelism which_secret
""".split()
    ),
    "time-zone": frozenset(
        """
icu_calendar_names make_timestamptz pg_timezone_names timetz_byte_comparable timezone timezone_hour
timezone_minute to_timestamp uuid_extract_timestamp
""".split()
    ),
    "unjudged": frozenset(
        """
formatreadabledecimalsize formatreadablesize
""".split()
    ),
}
# As sqlglot reads the functions above: node class, then its arguments, as in permitted.py.
NODES = """
Abs this; Acos this; Acosh this; AnyValue this; ApproxDistinct this; ApproxQuantile quantile this; ArgMax
count expression this; ArgMin count expression this; Array expressions; ArrayAgg this; ArrayAppend
expression this; ArrayConcat expressions this; ArrayContains expression this; ArrayContainsAll expression
this; ArrayDistinct this; ArrayFilter expression this; ArrayIntersect expressions; ArrayMax this; ArrayMin
this; ArrayOverlaps expression this; ArrayPosition expression this; ArrayPrepend expression this;
ArrayReverse this; ArraySize expression this; ArraySlice end start step this; ArraySort asc nulls_first
this; ArrayToString expression this; Ascii this; Asin this; Asinh this; Atan this; Atan2 expression this;
Atanh this; Avg this; BitLength this; BitwiseAndAgg this; BitwiseOrAgg this; BitwiseXorAgg this; Cbrt this;
Ceil this; Chr expressions; Concat coalesce? expressions safe?; ConcatWs coalesce? expressions safe?;
Contains expression this; Corr expression this; Cos this; Cosh this; CosineDistance expression this; Cot
this; Count big_int? this; CountIf this; CovarPop expression this; CovarSamp expression this; CumeDist;
DateAdd expression this; DateBin expression this unit; DateDiff expression this unit; DateFromParts day
month year; Day this; DayOfMonth this; DayOfWeek this; DayOfWeekIso this; DayOfYear this; Dayname this;
Decode charset this; Degrees this; DenseRank; Encode charset this; EndsWith expression this;
EuclideanDistance expression this; Exp this; Explode this; Factorial this; First this; FirstValue this;
Flatten this; Floor this; Format expressions this; FromBase64 this; FromJson expression this; GenerateSeries
end is_end_exclusive? start step; Greatest expressions ignore_nulls? this; GroupConcat separator this; Hex
this; Hour this; If false this true; IsInf this; IsNan this; JSONArray expressions; JSONExtract expression
this; JSONExtractScalar expression this; JSONKeys expression this; JSONObject expressions; JSONRemove
expressions this; JSONSet expressions this; JSONStripNulls this; JSONType expression this;
JarowinklerSimilarity case_insensitive expression this; Kurtosis this; Lag default offset this; Last this;
LastDay this; LastValue this; Lead default offset this; Least expressions ignore_nulls? this; Left
expression this; Length this; Levenshtein expression this; Ln this; Log expression this; LogicalAnd this;
LogicalOr this; Lower this; MD5 this; Map keys values; MapFromEntries this; MapKeys this; Max count this;
Median this; Min count this; Minute this; Mode this; Month this; Monthname this; NthValue offset this; Ntile
this; Nullif expression this; Overlay expression for_ from_ this; Pad expression fill_pattern is_left? this;
ParseJSON this; PercentRank; PercentileCont expression this; PercentileDisc expression this; Pi; Pow
expression this; Quantile quantile this; Quarter this; Radians this; Rank; RegexpExtract expression group
null_if_pos_overflow? parameters this; RegexpExtractAll expression group parameters this; RegexpFullMatch
expression options this; RegexpLike expression flag this; RegexpReplace expression modifiers replacement
single_replace? this; RegexpSplit expression limit this; RegrAvgx expression this; RegrAvgy expression this;
RegrCount expression this; RegrIntercept expression this; RegrR2 expression this; RegrSlope expression this;
RegrSxx expression this; RegrSxy expression this; RegrSyy expression this; Repeat this times; Replace
expression replacement this; Reverse this; Right expression this; Round decimals this; RowNumber; SHA this;
SHA2 length this; Second this; Sign this; Sin this; Sinh this; Skewness this; Split expression this;
SplitPart delimiter part_index this; Sqrt this; StartsWith expression this; Stddev this; StddevPop this;
StddevSamp this; StrPosition substr this; StrToTime format this; Struct expressions; StructExtract
expression this; Substring length start this; Sum this; Tan this; Tanh this; TimeFromParts hour min sec;
TimeToStr format this; TimeToUnix this; TimestampFromParts day hour min month sec year; TimestampTrunc this
unit; ToBase64 this; ToBinary this; ToDays this; Transform expression this; Translate from_ this to; Trim
expression position this; Trunc decimals this; Typeof this; Unhex this; Unicode this; UnixToTime scale this;
Upper this; Variance this; VariancePop this; Week this; WeekOfYear this; Year this
"""
