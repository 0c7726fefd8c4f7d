#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/gzip/gzip.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/self/flags.h"
#include "cmd/epitool/ask.h"
#include "cmd/epitool/epitool.h"
#include "promql/syntax/parse.h"
#include "proto/pprof.h"
#include "tsdb/columns/number_chunk.h"
#include "tsdb/db.h"

/*
 * epitool tsdb dump: rows as they are stored. As text a row is a line "# {labels} time" and below
 * it a line per sample: frames root first, its labels, its values; then a line per linked sample,
 * "span <trace id> <span id>" before it. Characters that do not print are
 * escaped (base/quote.h). As pprof each row is a file <number>.pb.gz, and one line of text names
 * its row. A numeric series is a line "# {labels}" and below it a line "time value" per value; as
 * pprof it is left out.
 */
#define FRAMES_MAX 4096u

struct dump_flags {
	const char *match, *start, *end, *output;
	int64_t start_ns, end_ns;
};

struct dump {
	struct dump_flags f;
	struct db_querier *q;
	struct arena arena, row_arena;
	struct buf out;
	uint64_t rows;
};

static enum err_code dump_flush(struct dump *d, struct err *err)
{
	if (fwrite(d->out.ptr, 1, d->out.len, stdout) != d->out.len || buf_failed(&d->out))
		return err_set(err, ERR_IO, "standard output: write failed");
	buf_clear(&d->out);
	return ERR_OK;
}

static void dump_add_stack(struct buf *out, const struct partition *p, uint32_t node)
{
	uint32_t path[FRAMES_MAX], n = 0;
	const char *between = "";

	for (; node && n < FRAMES_MAX; node = sym_node(p, node).parent)
		path[n++] = node;
	while (n-- > 0) {
		const struct sym_location l = sym_location(p, sym_node(p, path[n]).location);

		if (l.lines_n == 0 && sym_has_address(p, &l))
			buf_printf(out, "%s0x%" PRIx64, between, l.address);
		else if (l.lines_n == 0)
			buf_printf(out, "%s-", between);
		for (uint32_t i = l.lines_n; i-- > 0;) {
			const struct sym_function *fn = sym_function(p, l.lines[i].function);

			buf_add_cstr(out, i + 1 == l.lines_n ? between : ";");
			buf_add_printable(out, sym_string(p, fn->name));
		}
		between = ";";
	}
}

static void dump_add_type(struct buf *out, struct str type, struct str unit)
{
	buf_add_char(out, ' ');
	buf_add_printable(out, type);
	buf_add_char(out, '/');
	buf_add_printable(out, unit);
}

static void dump_add_head(struct buf *out, const struct db_series *s, const struct db_row *row)
{
	const struct sym_header *h = sym_header(s->partition, row->header);

	buf_add_cstr(out, "# ");
	labels_print(out, s->labels);
	buf_add_char(out, ' ');
	time_print_rfc3339(out, row->ts_ns);
	for (uint32_t c = 0; c < h->types_n; c++)
		dump_add_type(out, sym_string(s->partition, h->types[c].type),
			sym_string(s->partition, h->types[c].unit));
	buf_add_char(out, '\n');
}

static void dump_add_span(struct buf *out, const struct pprof_link *l)
{
	buf_add_cstr(out, "span ");
	for (size_t i = 0; i < sizeof(l->trace_id); i++)
		buf_printf(out, "%02x", l->trace_id[i]);
	buf_add_char(out, ' ');
	for (size_t i = 0; i < sizeof(l->span_id); i++)
		buf_printf(out, "%02x", l->span_id[i]);
	buf_add_char(out, ' ');
}

