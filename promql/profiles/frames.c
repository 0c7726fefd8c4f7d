/* Fields of frames, groups, and the groups of each location. */
#include "promql/profiles/frames_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "promql/profiles/frame.h"
#include "proto/report/frame_text.h"
#include "tsdb/symbols/shown.h"

enum err_code frames_open(
	struct work *work, const struct frames_options *o, struct frames **out, struct err *err)
{
	struct frames *f = calloc(1, sizeof(*f));

	if (!f)
		return work_nomem(work, err);
	f->work = work;
	f->o = *o;
	f->by_name = o->as_pprof || o->fields == FRAME_BIT(FRAME_FUNCTION);
	for (size_t i = 0; i < o->matchers_n; i++)
		f->by_name &= str_is(o->matchers[i].name, frame_field_name(FRAME_FUNCTION));
	map_init(&f->map);
	*out = f;
	return ERR_OK;
}

void frames_close(struct frames *f)
{
	if (!f)
		return;
	if (f->work->budget)
		budget_give(f->work->budget, f->charged);
	map_release(&f->map);
	free(f->flat);
	free(f->cum);
	free(f->touched);
	free(f->is_touched);
	free(f->nodes);
	free(f->met);
	free(f->steps);
	free(f);
}

const struct frame_group *frames_group(const struct frames *f, uint32_t group)
{
	return &f->groups[group];
}

/* ---- fields of a frame ---- */

