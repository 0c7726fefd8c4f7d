#include "cmd/epitool/test_rules/world.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cmd/epitool/profile_file.h"
#include "tsdb/db.h"

#define PATH_BYTES 4096
#define LABELS_MAX 64u /* of one sample */
#define SPAN_NS (10 * 366 * NS_PER_DAY) /* all times of a test lie in two windows, around 0 */
#define NUMBERS_AT_ONCE 4096u

/* A value or a profile that is to be stored. */
struct input {
	int64_t t_ns;
	uint32_t source; /* series, then profiles */
	uint32_t at; /* which of its times */
};

/* Frames of all stacks of one input by number, so that each profile is made without a search. */
struct test_code {
	struct str *names;
	uint32_t n, deepest;
	uint32_t **stacks; /* leaf first */
};

struct test_world {
	struct arena *arena;
	const struct test_group *test;
	char dir[PATH_BYTES];
	bool has_dir;
	struct db *db;
	struct engine *engine;
	struct input *inputs; /* ascending by time */
	size_t inputs_n, stored;
	struct test_code *codes; /* one per profiles of the test */
	struct mutex lock; /* the rest */
	struct cond acked;
	size_t waited; /* for so many acknowledgements */
	struct err fault;
};

struct db *test_world_db(struct test_world *w)
{
	return w->db;
}

struct engine *test_world_engine(struct test_world *w)
{
	return w->engine;
}

/* ---- the input ---- */

