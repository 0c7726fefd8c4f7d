#include "promql/files/files.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/quote.h"
#include "promql/profiles/profiles.h"
#include "promql/syntax/type_names.h"
#include "proto/any/any.h"
#include "tsdb/symbols/partition.h"

#define NODES_MAX (8u << 20) /* of a file, as the other two: what pprof's limits let in is less */
#define STRINGS_MAX (4u << 20)
#define LABEL_SETS_MAX (1u << 20)
#define SYMBOLS_BYTES_MAX ((uint64_t)512 << 20)
#define KNOWN_TYPES_SHOWN 20u /* in an error */

struct open_file {
	struct open_file *next;
	struct str name;
	struct any_file any;
	struct partition *partition;
	struct interned *ids; /* of each profile */
	size_t charged_bytes;
};

struct file_set {
	const struct file_finder *finder;
	struct budget *memory;
	struct open_file *files;
};

enum err_code file_set_open(
	const struct file_finder *finder, struct budget *memory, struct file_set **out, struct err *err)
{
	struct file_set *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, "files");
	s->finder = finder;
	s->memory = memory;
	*out = s;
	return ERR_OK;
}

void file_set_close(struct file_set *s)
{
	if (!s)
		return;
	for (struct open_file *f = s->files; f; f = f->next) {
		partition_close(f->partition);
		if (s->memory)
			budget_give(s->memory, f->charged_bytes);
	}
	free(s);
}

/* ---- reading ---- */

/* Symbols are not in the query's arena: they are charged once they are there. */
static enum err_code files_intern(
	struct work *work, struct file_set *s, struct open_file *f, struct err *err)
{
	static const struct symbol_limits limits = {
		.nodes_max = NODES_MAX,
		.strings_max = STRINGS_MAX,
		.label_sets_max = LABEL_SETS_MAX,
		.bytes_max = SYMBOLS_BYTES_MAX,
	};
	enum err_code rc = partition_open(f->name, 0, 0, &limits, &f->partition, err);
	size_t bytes;

	if (rc)
		return rc;
	if (!(f->ids = arena_array(work->whole, struct interned, f->any.n)))
		return arena_fail(work->whole, "file", err);
	mutex_lock(&f->partition->lock);
	for (uint32_t i = 0; i < f->any.n && !rc; i++)
		rc = sym_intern_profile(
			f->partition, f->any.v[i].pprof, f->any.v[i].kinds, work->whole, &f->ids[i], err);
	mutex_unlock(&f->partition->lock);
	bytes = atomic_load(&f->partition->bytes);
	if (rc || !s->memory)
		return rc;
	if (!budget_take(s->memory, bytes))
		return budget_fail(s->memory, "the file's symbols", err);
	f->charged_bytes = bytes;
	return ERR_OK;
}

static enum err_code files_read_file(
	struct work *work, struct file_set *s, struct str name, struct open_file **out, struct err *err)
{
	struct found_file found = { .name = name };
	struct open_file *f;
	enum err_code rc;

	if (!s)
		return err_set(err, ERR_NOT_FOUND, "the query has no files");
	for (f = s->files; f; f = f->next)
		if (str_eq(f->name, name)) {
			*out = f;
			return ERR_OK;
		}
	if (!(f = arena_new(work->whole, struct open_file)))
		return arena_fail(work->whole, "file", err);
	if ((rc = s->finder->find(s->finder->ctx, name, work->whole, &found, err)))
		return rc;
	f->name = str_dup(work->whole, name);
	if (!f->name.ptr)
		return arena_fail(work->whole, "file", err);
	if ((rc = any_decode(work->whole, found.bytes, found.name, &f->any, err)))
		return rc;
	for (uint32_t i = 0; i < f->any.notes_n; i++)
		if ((rc = work_info(
				 work, err, "file %s: " STR_FMT, QUOTED(name), STR_ARG(f->any.notes[i]))))
			return rc;
	rc = files_intern(work, s, f, err);
	f->next = s->files; /* the partition is the set's to close, whatever happened */
	s->files = f;
	if (!rc)
		*out = f;
	return rc;
}

/* ---- types ---- */

/* A column of one of the file's profiles. */
struct column {
	const struct any_profile *profile;
	const struct interned *ids;
	uint32_t at;
	struct profile_type type;
};

static struct profile_type files_type_of(const struct any_profile *p, uint32_t i)
{
	const struct pprof *f = p->pprof;

	return (struct profile_type){
		.name = p->name,
		.sample_type = f->strings[f->types[i].type],
		.sample_unit = f->strings[f->types[i].unit],
		.period_type = f->strings[f->period_type.type],
		.period_unit = f->strings[f->period_type.unit],
		.delta = p->kinds[i] != KIND_GAUGE,
	};
}

static void open_file_print_types(const struct open_file *f, struct buf *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < f->any.n; i++)
		for (uint32_t k = 0; k < f->any.v[i].pprof->types_n; k++) {
			struct profile_type t = files_type_of(&f->any.v[i], k);

			if (n++ == KNOWN_TYPES_SHOWN) {
				buf_printf(out, ", ...");
				return;
			}
			buf_printf(out, "%s" STR_FMT ":" STR_FMT, n > 1 ? ", " : "", STR_ARG(t.name),
				STR_ARG(t.sample_type));
		}
}

static enum err_code files_choose_default(
	struct work *work, const struct open_file *f, struct column *out, struct err *err)
{
	const struct any_profile *p = any_default(&f->any);
	struct profile_type *types;

