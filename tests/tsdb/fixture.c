#include "tests/tsdb/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/thread.h"
#include "tests/scratch.h"
#include "tsdb/catalog/state.h"
#include "tsdb/db.h"

bool fixture_reopen(struct fixture *f)
{
	db_close(f->db);
	f->db = NULL;
	f->o.dir = f->dir;
	if (db_open(&f->o, &f->db, &f->err)) {
		printf("  %s\n", f->err.msg);
		return false;
	}
	return true;
}

bool fixture_open(struct fixture *f)
{
	log_set(LOG_ERROR + 1, LOG_LOGFMT);
	*f = (struct fixture){ 0 };
	/* In memory where that is to be had: what others do to the disk is not tested here. */
	snprintf(f->dir, sizeof(f->dir), SCRATCH "epimetheus-tsdb-XXXXXX");
	arena_init(&f->arena, 0);
	if (!scratch_dir(f->dir))
		return false;
	db_options_default(&f->o);
	return fixture_reopen(f);
}

void fixture_close(struct fixture *f)
{
	db_close(f->db);
	f->db = NULL;
	if (fs_remove_tree(&fs_posix, f->dir, &f->err))
		printf("  %s\n", f->err.msg);
	arena_release(&f->arena);
}

void fixture_maintain(struct fixture *f)
{
	db_maintain(f->db, true);
}

struct labels labels_of(struct arena *a, const char *name, const char *job, const char *instance)
{
	struct labels_builder b;
	struct labels out = { 0 };

	labels_builder_init(&b, a, (struct labels){ 0 });
	labels_builder_set(&b, STR(LABEL_NAME), str_of(name));
	labels_builder_set(&b, STR("job"), str_of(job));
	labels_builder_set(&b, STR("instance"), str_of(instance));
	if (labels_builder_build(&b, &out, NULL))
		abort();
	return labels_dup(a, out);
}

/* ---- profiles by hand ---- */

static struct str next_word(struct str *s, char until)
{
	struct str word = *s;
	const char *end = s->len ? memchr(s->ptr, until, s->len) : NULL;

	if (end) {
		word.len = (size_t)(end - s->ptr);
		s->ptr = end + 1;
		s->len -= word.len + 1;
	} else {
		s->ptr += s->len;
		s->len = 0;
	}
	return word;
}

static uint32_t location_of(struct pprof_builder *b, struct str name)
{
	struct pprof_function f = { .name = pprof_builder_string(b, name) };
	struct pprof_line line = { .line = 1 };

	f.system_name = f.name;
	line.function = pprof_builder_function(b, &f);
	return pprof_builder_location(b, (struct pprof_location){ .mapping = PPROF_NONE }, &line, 1);
}

static void sample_of(struct pprof_builder *b, struct str line)
{
	struct str stack = next_word(&line, ' '), word, key;
	uint32_t locations[64], n = 0;
	struct pprof_label labels[16] = { 0 };
	int64_t values[8];
	size_t labels_n = 0, values_n = 0;

	while (stack.len && n < 64)
		locations[n++] = location_of(b, next_word(&stack, ';'));
	for (uint32_t i = 0; i < n / 2; i++) {
		uint32_t t = locations[i];

		locations[i] = locations[n - 1 - i];
		locations[n - 1 - i] = t;
	}
	while (line.len) {
		word = next_word(&line, ' ');
		if (memchr(word.ptr, '=', word.len)) {
			key = next_word(&word, '=');
			labels[labels_n].key = pprof_builder_string(b, key);
			labels[labels_n++].str = pprof_builder_string(b, word);
		} else if (!str_to_i64(word, &values[values_n++])) {
			abort();
		}
	}
	pprof_builder_sample(b, locations, n, labels, (uint32_t)labels_n, values);
}

struct pprof *profile_of(struct arena *a, const char *const *types, const char *const *lines)
{
	struct pprof_builder *b;
	struct pprof *out = NULL;
	struct err err;

	if (pprof_builder_open(a, &b, &err))
		abort();
	for (size_t i = 0; types[i]; i++) {
		struct str unit = str_of(types[i]), type = next_word(&unit, '/');

		pprof_builder_type(b, type, unit);
	}
	for (size_t i = 0; lines[i]; i++)
		sample_of(b, str_of(lines[i]));
	if (pprof_builder_finish(b, &out, &err))
		abort();
	return out;
}

/* ---- random ones ---- */

static uint64_t draw(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(*state);
}

