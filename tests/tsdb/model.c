#include "tests/tsdb/model.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "tsdb/columns/number_chunk.h"

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);
	uint64_t v = s ? strtoull(s, NULL, 10) : 0;

	return v ? v : otherwise;
}

uint64_t model_rounds(uint64_t by_default)
{
	return from_environment("EPI_CRASH_ROUNDS", by_default);
}

uint64_t model_seed(void)
{
	return from_environment("EPI_CRASH_SEED", 1);
}

uint64_t model_draw(struct model *m, uint64_t below)
{
	m->random += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(m->random) % below;
}

bool model_init(struct model *m, uint64_t seed)
{
	*m = (struct model){ .random = map_hash_u64(seed), .now_s = 1000, .tell = -1 };
	mutex_init(&m->lock);
	cond_init(&m->answered);
	if (!fixture_open(&m->f))
		return false;
	db_close(m->f.db);
	m->f.db = NULL;
	m->f.o.window_ns = MODEL_WINDOW_S * SEC;
	m->f.o.retention_ns = MODEL_RETENTION_S * SEC;
	m->f.o.too_old_ns = MODEL_TOO_OLD_S * SEC;
	m->f.o.free_bytes_reserve = 0;
	m->f.o.no_compaction = false;
	m->f.o.block_max_ns = MODEL_BLOCK_S * SEC;
	for (size_t i = 0; i < MODEL_SERIES; i++) {
		char job[8] = "job-0", instance[8] = "i-0";

		job[4] = (char)('0' + i % 3);
		instance[2] = (char)('a' + i);
		m->labels[i] = labels_of(&m->f.arena, i < MODEL_PROFILES ? "p" : "up", job, instance);
	}
	return true;
}

void model_release(struct model *m)
{
	model_close(m);
	fixture_close(&m->f);
	free(m->rows);
	free(m->deleted);
	buf_release(&m->wrong);
	cond_destroy(&m->answered);
	mutex_destroy(&m->lock);
}

enum err_code model_open(struct model *m, struct err *err)
{
	model_close(m);
	m->f.o.dir = m->f.dir;
	/* Half of the time epochs end all the time. */
	m->f.o.symbols_bytes = map_hash_u64(m->random) & 1 ? 1 : MODEL_SYMBOLS_BYTES;
	return db_open(&m->f.o, &m->f.db, err);
}

void model_close(struct model *m)
{
	db_close(m->f.db);
	m->f.db = NULL;
}

/* ---- the list ---- */

struct model_append {
	uint32_t series;
	int64_t ts_ns;
	uint64_t seed;
};

static struct model_append next_append(struct model *m)
{
	struct model_append a = { .series = (uint32_t)model_draw(m, MODEL_SERIES),
		.seed = model_draw(m, 1 << 20) };
	size_t back = model_draw(m, 40);

	m->now_s += (int64_t)model_draw(m, 2);
	a.ts_ns = m->now_s * SEC;
	if (m->no_replacing)
		a.ts_ns -= m->appended; /* no two have one time */
	switch (model_draw(m, 12)) {
	case 0:
	case 1: /* late, at times too late */
		a.ts_ns -= (int64_t)model_draw(m, (MODEL_TOO_OLD_S + 4) * SEC) + 1;
		break;
	case 2: /* in the place of another */
		if (back < m->n && !m->no_replacing) {
			a.series = m->rows[m->n - 1 - back].series;
			a.ts_ns = m->rows[m->n - 1 - back].ts_ns;
		}
		break;
	default:
		break;
	}
	return a;
}

bool model_is_numeric(uint32_t series)
{
	return series >= MODEL_PROFILES;
}

static double number_of(uint64_t seed)
{
	return seed % 8 ? (double)(seed % 1000) / 8 : number_of_bits(NUMBER_STALE_BITS);
}

uint64_t model_number_hash(double v)
{
	return map_hash_u64(number_bits(v));
}

static uint64_t samples_hash(uint64_t seed, struct arena *a, struct pprof **profile)
{
	struct pprof *p = profile_random(a, seed);
	struct buf text = { 0 };
	uint64_t hash;

	profile_samples_text(p, &text);
	hash = hash_bytes(text.ptr, text.len, 1);
	buf_release(&text);
	if (profile)
		*profile = p;
	return hash;
}

static uint64_t content_hash(
	uint32_t series, uint64_t seed, struct arena *a, struct pprof **profile)
{
	if (model_is_numeric(series))
		return model_number_hash(number_of(seed));
	return samples_hash(seed, a, profile);
}

static bool is_in(const struct model_range *r, uint32_t series, int64_t ts_ns)
{
	return r->series == series && ts_ns > r->min_ns && ts_ns <= r->max_ns;
}

static bool is_in_deleted(const struct model *m, uint32_t series, int64_t ts_ns)
{
	for (size_t i = 0; i < m->deleted_n; i++)
		if (is_in(&m->deleted[i], series, ts_ns))
			return true;
	return false;
}

