#include "tests/tsdb/model.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "tsdb/number_chunk.h"

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
	return hash_u64(m->random) % below;
}

bool model_init(struct model *m, uint64_t seed)
{
	*m = (struct model){ .random = hash_u64(seed), .now_s = 1000, .tell = -1 };
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
		m->labels[i] = labels_of(
			&m->f.arena, i < MODEL_PROFILES ? "p" : "up", job, instance);
	}
	return true;
}

void model_release(struct model *m)
{
	model_close(m);
	fixture_close(&m->f);
	free(m->rows);
	buf_release(&m->wrong);
	cond_destroy(&m->answered);
	mutex_destroy(&m->lock);
}

enum err_code model_open(struct model *m, struct err *err)
{
	model_close(m);
	m->f.o.dir = m->f.dir;
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

static bool is_numeric(uint32_t series)
{
	return series >= MODEL_PROFILES;
}

static double number_of(uint64_t seed)
{
	return seed % 8 ? (double)(seed % 1000) / 8 : number_of_bits(NUMBER_STALE_BITS);
}

static uint64_t number_hash(double v)
{
	return hash_u64(number_bits(v));
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
	if (is_numeric(series))
		return number_hash(number_of(seed));
	return samples_hash(seed, a, profile);
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
		MODEL_TRIED, false };
	if (m->newest_ns < a->ts_ns)
		m->newest_ns = a->ts_ns;
	m->waiting++;
	return m->n++;
}

/* ---- told by another process ---- */

struct told {
	enum { TRIED, REFUSED, ACKED, FAILED } what;
	uint32_t at;
	int64_t now_s;
	struct model_append append; /* TRIED */
};