/* Number 0 and the last are no spans. */
static void link_samples(struct arena *a, struct pprof *p, uint64_t *state)
{
	struct pprof_link *links = arena_array(a, struct pprof_link, 8);
	uint32_t *of = arena_array(a, uint32_t, p->samples_n + 1);

	if (!links || !of)
		abort();
	for (uint32_t i = 1; i < 7; i++) {
		links[i].trace_id[0] = (unsigned char)(1 + draw(state) % 3);
		links[i].span_id[7] = (unsigned char)i;
	}
	for (uint32_t i = 0; i < p->samples_n; i++)
		of[i] = draw(state) % 3 ? (uint32_t)(draw(state) % 8) : 0;
	p->links = links;
	p->links_n = 8;
	p->sample_links = of;
}

static void add_number(struct buf *out, const char *before, int64_t v)
{
	buf_add_cstr(out, before);
	buf_add_i64(out, v);
}

struct pprof *profile_random(struct arena *a, uint64_t seed)
{
	uint64_t state = seed * 77 + 1;
	struct pprof_builder *b;
	struct pprof *out = NULL;
	struct buf line = { 0 };
	struct err err;

	if (pprof_builder_open(a, &b, &err))
		abort();
	pprof_builder_type(b, STR("samples"), STR("count"));
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	for (uint64_t n = draw(&state) % 40; n; n--) {
		uint64_t depth = 1 + draw(&state) % 6, kind = draw(&state) % 8;

		buf_clear(&line);
		for (uint64_t d = 0; d < depth; d++)
			add_number(&line, d ? ";f" : "f", (int64_t)(draw(&state) % (3 + 2 * d)));
		if (kind < 2)
			add_number(&line, " handler=/h", (int64_t)(draw(&state) % 5));
		if (kind == 2)
			add_number(&line, " new=n", (int64_t)(draw(&state) % 100000));
		add_number(&line, " ", (int64_t)(draw(&state) % 4));
		add_number(&line, " ",
			kind == 3 ? -(int64_t)(draw(&state) % 1000) : (int64_t)(draw(&state) % 3) * 10000000);
		sample_of(b, buf_str(&line));
	}
	if (buf_failed(&line) || pprof_builder_finish(b, &out, &err))
		abort();
	buf_release(&line);
	if (seed % 4 == 1)
		link_samples(a, out, &state);
	return out;
}

struct pprof *profile_read(struct arena *a, struct str body, struct err *err)
{
	struct pprof *p = NULL;
	struct str raw;

	if (pprof_inflate(a, body, &pprof_limits_default, &raw, err) ||
		pprof_decode(a, raw, &pprof_limits_default, &p, err))
		return NULL;
	return p;
}

/* ---- appending ---- */

struct waiting {
	struct mutex lock;
	struct cond done;
	bool acked;
	enum err_code rc;
	struct err err;
};

static void acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct waiting *w = ctx;

	mutex_lock(&w->lock);
	w->acked = true;
	w->rc = rc;
	if (err)
		w->err = *err;
	cond_signal(&w->done);
	mutex_unlock(&w->lock);
}

enum err_code append_wait(struct db *db, struct labels labels, int64_t ts_ns, int64_t interval_ns,
	const struct pprof *p, const enum value_kind *kinds, bool convert,
	struct db_append_stats *stats, struct err *err)
{
	static const enum value_kind deltas[8] = { KIND_DELTA, KIND_DELTA, KIND_DELTA, KIND_DELTA,
		KIND_DELTA, KIND_DELTA, KIND_DELTA, KIND_DELTA };
	struct db_append a = { .labels = labels,
		.ts_ns = ts_ns,
		.interval_ns = interval_ns,
		.profile = p,
		.kinds = kinds ? kinds : deltas,
		.convert = convert };

	return append_this(db, &a, stats, err);
}

enum err_code append_this(
	struct db *db, const struct db_append *a, struct db_append_stats *stats, struct err *err)
{
	struct waiting w = { 0 };
	enum err_code rc;

	mutex_init(&w.lock);
	cond_init(&w.done);
	rc = db_append(db, a, stats, acked, &w, err);
	if (!rc) {
		mutex_lock(&w.lock);
		while (!w.acked)
			cond_wait(&w.done, &w.lock);
		rc = w.rc;
		if (rc)
			*err = w.err;
		mutex_unlock(&w.lock);
	}
	mutex_destroy(&w.lock);
	cond_destroy(&w.done);
	return rc;
}
