#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "tests/tsdb/model.h"

/* The database against its model. */

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
	buf_printf(&m->wrong, " @%lld.%09lld\n", (long long)(ts_ns / SEC), (long long)(ts_ns % SEC));
}

/* The row is there but for its links, as a file was damaged. */
static bool lost_links(struct model *m, const struct model_row *r, uint64_t hash)
{
	struct buf text = { 0 };
	struct arena a;
	bool same;

	if (!m->damage_allowed || model_is_numeric(r->series))
		return false;
	arena_init(&a, 0);
	profile_bare_text(profile_random(&a, r->seed), &text);
	same = hash_bytes(text.ptr, text.len, 1) == hash;
	m->bare += same;
	buf_release(&text);
	arena_release(&a);
	return same;
}

static void take(struct model *m, struct labels labels, int64_t ts_ns, uint64_t hash)
{
	struct model_row *r;
	const char *what = "has another content";
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
		if ((r->hash == hash || lost_links(m, r, hash)) && r->state != MODEL_DELETED) {
			r->there = true;
			return;
		}
		if (r->hash == hash)
			what = "was deleted and is there again";
		if (r->state == MODEL_ACKED || r->state == MODEL_DELETED || i == first)
			break;
	}
	say_row(m, what, labels, ts_ns);
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
	take(ctx, s->labels, ts_ns, model_number_hash(value));
	return true;
}

/* Retention may have taken what is not behind this, or its raw rows. */
static int64_t kept_from_ns(const struct model *m)
{
	int64_t kept_ns = m->f.o.raw_retention_ns ? m->f.o.raw_retention_ns : m->f.o.retention_ns;

	return kept_ns && m->newest_ns > kept_ns ? m->newest_ns - kept_ns : 0;
}

/* One that was acknowledged is not replaced. */
static void check_replaced(struct model *m, size_t from, size_t to)
{
	const struct model_row *acked = NULL;

	for (size_t i = from; i < to; i++) {
		const struct model_row *r = &m->rows[i];

		if (r->state != MODEL_ACKED || r->maybe)
			continue;
		if (acked && acked->hash != r->hash)
			say_row(m, "was acknowledged twice", m->labels[r->series], r->ts_ns);
		acked = r;
	}
}

static void find_missing(struct model *m)
{
	int64_t kept_from = kept_from_ns(m);

	for (size_t from = 0, to; from < m->n; from = to) {
		bool acked = false, there = false;

		for (to = from; to < m->n && same_place(&m->rows[from], &m->rows[to]); to++) {
			acked |= m->rows[to].state == MODEL_ACKED && !m->rows[to].maybe;
			there |= m->rows[to].there;
		}
		check_replaced(m, from, to);
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
			m->rows[kept].maybe = false;
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

		if (!model_is_numeric(r->series) && (r->there || m->damage_allowed) && r->ts_ns > min_ns &&
			r->ts_ns <= max_ns && (!of || labels_eq(m->labels[r->series], *of)))
			sums_add_profile(&sums, profile_random(&a, r->seed));
	}
	sums_print(&sums, out);
	arena_release(&a);
}

static bool was_said(const struct model *m)
{
	return m->warnings || metric_value("epimetheus_tsdb_damage_total") > m->damage_before;
}

/* Only over times that retention does not touch meanwhile. */
static void check_sum(struct model *m)
{
	int64_t from_s = kept_from_ns(m) / SEC, span = m->newest_ns / SEC - from_s + 2,
			min_ns = (from_s + 1 + (int64_t)model_draw(m, (uint64_t)span)) * SEC,
			max_ns = min_ns + (int64_t)model_draw(m, (uint64_t)span) * SEC;
	const struct labels *of = model_draw(m, 2) ? &m->labels[model_draw(m, MODEL_PROFILES)] : NULL;
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
	m->missing = m->warnings = m->checked = m->bare = 0;
	for (size_t i = 0; i < m->n; i++)
		m->rows[i].there = false;
	if (m->n)
		qsort(m->rows, m->n, sizeof(*m->rows), row_cmp);
	if (!rows_each(m->f.db, 0, INT64_MAX, take_row, m, &m->warnings, &err))
		buf_printf(&m->wrong, "rows: %s\n", err.msg);
	if (!numbers_each(m->f.db, 0, INT64_MAX, take_number, m, &m->warnings, &err))
		buf_printf(&m->wrong, "numbers: %s\n", err.msg);
	if (m->bare && !was_said(m))
		buf_printf(&m->wrong, "links of %zu rows are missing and nothing was said\n", m->bare);
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

/* An error of the disk's making is none of the snapshot's. */
static bool snapshot_failed(struct model *m, const char *what, const struct err *err)
{
	if (!m->faults)
		buf_printf(&m->wrong, "snapshot%s: %s%c", what, err->msg, 0);
	return m->faults;
}

bool model_check_snapshot(struct model *m)
{
	struct db *db = m->f.db;
	struct db_options o = m->f.o;
	struct arena a;
	struct err err;
	struct str name;
	bool ok;

	arena_init(&a, 0);
	buf_clear(&m->wrong);
	model_wait(m); /* what is acknowledged later is not in it */
	if (db_snapshot(db, &a, &name, &err)) {
		ok = snapshot_failed(m, "", &err);
		goto out;
	}
	o.dir = arena_printf(&a, "%s/snapshots/" STR_FMT, m->f.dir, STR_ARG(name));
	if (db_open(&o, &m->f.db, &err)) {
		ok = snapshot_failed(m, " opened", &err);
	} else {
		ok = model_check(m, false);
		if (m->warnings && m->faults) { /* a file of it could not be opened, and that is said */
			buf_clear(&m->wrong);
			ok = true;
		} else if (!ok || m->warnings) {
			buf_printf(&m->wrong, "snapshot: %zu warnings%c", m->warnings, 0);
			ok = false;
		}
		db_close(m->f.db);
		m->snapshots_n++;
	}
	m->f.db = db;
	if (fs_remove_tree(m->f.o.fs ? m->f.o.fs : &fs_posix, o.dir, &err) && ok)
		ok = snapshot_failed(m, " removed", &err);
out:
	arena_release(&a);
	return ok;
}