/* m->lock is held. From now on rows of the range may go. */
static void begin_deleting(struct model *m, struct model_range r)
{
	if (m->deleted_n == m->deleted_cap) {
		m->deleted_cap = m->deleted_cap ? m->deleted_cap * 2 : 16;
		m->deleted = realloc(m->deleted, m->deleted_cap * sizeof(*m->deleted));
		if (!m->deleted)
			abort();
	}
	m->deleted[m->deleted_n++] = r;
	for (size_t i = 0; i < m->n; i++)
		m->rows[i].maybe |= is_in(&r, m->rows[i].series, m->rows[i].ts_ns);
}

/* The last one that was begun has succeeded: those that were there before have gone. */
static void end_deleting(struct model *m)
{
	const struct model_range *r = &m->deleted[m->deleted_n - 1];

	for (size_t i = 0; i < m->n; i++)
		if (is_in(r, m->rows[i].series, m->rows[i].ts_ns))
			m->rows[i].state = MODEL_DELETED;
}

/* m->lock is held. */
static size_t add_row(struct model *m, const struct model_append *a, uint64_t hash)
{
	if (m->n == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 256;
		if (!(m->rows = realloc(m->rows, m->cap * sizeof(*m->rows))))
			abort();
	}
	m->rows[m->n] = (struct model_row){ a->ts_ns, a->series, m->appended++, a->seed, hash,
		MODEL_TRIED, is_in_deleted(m, a->series, a->ts_ns), false };
	if (m->newest_ns < a->ts_ns)
		m->newest_ns = a->ts_ns;
	m->waiting++;
	return m->n++;
}

/* ---- told by another process ---- */

struct told {
	enum { TRIED, REFUSED, ACKED, FAILED, DELETING, DELETED } what;
	uint32_t at;
	int64_t now_s;
	struct model_append append; /* TRIED */
	struct model_range range; /* DELETING */
};

/* Less than PIPE_BUF at once: whole or not at all. m->lock is held. */
static void tell(struct model *m, int what, size_t at, const struct model_append *a)
{
	struct told t = { .at = (uint32_t)at, .now_s = m->now_s };

	if (m->tell < 0)
		return;
	t.what = what;
	if (what == DELETING)
		t.range = m->deleted[m->deleted_n - 1];
	if (a)
		t.append = *a;
	if (write(m->tell, &t, sizeof(t)) != sizeof(t))
		_exit(3);
}

static void answered(struct model *m, size_t at, bool ok)
{
	m->rows[at].state = ok ? MODEL_ACKED : MODEL_UNKNOWN;
	m->acked += ok;
	m->waiting--;
}

static void take_back(struct model *m)
{
	m->n--;
	m->waiting--;
	m->refused++;
}

static bool follow(struct model *m, const struct told *t)
{
	struct arena a;

	m->now_s = t->now_s;
	switch (t->what) {
	case TRIED:
		arena_init(&a, 0);
		add_row(m, &t->append, content_hash(t->append.series, t->append.seed, &a, NULL));
		arena_release(&a);
		return m->n == t->at + 1;
	case REFUSED:
		take_back(m);
		return m->n == t->at;
	case ACKED:
	case FAILED:
		if (t->at >= m->n)
			return false;
		answered(m, t->at, t->what == ACKED);
		return true;
	case DELETING:
		begin_deleting(m, t->range);
		return true;
	case DELETED:
		if (m->deleted_n)
			end_deleting(m);
		return m->deleted_n > 0;
	}
	return false;
}

bool model_follow(struct model *m, int pipe, int pid, int ms, bool while_opening)
{
	/* It may have to wait for a machine that is busy. */
	int64_t until = clock_monotonic_ns() + (while_opening ? ms * NS_PER_MS : 20 * NS_PER_S);
	struct pollfd p = { .fd = pipe, .events = POLLIN };
	struct told t;
	bool ok = true, killed = false;
	int left;

	for (;;) { /* until the end of file, which comes with the kill at the latest */
		left = (int)((until - clock_monotonic_ns()) / NS_PER_MS);
		if (!killed && left <= 0)
			killed = kill(pid, SIGKILL) == 0;
		if (!killed && poll(&p, 1, left) <= 0)
			continue;
		if (read(pipe, &t, sizeof(t)) != sizeof(t))
			break;
		if (!while_opening)
			until = clock_monotonic_ns() + ms * NS_PER_MS;
		while_opening = true;
		ok &= follow(m, &t);
	}
	for (size_t i = 0; i < m->n; i++)
		if (m->rows[i].state == MODEL_TRIED)
			m->rows[i].state = MODEL_UNKNOWN;
	m->waiting = 0;
	return ok;
}

/* ---- appending ---- */

struct answer {
	struct model *m;
	size_t at, n; /* rows */
};