	if (!(types = arena_array(work->arena, struct profile_type, p->pprof->types_n)))
		return work_nomem(work, err);
	for (uint32_t i = 0; i < p->pprof->types_n; i++)
		types[i] = files_type_of(p, i);
	*out = (struct column){ .profile = p, .ids = &f->ids[p - f->any.v] };
	out->at = (uint32_t)type_default(
		types, p->pprof->types_n, p->pprof->strings[p->pprof->default_sample_type]);
	out->type = types[out->at];
	return ERR_OK;
}

/* The first one of that type: files have each type once, but for recordings of Java. */
static enum err_code files_choose_column(struct work *work, const struct open_file *f,
	struct str wanted, struct column *out, struct err *err)
{
	struct type_pattern pattern;
	bool has_pattern = type_pattern_parse(wanted, &pattern);
	struct buf known = { 0 };

	if (!wanted.len)
		return files_choose_default(work, f, out, err);
	for (uint32_t i = 0; i < f->any.n; i++)
		for (uint32_t k = 0; k < f->any.v[i].pprof->types_n; k++) {
			struct profile_type t = files_type_of(&f->any.v[i], k);

			if (!str_eq(t.sample_type, wanted) &&
				!(has_pattern && pattern.parts > 1 && type_pattern_match(&pattern, &t)))
				continue;
			*out = (struct column){ &f->any.v[i], &f->ids[i], k, t };
			return ERR_OK;
		}
	open_file_print_types(f, &known);
	err_set(err, ERR_INVALID, "the file has no type %s; it has " STR_FMT, QUOTED(wanted),
		STR_ARG(buf_str(&known)));
	buf_release(&known);
	return ERR_INVALID;
}

/* ---- values ---- */

/* *size: the sum of samples' magnitudes, which is more than that of cells where signs differ. */
static enum err_code files_add_cells(
	struct work *work, const struct column *c, struct part *part, int64_t *size, struct err *err)
{
	const struct pprof *f = c->profile->pprof;

	*size = 0;
	if (!(part->cells = arena_alloc_raw(work->arena, (size_t)c->ids->n + 1, sizeof(*part->cells))))
		return work_nomem(work, err);
	for (uint32_t i = 0; i < c->ids->n; i++) {
		int64_t v = f->values[(size_t)c->ids->samples[i] * f->types_n + c->at];
		struct cell cell = { .stack = (uint32_t)(c->ids->keys[i] >> 32),
			.label_set = (uint32_t)c->ids->keys[i],
			.value = v };
		struct cell *last = part->n ? &part->cells[part->n - 1] : NULL;

		if (!v)
			continue;
		if (v == INT64_MIN || __builtin_add_overflow(*size, v < 0 ? -v : v, size))
			return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
		if (!last || last->stack != cell.stack || last->label_set != cell.label_set)
			part->cells[part->n++] = cell;
		else if (__builtin_add_overflow(last->value, v, &last->value))
			return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	}
	return ERR_OK;
}

/* Files say anything: sums and differences of two such times fit. */
static int64_t files_sane(int64_t ns)
{
	return ns > 0 && ns < TIME_MAX_NS ? ns : 0;
}

static enum err_code files_make_value(struct work *work, struct open_file *f,
	const struct column *c, struct profile_value *out, struct err *err)
{
	const struct pprof *from = c->profile->pprof;
	int64_t began = files_sane(from->time_nanos), duration = files_sane(from->duration_nanos);
	struct part *part = arena_new(work->arena, struct part);
	uint32_t *header = arena_new(work->arena, uint32_t);
	struct labels_builder b;
	enum err_code rc;
	int64_t size;

	if (!part || !header)
		return work_nomem(work, err);
	*header = c->ids->header;
	*part = (struct part){ .partition = f->partition, .headers = header, .headers_n = 1 };
	part->headers_plain = sym_header(f->partition, *header)->drop_frames ? 0 : 1;
	*out = (struct profile_value){ .type = c->type,
		.parts = part,
		.parts_n = 1,
		.profiles = 1,
		.time_nanos = began,
		.duration_nanos = duration,
		.period = from->period,
		.start_ns = began,
		.end_ns = began + duration,
		.elapsed_ns = duration,
		.profiled_ns = duration };
	labels_builder_init(&b, work->arena, (struct labels){ 0 });
	labels_builder_set(&b, STR(LABEL_NAME), c->type.name);
	if ((rc = labels_builder_build(&b, &out->metric, err)) ||
		(rc = files_add_cells(work, c, part, &size, err)) || (rc = profile_totals(out, err)))
		return rc;
	if (size == out->value_size)
		return ERR_OK;
	out->filtered = true; /* as the tool has it of a file whose equal samples cancel out */
	out->value_size = size;
	return profile_totals(out, err);
}

enum err_code files_value(struct work *work, struct file_set *set, const struct expr *e,
	struct str name, struct str type, struct value *out, struct err *err)
{
	struct err why = { 0 };
	struct open_file *f = NULL;
	struct column c = { 0 };
	enum err_code rc;

	if (work->steps)
		return work_fault(work, e, err, ERR_INVALID,
			"a file has no cost over time: file() is for queries at one time");
	*out = (struct value){ .type = VALUE_PROFILES };
	if (!(out->profiles = arena_new(work->arena, struct profile_value)))
		return work_nomem(work, err);
	if ((rc = files_read_file(work, set, name, &f, &why)) ||
		(rc = files_choose_column(work, f, type, &c, &why)) ||
		(rc = files_make_value(work, f, &c, out->profiles, &why)))
		return work_fault(work, e, err, rc, "file %s: %s", QUOTED(name), why.msg);
	out->n = 1;
	return work_check(work, err);
}