static void dump_add_samples(struct buf *out, const struct db_series *s, const struct db_row *row)
{
	uint32_t columns = sym_header(s->partition, row->header)->types_n;
	struct buf value = { 0 };

	for (size_t i = 0; i < row->n; i++) {
		struct sym_label_set set = sym_label_set(s->partition, row->label_sets[i]);

		if (row->spans)
			dump_add_span(out, &row->spans[row->span_of[i]]);
		dump_add_stack(out, s->partition, row->stacks[i]);
		for (uint32_t k = 0; k < set.n; k++) {
			struct str key = sym_string(s->partition, set.v[k].key);

			buf_clear(&value);
			sym_label_value(s->partition, row->label_sets[i], key, &value);
			buf_add_char(out, ' ');
			buf_add_printable(out, key);
			buf_add_char(out, '=');
			buf_add_printable(out, buf_str(&value));
		}
		for (uint32_t c = 0; c < columns; c++) {
			buf_add_char(out, ' ');
			buf_add_i64(out, row->values[(size_t)c * row->n + i]);
		}
		buf_add_char(out, '\n');
	}
	out->failed = out->failed || buf_failed(&value);
	buf_release(&value);
}

static enum err_code dump_write_pprof(
	struct dump *d, const struct db_series *s, const struct db_row *row, struct err *err)
{
	struct buf raw = { 0 }, bytes = { 0 };
	struct pprof *p;
	enum err_code rc;
	char *path;

	arena_reset(&d->row_arena);
	path = arena_printf(&d->row_arena, "%s/%" PRIu64 ".pb.gz", d->f.output, d->rows);
	if (!path)
		return arena_fail(&d->row_arena, "dump", err);
	if (!(rc = db_row_profile(s, row, &d->row_arena, &p, err)) &&
		!(rc = pprof_encode(p, &raw, err)) && !(rc = gzip_compress(buf_str(&raw), 6, &bytes, err)))
		rc = fs_write_file(&fs_posix, path, buf_str(&bytes), err);
	buf_release(&raw);
	buf_release(&bytes);
	buf_printf(&d->out, "%s ", path);
	return rc;
}

/* Links of the row at ts_ns, from an iterator that is at *at. */
static enum err_code dump_add_links(struct dump *d, const struct db_series *s,
	struct db_rows *links, int64_t ts_ns, const struct db_row **at, struct err *err)
{
	enum err_code rc = ERR_OK;

