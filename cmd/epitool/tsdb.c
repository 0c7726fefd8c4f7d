/*
 * epitool tsdb: the content of a data directory. The directory may be a running server's:
 * nothing in it is written (repair.c does write).
 *
 *	list      windows and blocks
 *	analyze   where the bytes of blocks go
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/self/flags.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/tsdb_blocks.h"
#include "tsdb/db.h"

#define CACHE_BYTES (16u << 20)
#define DIR_DEFAULT "data/"

static int tsdb_fail(const struct err *err)
{
	fprintf(stderr, "epitool: error: %s\n", err->msg);
	return EXIT_FAILED;
}

/* The directory is the only argument of all; -1: go on. */
int tsdb_flags(struct flag *flags, size_t n, int argc, char **argv, const char *usage,
	const char *about, const char **dir)
{
	const char *args[1];
	size_t args_n = 0;
	int rc = output_read_flags(flags, n, argc, argv, usage, about, args, 0, 1, &args_n);

	if (rc < 0)
		*dir = args_n ? args[0] : DIR_DEFAULT;
	return rc;
}

static enum err_code tsdb_open_db(const char *dir, struct db **db, struct err *err)
{
	struct db_options o;

	db_options_default(&o);
	o.dir = dir;
	o.read_only = true;
	return db_open(&o, db, err);
}

static void tsdb_write_output(const struct buf *b)
{
	fwrite(b->ptr, 1, b->len, stdout);
}