static int input_cmp(const void *a, const void *b)
{
	const struct input *x = a, *y = b;

	if (x->t_ns != y->t_ns)
		return x->t_ns < y->t_ns ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static bool test_stack_value(const struct test_stack *s, size_t at, double *out)
{
	if (s->is_constant)
		at = 0;
	if (at >= s->values.n || test_is_gap(s->values.v[at]))
		return false;
	*out = s->values.v[at];
	return true;
}

/* A file is there at each of its times. */
static bool test_profile_is_there(const struct test_profiles *p, size_t at)
{
	bool any = p->file.len > 0;
	double v;

	for (size_t i = 0; i < p->stacks_n && !any; i++)
		any = test_stack_value(&p->stacks[i], at, &v);
	return any;
}

/* A test begins at 0, and stored times come after 0. */
int64_t test_world_time(int64_t t_ns)
{
	return t_ns < 1 ? 1 : t_ns;
}

static enum err_code test_world_list_inputs(struct test_world *w, struct err *err)
{
	const struct test_group *g = w->test;
	size_t n = 0;

	for (size_t i = 0; i < g->series_n; i++)
		n += g->series[i].values.n;
	for (size_t i = 0; i < g->profiles_n; i++)
		n += g->profiles[i].at_n;
	if (!(w->inputs = arena_array(w->arena, struct input, n + 1)))
		return arena_fail(w->arena, "test", err);
	for (size_t i = 0; i < g->series_n; i++)
		for (size_t k = 0; k < g->series[i].values.n; k++)
			if (!test_is_gap(g->series[i].values.v[k]))
				w->inputs[w->inputs_n++] = (struct input){
					test_world_time((int64_t)k * g->interval_ns), (uint32_t)i, (uint32_t)k
				};
	for (size_t i = 0; i < g->profiles_n; i++)
		for (size_t k = 0; k < g->profiles[i].at_n; k++)
			if (test_profile_is_there(&g->profiles[i], k))
				w->inputs[w->inputs_n++] = (struct input){ test_world_time(g->profiles[i].at_ns[k]),
					(uint32_t)(g->series_n + i), (uint32_t)k };
	qsort(w->inputs, w->inputs_n, sizeof(*w->inputs), input_cmp);
	return ERR_OK;
}

static uint32_t test_code_frame_number(struct test_code *c, struct str name)
{
	uint32_t i = 0;

	while (i < c->n && !str_eq(c->names[i], name))
		i++;
	if (i == c->n)
		c->names[c->n++] = name;
	return i;
}

static enum err_code test_world_list_code(
	struct test_world *w, const struct test_profiles *p, struct test_code *c, struct err *err)
{
	size_t frames = 0;

	for (size_t i = 0; i < p->stacks_n; i++)
		frames += p->stacks[i].frames_n;
	c->names = arena_array(w->arena, struct str, frames + 1);
	c->stacks = arena_array(w->arena, uint32_t *, p->stacks_n + 1);
	if (!c->names || !c->stacks)
		return arena_fail(w->arena, "test", err);
	for (size_t i = 0; i < p->stacks_n; i++) {
		const struct test_stack *s = &p->stacks[i];

		if (!(c->stacks[i] = arena_array(w->arena, uint32_t, s->frames_n)))
			return arena_fail(w->arena, "test", err);
		for (size_t k = 0; k < s->frames_n; k++)
			c->stacks[i][s->frames_n - 1 - k] = test_code_frame_number(c, s->frames[k]);
		if (s->frames_n > c->deepest)
			c->deepest = (uint32_t)s->frames_n;
	}
	return ERR_OK;
}

/* ---- open and close ---- */

static enum err_code test_world_open_db(struct test_world *w, struct err *err)
{
	struct engine_options e = { 0 };
	struct db_options o;
	enum err_code rc;

	db_options_default(&o);
	o.dir = w->dir;
	o.window_ns = SPAN_NS;
	o.too_old_ns = SPAN_NS;
	o.retention_ns = 0;
	o.no_compaction = true;
	o.free_bytes_reserve = 1;
	if ((rc = db_open(&o, &w->db, err)))
		return rc;
	e.db = w->db;
	return engine_open(&e, &w->engine, err);
}

enum err_code test_world_open(
	struct arena *a, const struct test_group *g, struct test_world **out, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	struct test_world *w = calloc(1, sizeof(*w));
	enum err_code rc;

	if (!w)
		return err_nomem(err, "test");
	w->arena = a;
	w->test = g;
	mutex_init(&w->lock);
	cond_init(&w->acked);
	snprintf(w->dir, sizeof(w->dir), "%s/epitool-test-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
	if (!mkdtemp(w->dir)) {
		rc = err_errno(err, errno, "make %s", w->dir);
		goto fail;
	}
	w->has_dir = true;
	if (!(w->codes = arena_array(a, struct test_code, g->profiles_n + 1))) {
		rc = arena_fail(a, "test", err);
		goto fail;
	}
	for (size_t i = 0; i < g->profiles_n; i++)
		if ((rc = test_world_list_code(w, &g->profiles[i], &w->codes[i], err)))
			goto fail;
	if ((rc = test_world_list_inputs(w, err)) || (rc = test_world_open_db(w, err)))
		goto fail;
	*out = w;
	return ERR_OK;
fail:
	test_world_close(w);
	return rc;
}

void test_world_close(struct test_world *w)
{
	struct err err = { 0 };

	if (!w)
		return;
	engine_close(w->engine);
	db_close(w->db);
	if (w->has_dir && fs_remove_tree(&fs_posix, w->dir, &err))
		fprintf(stderr, "epitool: %s\n", err.msg);
	cond_destroy(&w->acked);
	mutex_destroy(&w->lock);
	free(w);
}

/* ---- storing ---- */

static void test_on_acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct test_world *w = ctx;

	mutex_lock(&w->lock);
	if (rc && !w->fault.code)
		w->fault = *err;
	assert(w->waited > 0);
	w->waited--;
	cond_signal(&w->acked);
	mutex_unlock(&w->lock);
}

static void test_world_expect_one(struct test_world *w, int more)
{
	mutex_lock(&w->lock);
	assert(more > 0 || w->waited > 0);
	w->waited += (size_t)more;
	mutex_unlock(&w->lock);
}

static enum err_code test_world_store_numbers(
	struct test_world *w, const struct db_number *d, size_t n, struct err *err)
{
	enum err_code rc;

	if (!n)
		return ERR_OK;
	test_world_expect_one(w, 1);
	if ((rc = db_append_numbers(w->db, d, n, test_on_acked, w, err)))
		test_world_expect_one(w, -1);
	return rc;
}

static enum err_code test_add_stack(struct pprof_builder *b, const struct test_stack *s,
	const uint32_t *frames, const uint32_t *locations, uint32_t *scratch, double value,
	struct err *err)
{
	struct pprof_label labels[LABELS_MAX];
	int64_t v = (int64_t)value;

	if (s->labels.n > LABELS_MAX)
		return err_set(err, ERR_LIMIT, "a sample has more than %u labels", LABELS_MAX);
	for (size_t i = 0; i < s->labels.n; i++)
		labels[i] = (struct pprof_label){
			.key = pprof_builder_string(b, s->labels.v[i].name),
			.str = pprof_builder_string(b, s->labels.v[i].value),
		};
	for (size_t i = 0; i < s->frames_n; i++)
		scratch[i] = locations[frames[i]];
	pprof_builder_sample(b, scratch, (uint32_t)s->frames_n, labels, (uint32_t)s->labels.n, &v);
	return ERR_OK;
}

static enum err_code test_make_profile(struct arena *a, const struct test_profiles *p,
	const struct test_code *c, const struct input *at, const struct pprof **out, struct err *err)
{
	uint32_t *locations = arena_array(a, uint32_t, c->n + 1);
	uint32_t *scratch = arena_array(a, uint32_t, c->deepest + 1);
	struct pprof_builder *b;
	struct pprof *made;
	enum err_code rc;
	double value;

	if (!locations || !scratch)
		return arena_fail(a, "test", err);
	if ((rc = pprof_builder_open(a, &b, err)))
		return rc;
	pprof_builder_type(b, p->sample_type, p->sample_unit);
	made = pprof_builder_profile(b);
	made->period_type.type = pprof_builder_string(b, p->period_type);
	made->period_type.unit = pprof_builder_string(b, p->period_unit);
	made->time_nanos = at->t_ns;
	made->duration_nanos = p->duration_ns;
	for (uint32_t i = 0; i < c->n; i++) {
		struct pprof_function f = { .name = pprof_builder_string(b, c->names[i]) };
		struct pprof_line line = { .function = 0 };

		f.system_name = f.name;
		line.function = pprof_builder_function(b, &f);
		/* like code, which is at the same place in each profile */
		locations[i] = pprof_builder_location(b,
			(struct pprof_location){ .address = 0x1000 + 16 * (uint64_t)i, .mapping = PPROF_NONE },
			&line, 1);
	}
	for (size_t i = 0; i < p->stacks_n; i++)
		if (test_stack_value(&p->stacks[i], at->at, &value) && value != 0 &&
			(rc = test_add_stack(b, &p->stacks[i], c->stacks[i], locations, scratch, value, err)))
			return rc;
	if (!(rc = pprof_builder_finish(b, &made, err)))
		*out = made;
	return rc;
}

static enum err_code test_world_store_profile(
	struct test_world *w, const struct input *at, struct err *err)
{
	size_t i = at->source - w->test->series_n;
	const struct test_profiles *p = &w->test->profiles[i];
	struct db_append a = { .labels = p->labels, .ts_ns = at->t_ns, .interval_ns = p->interval_ns };
	struct db_append_stats stats;
	const struct pprof *profile = NULL;
	struct buf bytes = { 0 };
	struct any_file file;
	enum value_kind *kinds;
	struct arena arena;
	enum err_code rc;

	arena_init(&arena, 0);
	if (!p->file.len)
		rc = test_make_profile(&arena, p, &w->codes[i], at, &profile, err);
	else if (!(rc = profile_file_read(p->file.ptr, &bytes, err)) &&
		!(rc = profile_file_decode(p->file.ptr, buf_str(&bytes), &arena, &file, err)))
		profile = any_default(&file)->pprof;
	if (rc)
		goto out;
	if (!(kinds = arena_array(&arena, enum value_kind, profile->types_n + 1))) {
		rc = arena_fail(&arena, "test", err);
		goto out;
	}
	pprof_kinds(profile, labels_get(p->labels, STR(LABEL_NAME)), NULL, kinds);
	a.profile = profile;
	a.kinds = kinds;
	test_world_expect_one(w, 1);
	if ((rc = db_append(w->db, &a, &stats, test_on_acked, w, err)))
		test_world_expect_one(w, -1);
out:
	arena_release(&arena);
	buf_release(&bytes);
	return rc;
}

static enum err_code test_world_wait_all(struct test_world *w, struct err *err)
{
	mutex_lock(&w->lock);
	while (w->waited)
		cond_wait(&w->acked, &w->lock);
	mutex_unlock(&w->lock);
	return w->fault.code ? err_copy(err, &w->fault) : ERR_OK;
}

enum err_code test_world_store(struct test_world *w, int64_t t_ns, struct err *err)
{
	struct db_number *numbers = calloc(NUMBERS_AT_ONCE, sizeof(*numbers));
	enum err_code rc = ERR_OK, end;
	size_t n = 0;

	if (!numbers)
		return err_nomem(err, "test");
	t_ns = test_world_time(t_ns);
	for (; w->stored < w->inputs_n && w->inputs[w->stored].t_ns <= t_ns && !rc; w->stored++) {
		const struct input *p = &w->inputs[w->stored];

		if (p->source >= w->test->series_n) {
			rc = test_world_store_profile(w, p, err);
			continue;
		}
		numbers[n++] = (struct db_number){ .labels = w->test->series[p->source].labels,
			.ts_ns = p->t_ns,
			.value = w->test->series[p->source].values.v[p->at] };
		if (n == NUMBERS_AT_ONCE) {
			rc = test_world_store_numbers(w, numbers, n, err);
			n = 0;
		}
	}
	if (!rc)
		rc = test_world_store_numbers(w, numbers, n, err);
	free(numbers);
	end = test_world_wait_all(w, rc ? NULL : err);
	return rc ? rc : end;
}