/* Less than PIPE_BUF at once: whole or not at all. m->lock is held. */
static void tell(struct model *m, int what, size_t at, const struct model_append *a)
{
	struct told t = { .at = (uint32_t)at, .now_s = m->now_s };

	if (m->tell < 0)
		return;
	t.what = what;
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
	while (is_numeric(what.series) && answer->n < MODEL_BATCH &&
		what.series + 1 < MODEL_SERIES && model_draw(m, 3)) {
		what.series++;
		what.seed++;
		if (model_draw(m, 4) == 0) /* so that they fall into several windows */
			what.ts_ns -= MODEL_WINDOW_S * SEC;
		try_row(m, &what, answer, numbers, &arena, &p);
	}
	mutex_unlock(&m->lock);
	a = (struct db_append){ m->labels[what.series], what.ts_ns, SEC, p, kinds, false };
	rc = is_numeric(what.series) ?
		db_append_numbers(m->f.db, numbers, answer->n, on_answer, answer, &m->f.err) :
		db_append(m->f.db, &a, NULL, on_answer, answer, &m->f.err);
	if (rc) { /* it was never queued; nothing was added behind it */
		mutex_lock(&m->lock);
		for (refused = m->refused; answer->n; answer->n--) {
			take_back(m);
			tell(m, REFUSED, m->n, NULL);
		}
		m->refused = refused + 1; /* appends are counted, not their values */
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

void model_work(struct model *m, size_t appends, bool (*stop)(void *ctx), void *ctx)
{
	struct err err;

	while (appends-- && !(stop && stop(ctx))) {
		model_append(m);
		switch (model_draw(m, 12)) {
		case 0:
			model_wait(m);
			break;
		case 1:
			fixture_maintain(&m->f);
			break;
		case 2: /* may fail where the disk does; nothing may be lost by that */
			(void)!db_compact(m->f.db, &err);
			break;
		default:
			break;
		}
	}
}

/* ---- checking ---- */

static int row_cmp(const void *a, const void *b)
{
	const struct model_row *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static bool same_place(const struct model_row *a, const struct model_row *b)
{
	return a->series == b->series && a->ts_ns == b->ts_ns;
}

/* First of the rows of this place, or m->n. */
static size_t find_place(const struct model *m, uint32_t series, int64_t ts_ns)
{
	size_t low = 0, high = m->n;
	struct model_row want = { .series = series, .ts_ns = ts_ns };

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (row_cmp(&m->rows[mid], &want) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < m->n && same_place(&m->rows[low], &want) ? low : m->n;
}

static void say_row(struct model *m, const char *what, struct labels labels, int64_t ts_ns)
{
	if (m->wrong.len > 2000)
		return;
	buf_printf(&m->wrong, "%s: ", what);
	labels_print(&m->wrong, labels);
	buf_printf(
		&m->wrong, " @%lld.%09lld\n", (long long)(ts_ns / SEC), (long long)(ts_ns % SEC));
}

static void take(struct model *m, struct labels labels, int64_t ts_ns, uint64_t hash)
{
	struct model_row *r;
	uint32_t series = 0;
	size_t i, first;

	while (series < MODEL_SERIES && !labels_eq(m->labels[series], labels))
		series++;
	first = i = find_place(m, series, ts_ns);
	if (series == MODEL_SERIES || i == m->n) {
		say_row(m, "was never appended", labels, ts_ns);
		return;
	}
	m->checked++;
	/* The last acknowledged one and all behind it may be the one. */
	while (i + 1 < m->n && same_place(&m->rows[i], &m->rows[i + 1]))
		i++;
	for (;; i--) { /* ends at the place's first */
		r = &m->rows[i];
		if (r->there) {
			say_row(m, "is there twice", labels, ts_ns);
			return;
		}
		if (r->hash == hash) {
			r->there = true;
			return;
		}
		if (r->state == MODEL_ACKED || i == first)
			break;
	}
	say_row(m, "has another content", labels, ts_ns);
}

static bool take_row(void *ctx, const struct db_series *s, const struct db_row *row)
{
	struct buf text = { 0 };

	row_text(s, row, &text);
	take(ctx, s->labels, row->ts_ns, hash_bytes(text.ptr, text.len, 1));
	buf_release(&text);
	return true;
}

static bool take_number(void *ctx, const struct db_series *s, int64_t ts_ns, double value)
{
	take(ctx, s->labels, ts_ns, number_hash(value));
	return true;
}

/* Retention may have taken what is not behind this. */
static int64_t kept_from_ns(const struct model *m)
{
	return m->f.o.retention_ns && m->newest_ns > m->f.o.retention_ns ?
		m->newest_ns - m->f.o.retention_ns :
		0;
}

static void find_missing(struct model *m)
{
	int64_t kept_from = kept_from_ns(m);

	for (size_t from = 0, to; from < m->n; from = to) {
		bool acked = false, there = false;

		for (to = from; to < m->n && same_place(&m->rows[from], &m->rows[to]); to++) {
			acked |= m->rows[to].state == MODEL_ACKED;
			there |= m->rows[to].there;
		}
		if (there || !acked || m->rows[from].ts_ns <= kept_from)
			continue;
		m->missing++;
		if (!m->damage_allowed)
			say_row(m, "was acknowledged and is gone", m->labels[m->rows[from].series],
				m->rows[from].ts_ns);
	}
}

static void settle(struct model *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++)
		if (m->rows[i].there) {
			m->rows[kept] = m->rows[i];
			m->rows[kept++].state = MODEL_ACKED;
		}
	m->n = kept;
}

static void want_sum(
	struct model *m, const struct labels *of, int64_t min_ns, int64_t max_ns, struct buf *out)
{
	struct sums sums = { 0 };
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < m->n; i++) {
		const struct model_row *r = &m->rows[i];

		if (!is_numeric(r->series) && (r->there || m->damage_allowed) &&
			r->ts_ns > min_ns && r->ts_ns <= max_ns &&
			(!of || labels_eq(m->labels[r->series], *of)))
			sums_add_profile(&sums, profile_random(&a, r->seed));
	}
	sums_print(&sums, out);
	arena_release(&a);
}

static bool was_said(const struct model *m)
{
	return m->warnings || metric_value("epimetheus_tsdb_damage_total") > m->damage_before;
}

/* Of times that retention does not touch meanwhile. */
static void check_sum(struct model *m)
{
	int64_t from_s = kept_from_ns(m) / SEC, span = m->newest_ns / SEC - from_s + 2,
		min_ns = (from_s + 1 + (int64_t)model_draw(m, (uint64_t)span)) * SEC,
		max_ns = min_ns + (int64_t)model_draw(m, (uint64_t)span) * SEC;
	const struct labels *of = model_draw(m, 2) ? &m->labels[model_draw(m, MODEL_PROFILES)] :
						     NULL;
	struct buf want = { 0 }, got = { 0 };
	bool ok;

	want_sum(m, of, min_ns, max_ns, &want);
	ok = sum_text(m->f.db, of, min_ns, max_ns, &got, &m->warnings, &m->f.err);
	buf_add_char(&got, '\0');
	buf_add_char(&want, '\0');
	if (!ok)
		buf_printf(&m->wrong, "sum: %s\n", m->f.err.msg);
	else if (!str_eq(buf_str(&want), buf_str(&got)) && !(m->damage_allowed && was_said(m)))
		buf_printf(&m->wrong, "sum over (%lld, %lld]: got\n%.300s\nwant\n%.300s\n",
			(long long)min_ns, (long long)max_ns, got.ptr, want.ptr);
	buf_release(&want);
	buf_release(&got);
}

static void look_at_blocks(struct model *m)
{
	struct db_block_status *v;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	if (db_list(m->f.db, &a, &v, &n, &err)) {
		buf_printf(&m->wrong, "list: %s\n", err.msg);
		n = 0;
	}
	for (size_t i = 0; i < n; i++)
		if (v[i].ulid[0] && v[i].level > m->level)
			m->level = v[i].level;
	arena_release(&a);
}

bool model_check(struct model *m, bool settled)
{
	struct err err;

	model_wait(m);
	buf_clear(&m->wrong);
	m->missing = m->warnings = m->checked = 0;
	for (size_t i = 0; i < m->n; i++)
		m->rows[i].there = false;
	if (m->n)
		qsort(m->rows, m->n, sizeof(*m->rows), row_cmp);
	if (!rows_each(m->f.db, 0, INT64_MAX, take_row, m, &m->warnings, &err))
		buf_printf(&m->wrong, "rows: %s\n", err.msg);
	if (!numbers_each(m->f.db, 0, INT64_MAX, take_number, m, &m->warnings, &err))
		buf_printf(&m->wrong, "numbers: %s\n", err.msg);
	find_missing(m);
	look_at_blocks(m);
	for (int i = 0; i < 3 && !m->wrong.len; i++)
		check_sum(m);
	if (m->missing && m->damage_allowed && !was_said(m))
		buf_printf(&m->wrong, "%zu rows are missing and nothing was said\n", m->missing);
	if (settled)
		settle(m);
	buf_add_char(&m->wrong, '\0');
	m->wrong.len--;
	return m->wrong.len == 0;
}