static void tsdb_add_count(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static void tsdb_add_time(struct buf *out, int64_t ns)
{
	time_print_rfc3339(out, ns / NS_PER_S * NS_PER_S);
}

/* ---- list ---- */

static void tsdb_list_json(struct buf *out, const struct db_block_status *d, size_t n)
{
	struct json j;

	json_init(&j, out);
	json_array(&j);
	for (size_t i = 0; i < n; i++) {
		json_object(&j);
		json_key(&j, "ulid");
		json_cstr(&j, d[i].ulid);
		json_key(&j, "min_ns");
		json_i64(&j, d[i].min_ns);
		json_key(&j, "max_ns");
		json_i64(&j, d[i].max_ns);
		tsdb_add_count(&j, "level", d[i].level);
		tsdb_add_count(&j, "series", d[i].series);
		tsdb_add_count(&j, "rows", d[i].rows);
		tsdb_add_count(&j, "samples", d[i].samples);
		tsdb_add_count(&j, "numbers", d[i].numbers);
		tsdb_add_count(&j, "bytes", d[i].bytes);
		json_key(&j, "raw");
		json_bool(&j, d[i].raw);
		json_key(&j, "damaged");
		json_bool(&j, d[i].damaged);
		json_object_end(&j);
	}
	json_array_end(&j);
	buf_add_char(out, '\n');
}

static void tsdb_list_text(struct buf *out, const struct db_block_status *d, size_t n)
{
	buf_printf(out, "%-26s  %-20s  %-20s %5s %8s %10s %12s %12s %14s\n", "BLOCK", "FROM", "TO",
		"LEVEL", "SERIES", "PROFILES", "SAMPLES", "NUMBERS", "BYTES");
	for (size_t i = 0; i < n; i++) {
		const struct db_block_status *b = &d[i];
		struct buf from = { 0 }, to = { 0 };

		tsdb_add_time(&from, b->min_ns);
		tsdb_add_time(&to, b->max_ns);
		buf_printf(out,
			"%-26s  %-20.*s  %-20.*s %5" PRIu32 " %8" PRIu64 " %10" PRIu64 " %12" PRIu64
			" %12" PRIu64 " %14" PRIu64 "%s%s\n",
			b->ulid[0] ? b->ulid : "(head)", STR_ARG(buf_str(&from)), STR_ARG(buf_str(&to)),
			b->level, b->series, b->rows, b->samples, b->numbers, b->bytes,
			b->raw ? "" : "  sums only", b->damaged ? "  DAMAGED" : "");
		buf_release(&from);
		buf_release(&to);
	}
}

int tsdb_list(int argc, char **argv)
{
	bool as_json = false;
	struct flag flags[] = { { "json", FLAG_BOOL, &as_json, NULL, "For programs." } };
	struct db_block_status *v;
	struct buf out = { 0 };
	struct db *db = NULL;
	struct arena a;
	struct err err;
	const char *dir;
	int rc = tsdb_flags(
		flags, 1, argc, argv, "tsdb list [--json] [DIR]", "Windows and blocks.", &dir);
	size_t n = 0;

	if (rc >= 0)
		return rc;
	if (tsdb_open_db(dir, &db, &err))
		return tsdb_fail(&err);
	arena_init(&a, 0);
	if (db_list(db, &a, &v, &n, &err)) {
		rc = tsdb_fail(&err);
	} else {
		if (as_json)
			tsdb_list_json(&out, v, n);
		else
			tsdb_list_text(&out, v, n);
		tsdb_write_output(&out);
		rc = 0;
	}
	buf_release(&out);
	arena_release(&a);
	db_close(db);
	return rc;
}

/* ---- blocks of a directory, one after the other ---- */

int tsdb_each_block(const char *dir, tsdb_block_fn fn, tsdb_skip_fn skip, void *ctx)
{
	struct store_cache *cache = store_cache_open(CACHE_BYTES);
	struct arena a;
	struct str *names;
	struct err err;
	size_t n = 0;
	char *blocks;
	int rc = 0;

	arena_init(&a, 0);
	blocks = path_join(&a, str_of(dir), STR("blocks"));
	if (!cache || !blocks) {
		err_set(&err, ERR_NOMEM, "out of memory");
		rc = tsdb_fail(&err);
	} else if (!fs_exists(dir)) {
		err_set(&err, ERR_NOT_FOUND, "%s: no such directory", dir);
		rc = tsdb_fail(&err);
	} else if (fs_exists(blocks) && fs_list(blocks, &a, &names, &n, &err)) {
		rc = tsdb_fail(&err);
	}
	for (size_t i = 0; i < n; i++) {
		struct block *b = NULL;
		struct err damaged = { 0 };
		struct ulid ulid;
		char *path;

		if (!ulid_parse(names[i], &ulid)) /* on its way in or out */
			continue;
		if (skip && skip(ctx, names[i]))
			continue;
		path = path_join(&a, str_of(blocks), names[i]);
		if (!path || block_open(path, NULL, cache, &b, &damaged, &err)) {
			rc = tsdb_fail(&err);
			continue;
		}
		if (fn(ctx, b, damaged.code ? &damaged : NULL))
			rc = EXIT_FAILED;
		block_close(b);
	}
	arena_release(&a);
	store_cache_close(cache);
	return rc;
}

/* ---- analyze ---- */

/* clang-format off */
static const struct {
	const char *name, *what;
	size_t at;
} parts[] = {
#define PART(field, what) { #field, what, offsetof(struct block_sizes, field) }
	PART(rows, "raw rows"),
	PART(rollups_series[0], "hourly sums of series"),
	PART(rollups_series[1], "daily sums of series"),
	PART(rollups_group[0], "hourly sums of groups"),
	PART(rollups_group[1], "daily sums of groups"),
	PART(functions[0], "hourly totals of functions"),
	PART(functions[1], "daily totals of functions"),
	PART(links, "links of samples to spans"),
	PART(numbers, "values of numeric series"),
	PART(series, "series"),
	PART(postings, "postings"),
	PART(symbols[SYM_STRING], "symbols: strings"),
	PART(symbols[SYM_MAPPING], "symbols: mappings"),
	PART(symbols[SYM_FUNCTION], "symbols: functions"),
	PART(symbols[SYM_LOCATION], "symbols: locations"),
	PART(symbols[SYM_NODE], "symbols: stack nodes"),
	PART(symbols[SYM_LABEL_SET], "symbols: label sets"),
	PART(symbols[SYM_HEADER], "symbols: headers"),
	PART(meta, "meta"),
	PART(overhead, "pages and indexes"),
#undef PART
};
static const struct {
	const char *name, *what;
	size_t at;
} chunk_parts[] = {
#define PART(field, what) { #field, what, offsetof(struct chunk_sizes, field) }
	PART(heads, "rows' heads"),
	PART(ids, "stacks and label sets"),
	PART(positions, "which rows"),
	PART(values, "values"),
	PART(sums, "sums"),
#undef PART
};
/* clang-format on */
#define PARTS_N (sizeof(parts) / sizeof(parts[0]))
#define CHUNK_PARTS_N (sizeof(chunk_parts) / sizeof(chunk_parts[0]))

struct analysis {
	uint64_t bytes[PARTS_N], chunk_bytes[CHUNK_PARTS_N];
	uint64_t blocks, rows, samples, numbers, entries, nodes, damaged;
};

static uint64_t tsdb_field_at(const void *base, size_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)base + at, sizeof(v));
	return v;
}