	while (!rc && (!*at || (*at)->ts_ns < ts_ns))
		rc = db_rows_next(links, at, err);
	if (!rc && (*at)->ts_ns == ts_ns) {
		dump_add_samples(&d->out, s, *at);
		if ((*at)->links_dropped)
			buf_printf(&d->out, "# %" PRIu64 " links were dropped\n", (*at)->links_dropped);
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code dump_series(struct dump *d, const struct db_series *s, struct err *err)
{
	const struct db_row *row, *linked = NULL;
	struct db_rows *rows, *links;
	enum err_code rc;

	rc = db_rows_open(d->q, s, d->f.start_ns, d->f.end_ns, &rows, err);
	if (rc)
		return rc;
	if ((rc = db_links_open(d->q, s, d->f.start_ns, d->f.end_ns, UINT64_MAX, &links, err))) {
		db_rows_close(rows);
		return rc;
	}
	while (!(rc = db_rows_next(rows, &row, err))) {
		d->rows++;
		if (d->f.output[0] && (rc = dump_write_pprof(d, s, row, err)))
			break;
		dump_add_head(&d->out, s, row);
		if (!d->f.output[0]) {
			dump_add_samples(&d->out, s, row);
			if ((rc = dump_add_links(d, s, links, row->ts_ns, &linked, err)))
				break;
		}
		if ((rc = dump_flush(d, err)))
			break;
	}
	db_rows_close(rows);
	db_rows_close(links);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* A numeric series: a head, then time and value per line. */
static enum err_code dump_numbers(struct dump *d, const struct db_series *s, struct err *err)
{
	double *values;
	int64_t *ts;
	enum err_code rc;
	size_t n;

	arena_reset(&d->row_arena);
	rc = db_numbers(d->q, s, d->f.start_ns, d->f.end_ns, &d->row_arena, &ts, &values, &n, err);
	if (rc || !n || d->f.output[0])
		return rc;
	buf_add_cstr(&d->out, "# ");
	labels_print(&d->out, s->labels);
	buf_add_cstr(&d->out, "\n");
	for (size_t i = 0; i < n && !rc; i++) {
		time_print_rfc3339(&d->out, ts[i]);
		buf_add_char(&d->out, ' ');
		if (number_is_stale(values[i]))
			buf_add_cstr(&d->out, "stale");
		else
			buf_add_double(&d->out, values[i]);
		buf_add_char(&d->out, '\n');
		rc = dump_flush(d, err);
	}
	return rc;
}

static enum err_code dump_all(struct dump *d, struct db *db, struct err *err)
{
	struct parsed *parsed = NULL;
	struct matcher *m = NULL;
	struct db_series *series;
	size_t n = 0, matchers = 0, warnings;
	struct buf said = { 0 };
	const struct str *warning;
	enum err_code rc;

	if (d->f.match[0]) {
		rc = parse_selector(&d->arena, str_of(d->f.match), &parsed, NULL, err);
		if (rc)
			return err_wrap(err, rc, "--match");
		matchers = parsed->root->selector.matchers_n;
		m = arena_array(&d->arena, struct matcher, matchers + 1);
		if (!m) {
			parsed_release(parsed);
			return arena_fail(&d->arena, "dump", err);
		}
		for (size_t i = 0; i < matchers; i++)
			m[i] = parsed->root->selector.matchers[i];
		if (parsed->root->selector.name.len)
			m[matchers++] = (struct matcher){ .op = MATCH_EQ,
				.name = STR(LABEL_NAME), .value = parsed->root->selector.name };
	}
	rc = db_querier_open(db, d->f.start_ns, d->f.end_ns, NULL, &d->q, err);
	if (!rc)
		rc = db_select(d->q, m, matchers, &d->arena, &series, &n, err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = series[i].numeric ? dump_numbers(d, &series[i], err) : dump_series(d, &series[i], err);
	warning = d->q ? db_querier_warnings(d->q, &warnings) : NULL;
	for (size_t i = 0; warning && i < warnings; i++)
		ask_add_notice(&said, false, warning[i]);
	fprintf(stderr, STR_FMT, STR_ARG(buf_str(&said)));
	buf_release(&said);
	db_querier_close(d->q);
	parsed_release(parsed);
	return rc;
}

static enum err_code dump_flags_read_times(struct dump_flags *f, struct err *err)
{
	enum err_code rc;

	f->start_ns = 0;
	f->end_ns = TIME_MAX_NS;
	if (f->start[0] && (rc = time_parse(str_of(f->start), &f->start_ns, err)))
		return err_wrap(err, rc, "--start");
	if (f->end[0] && (rc = time_parse(str_of(f->end), &f->end_ns, err)))
		return err_wrap(err, rc, "--end");
	return ERR_OK;
}

static enum err_code dump_run(struct dump *d, const char *dir, struct err *err)
{
	struct db_options o;
	struct db *db = NULL;
	enum err_code rc;

	if ((rc = dump_flags_read_times(&d->f, err)))
		return rc;
	if (d->f.output[0] && (rc = fs_mkdir_all(&fs_posix, d->f.output, err)))
		return rc;
	db_options_default(&o);
	o.dir = dir;
	o.read_only = true;
	if ((rc = db_open(&o, &db, err)))
		return rc;
	rc = dump_all(d, db, err);
	db_close(db);
	return rc;
}

int tsdb_dump(int argc, char **argv)
{
	struct dump x = { 0 };
	struct flag flags[] = {
		{ "match", FLAG_STRING, &x.f.match, "", "Selector of series: memory{job=\"api\"}." },
		{ "start", FLAG_STRING, &x.f.start, "", "Rows after this time (unix or RFC 3339)." },
		{ "end", FLAG_STRING, &x.f.end, "", "Rows up to this time." },
		{ "output", FLAG_STRING, &x.f.output, "",
			"Directory for a pprof file per row, instead of text.", 'o' },
	};
	const char *dir;
	struct err err;
	int rc = tsdb_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"tsdb dump [--match=SELECTOR] [-o DIR] [DIR]", "Rows as they are stored.", &dir);

	if (rc >= 0)
		return rc;
	arena_init(&x.arena, 0);
	arena_init(&x.row_arena, 0);
	rc = 0;
	if (dump_run(&x, dir, &err)) {
		fprintf(stderr, "epitool: error: %s\n", err.msg);
		rc = EXIT_FAILED;
	}
	arena_release(&x.row_arena);
	arena_release(&x.arena);
	buf_release(&x.out);
	return rc;
}