static struct str frames_print_str(struct frames *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

static struct str frames_print_str(struct frames *f, const char *fmt, ...)
{
	char text[64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return str_dup(f->work->arena, (struct str){ text, n > 0 ? (size_t)n : 0 });
}

static struct str frames_mapping_file(const struct partition *p, const struct sym_location *l)
{
	return l->mapping == SYM_NONE ? STR("") : sym_string(p, sym_mapping(p, l->mapping)->filename);
}

static struct str frames_field_of(struct frames *f, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line, enum frame_field field)
{
	const struct sym_function *fn = line ? sym_function(p, line->function) : NULL;
	struct str file;

	switch (field) {
	case FRAME_FUNCTION:
		return frame_name(f->work->arena, p, l, line);
	case FRAME_SYSTEM_NAME:
		return fn ? sym_string(p, fn->system_name) : STR("");
	case FRAME_FILENAME:
		file = fn ? frame_file_cut(sym_string(p, fn->filename), STR(""), STR("")) : STR("");
		return frame_file_clean(f->work->arena, file, &file) ? file : STR("");
	case FRAME_LINE:
		return line && line->line ? frames_print_str(f, "%" PRId64, line->line) : STR("");
	case FRAME_ADDRESS:
		return sym_has_address(p, l) ? frames_print_str(f, "0x%" PRIx64, l->address) : STR("");
	case FRAME_MAPPING:
		return frames_mapping_file(p, l);
	case FRAME_BUILD_ID:
		return l->mapping == SYM_NONE ? STR("") :
										sym_string(p, sym_mapping(p, l->mapping)->build_id);
	case FRAME_FIELDS:
		break;
	}
	return STR("");
}

static bool frames_matches(struct frames *f, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line)
{
	for (size_t i = 0; i < f->o.matchers_n; i++) {
		const struct matcher *m = &f->o.matchers[i];
		enum frame_field field = frame_field_find(m->name);
		bool yes = matcher_test(m, frames_field_of(f, p, l, line, field));

		if (field == FRAME_FUNCTION && line)
			yes = frame_symbol_matches(m, p, sym_function(p, line->function), yes);
		if (!yes)
			return false;
	}
	return true;
}

/* ---- groups ---- */

static bool frames_group_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct frame_group *a = key, *b = &((const struct frames *)ctx)->groups[id];

	for (unsigned i = 0; i < FRAME_FIELDS; i++)
		if (!str_eq(a->v[i], b->v[i]))
			return false;
	return str_eq(a->objfile, b->objfile) && a->start_line == b->start_line;
}

enum err_code frames_intern(
	struct frames *f, const struct frame_group *key, uint32_t *out, struct err *err)
{
	uint64_t hash = hash_bytes(key->objfile.ptr, key->objfile.len, (uint64_t)key->start_line);
	uint32_t id;

	for (unsigned i = 0; i < FRAME_FIELDS; i++)
		if (key->v[i].len)
			hash = hash_bytes(key->v[i].ptr, key->v[i].len, hash + i);
	id = map_find(&f->map, hash, frames_group_eq, f, key);
	if (id == MAP_NONE) {
		if (!arena_array_room(f->work->arena, &f->groups, f->groups_n, 1, &f->groups_cap))
			return work_nomem(f->work, err);
		id = (uint32_t)f->groups_n;
		if (!map_add(&f->map, hash, id))
			return work_nomem(f->work, err);
		f->groups[f->groups_n++] = *key;
	}
	*out = id;
	return ERR_OK;
}

static enum err_code frames_group_of_frame(struct frames *f, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line, uint32_t *out, struct err *err)
{
	struct frame_group key = { 0 };

	if (!frames_matches(f, p, l, line)) {
		*out = GROUP_NONE;
		return ERR_OK;
	}
	for (unsigned i = 0; i < FRAME_FIELDS && !f->o.as_pprof; i++)
		if (f->o.fields & FRAME_BIT(i))
			key.v[i] = frames_field_of(f, p, l, line, (enum frame_field)i);
	if (f->o.as_pprof) {
		const struct sym_function *fn = line ? sym_function(p, line->function) : NULL;

		key.v[FRAME_FUNCTION] = frames_field_of(f, p, l, line, FRAME_FUNCTION);
		if (!fn || !sym_function_name(p, fn).len) {
			key.objfile = frames_mapping_file(p, l);
			key.start_line = fn ? fn->start_line : 0;
		}
	}
	return frames_intern(f, &key, out, err);
}

/* ---- locations ---- */

enum err_code frames_partition(
	struct frames *f, struct partition *p, struct frames_of **out, struct err *err)
{
	struct frames_of *t = f->partitions;
	struct shown_names *shown = NULL;
	uint32_t *grown, n;
	enum err_code rc;

	while (t && t->partition != p)
		t = t->next;
	if (!t) {
		if (!(t = arena_new(f->work->arena, struct frames_of)))
			return work_nomem(f->work, err);
		t->partition = p;
		t->next = f->partitions;
		f->partitions = t;
	}
	/* More may have been read since the last sum. */
	if (!t->first || sym_locations_n(p) > t->first_n) {
		n = sym_locations_n(p);
		n += t->first ? n / 2 : 0;
		if (!(grown = arena_array(f->work->arena, uint32_t, (size_t)n + 1)))
			return work_nomem(f->work, err);
		if (t->first)
			memcpy(grown, t->first, t->first_n * sizeof(*grown));
		t->first = grown;
		t->first_n = n;
		/* Functions of the stacks were there when these were read, so all of them are known. */
		if (f->by_name && !sym_has_own_functions(p) && (rc = shown_of(p, &shown, err)))
			return rc;
		t->shown = shown;
	}
	*out = t;
	return ERR_OK;
}

/* Each frame is of a function that is shown like no other. */
static bool frames_is_plain(const struct frames_of *o, const struct sym_location *l)
{
	if (!o->shown || l->lines_n == 0)
		return false;
	for (uint32_t i = 0; i < l->lines_n; i++) {
		uint32_t function = l->lines[i].function;

		if (!shown_is_alone(o->shown, function) ||
			!sym_function_name(o->partition, sym_function(o->partition, function)).len)
			return false;
	}
	return true;
}

enum err_code frames_look_up(
	struct frames *f, struct frames_of *o, uint32_t location, struct err *err)
{
	const struct sym_location l = sym_location(o->partition, location);
	uint32_t n = l.lines_n ? l.lines_n : 1, *grown, *at;
	enum err_code rc;

	if (f->ids_n + n + 1 > f->ids_cap) {
		f->ids_cap = (f->ids_cap + n) * 2 + 1024;
		grown = arena_alloc_raw(f->work->arena, f->ids_cap, sizeof(*grown));
		if (!grown)
			return work_nomem(f->work, err);
		if (f->ids_n)
			memcpy(grown, f->ids, f->ids_n * sizeof(*grown));
		f->ids = grown;
	}
	at = f->ids + f->ids_n;
	at[0] = n << HEAD_N_SHIFT | (frames_is_plain(o, &l) ? HEAD_PLAIN : 0);
	for (uint32_t i = 0; i < n; i++)
		if ((rc = frames_group_of_frame(
				 f, o->partition, &l, l.lines_n ? &l.lines[i] : NULL, &at[i + 1], err)))
			return rc;
	o->first[location] = (uint32_t)f->ids_n + 1;
	f->ids_n += n + 1;
	return ERR_OK;
}