static int tsdb_analyze_block(void *ctx, struct block *b, const struct err *damaged)
{
	struct analysis *x = ctx;
	struct block_sizes sizes = { 0 };
	struct err err;

	if (damaged)
		fprintf(stderr, "epitool: warning: %s: %s\n", block_dir(b), damaged->msg);
	if (block_measure(b, &sizes, &err)) {
		x->damaged++;
		return tsdb_fail(&err);
	}
	for (size_t i = 0; i < PARTS_N; i++)
		x->bytes[i] += tsdb_field_at(&sizes, parts[i].at);
	for (size_t i = 0; i < CHUNK_PARTS_N; i++)
		x->chunk_bytes[i] += tsdb_field_at(&sizes.chunks, chunk_parts[i].at);
	x->blocks++;
	x->rows += block_meta(b)->rows;
	x->samples += block_meta(b)->samples;
	x->numbers += block_meta(b)->numbers;
	x->nodes += block_meta(b)->nodes;
	x->entries += sizes.chunks.entries;
	return 0;
}

static void analysis_text(struct buf *out, const struct analysis *a)
{
	double samples = a->samples ? (double)a->samples : 1;
	uint64_t all = 0;

	for (size_t i = 0; i < PARTS_N; i++)
		all += a->bytes[i];
	buf_printf(out,
		"%" PRIu64 " blocks, %" PRIu64 " profiles, %" PRIu64 " samples, %" PRIu64
		" values of numeric series, %" PRIu64 " stack nodes, %" PRIu64
		" bytes\n\n%-32s %14s %8s %12s\n",
		a->blocks, a->rows, a->samples, a->numbers, a->nodes, all, "", "BYTES", "SHARE",
		"PER SAMPLE");
	for (size_t i = 0; i < PARTS_N; i++)
		if (a->bytes[i])
			buf_printf(out, "%-32s %14" PRIu64 " %7.1f%% %12.4f\n", parts[i].what, a->bytes[i],
				100.0 * (double)a->bytes[i] / (double)all, (double)a->bytes[i] / samples);
	buf_printf(out, "\nwithin raw rows\n");
	for (size_t i = 0; i < CHUNK_PARTS_N; i++)
		buf_printf(out, "  %-30s %14" PRIu64 " %8s %12.4f\n", chunk_parts[i].what,
			a->chunk_bytes[i], "", (double)a->chunk_bytes[i] / samples);
}

static void analysis_json(struct buf *out, const struct analysis *a)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	tsdb_add_count(&j, "blocks", a->blocks);
	tsdb_add_count(&j, "rows", a->rows);
	tsdb_add_count(&j, "samples", a->samples);
	tsdb_add_count(&j, "numbers", a->numbers);
	tsdb_add_count(&j, "nodes", a->nodes);
	json_key(&j, "bytes");
	json_object(&j);
	for (size_t i = 0; i < PARTS_N; i++)
		tsdb_add_count(&j, parts[i].name, a->bytes[i]);
	json_object_end(&j);
	json_key(&j, "chunk_bytes");
	json_object(&j);
	for (size_t i = 0; i < CHUNK_PARTS_N; i++)
		tsdb_add_count(&j, chunk_parts[i].name, a->chunk_bytes[i]);
	json_object_end(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}

int tsdb_analyze(int argc, char **argv)
{
	bool as_json = false;
	struct flag flags[] = { { "json", FLAG_BOOL, &as_json, NULL, "For programs." } };
	struct analysis x = { 0 };
	struct buf out = { 0 };
	const char *dir;
	int rc = tsdb_flags(
		flags, 1, argc, argv, "tsdb analyze [--json] [DIR]", "Where the bytes of blocks go.", &dir);

	if (rc >= 0)
		return rc;
	rc = tsdb_each_block(dir, tsdb_analyze_block, NULL, &x);
	if (as_json)
		analysis_json(&out, &x);
	else
		analysis_text(&out, &x);
	tsdb_write_output(&out);
	buf_release(&out);
	return rc;
}