static void on_answer(void *ctx, enum err_code rc, const struct err *err)
{
	struct answer *a = ctx;
	struct model *m = a->m;

	mutex_lock(&m->lock);
	for (size_t i = a->at; i < a->at + a->n; i++) {
		answered(m, i, rc == ERR_OK);
		tell(m, rc ? FAILED : ACKED, i, NULL);
	}
	cond_broadcast(&m->answered);
	mutex_unlock(&m->lock);
	free(a);
}

/* m->lock is held. */
static void try_row(struct model *m, const struct model_append *what, struct answer *answer,
	struct db_number *numbers, struct arena *arena, struct pprof **p)
{
	size_t at = add_row(m, what, content_hash(what->series, what->seed, arena, p));

	numbers[answer->n++] = (struct db_number){ m->labels[what->series], what->ts_ns,
		number_of(what->seed) };
	tell(m, TRIED, at, what);
}

bool model_append(struct model *m)
{
	static const enum value_kind kinds[] = { KIND_DELTA, KIND_DELTA };
	struct answer *answer = malloc(sizeof(*answer));
	struct db_number numbers[MODEL_BATCH];
	int64_t newest_ns = m->newest_ns;
	struct model_append what;
	struct db_append a;
	struct pprof *p = NULL;
	struct arena arena;
	enum err_code rc;
	size_t refused;

	if (!answer)
		abort();
	arena_init(&arena, 0);
	mutex_lock(&m->lock);
	what = next_append(m);
	*answer = (struct answer){ m, m->n, 0 };
	try_row(m, &what, answer, numbers, &arena, &p);
	while (model_is_numeric(what.series) && answer->n < MODEL_BATCH &&
		what.series + 1 < MODEL_SERIES && model_draw(m, 3)) {
		what.series++;
		what.seed++;
		if (model_draw(m, 4) == 0) /* so that they fall into several windows */
			what.ts_ns -= MODEL_WINDOW_S * SEC;
		try_row(m, &what, answer, numbers, &arena, &p);
	}
	mutex_unlock(&m->lock);
	a = (struct db_append){ m->labels[what.series], what.ts_ns, SEC, p, kinds, false };
	rc = model_is_numeric(what.series) ?
		db_append_numbers(m->f.db, numbers, answer->n, on_answer, answer, &m->f.err) :
		db_append(m->f.db, &a, NULL, on_answer, answer, &m->f.err);
	if (rc) { /* it was never queued; nothing was added behind it */
		mutex_lock(&m->lock);
		for (refused = m->refused; answer->n; answer->n--) {
			take_back(m);
			tell(m, REFUSED, m->n, NULL);
		}
		/* Appends are counted, not their values; what is there already is no fault. */
		m->refused = refused + (rc != ERR_EXISTS);
		m->newest_ns = newest_ns;
		mutex_unlock(&m->lock);
		free(answer);
	}
	arena_release(&arena);
	return rc == ERR_OK;
}

void model_wait(struct model *m)
{
	mutex_lock(&m->lock);
	while (m->waiting)
		cond_wait(&m->answered, &m->lock);
	mutex_unlock(&m->lock);
}

/* A few seconds of one series. */
static void delete_some(struct model *m)
{
	struct model_range r = { .series = (uint32_t)model_draw(m, MODEL_SERIES) };
	struct matcher matcher;
	struct err err;

	r.max_ns = m->now_s * SEC - (int64_t)model_draw(m, MODEL_RETENTION_S * SEC);
	r.min_ns = r.max_ns - (int64_t)model_draw(m, MODEL_WINDOW_S * SEC);
	model_wait(m);
	if (matcher_init(&matcher, MATCH_EQ,
			STR("instance"), labels_get(m->labels[r.series], STR("instance")), &err))
		abort();
	mutex_lock(&m->lock);
	begin_deleting(m, r);
	tell(m, DELETING, 0, NULL);
	mutex_unlock(&m->lock);
	if (!db_delete_series(m->f.db, &matcher, 1, r.min_ns, r.max_ns, &err)) {
		mutex_lock(&m->lock);
		end_deleting(m);
		tell(m, DELETED, 0, NULL);
		mutex_unlock(&m->lock);
	}
	matcher_release(&matcher);
}

/* A random other operation between two appends. */
static bool something_else(struct model *m)
{
	struct err err;

	switch (model_draw(m, 12)) {
	case 0:
		model_wait(m);
		return true;
	case 1:
		fixture_maintain(&m->f);
		return true;
	case 2: /* may fail where the disk does; nothing may be lost by that */
		(void)!db_compact(m->f.db, &err);
		return true;
	case 3:
		if (m->deletes && model_draw(m, 4) == 0)
			delete_some(m);
		return true;
	case 4:
		return !m->snapshots || model_draw(m, 10) || model_check_snapshot(m);
	default:
		return true;
	}
}

bool model_work(struct model *m, size_t appends, bool (*stop)(void *ctx), void *ctx)
{
	bool ok = true;

	while (ok && appends-- && !(stop && stop(ctx))) {
		model_append(m);
		ok = something_else(m);
	}
	return ok;
}
