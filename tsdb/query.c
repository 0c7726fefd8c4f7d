#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tsdb/db_internal.h"
#include "tsdb/row.h"

/*
 * A querier pins the windows it may read, with a snapshot of each, in one step: rows that come
 * later, and windows that are dropped meanwhile, do not change what it sees.
 *
 * Damage. An iterator passes over a page it cannot read, so after each scan its status is looked
 * at; records have checksums of their own, so those it did show are right. What was passed over
 * becomes a warning of the querier.
 */
METRIC_COUNTER(read_damage, "epimetheus_tsdb_read_damage_total",
	"Damaged pages and rows met by queries.", NULL);

static void pin(struct db_querier *q)
{
	struct db *db = q->db;
	int64_t deadline = clock_monotonic_ns() + DB_REOPEN_WAIT_NS;

	for (size_t i = 0; i < db->windows_n; i++) {
		struct window *w = db->windows[i];

		if (w->start_ns >= q->max_ns || w->end_ns <= q->min_ns)
			continue;
		w->pins++; /* also while it drains: it is not dropped, and reopening goes on at one
			      pin */
		q->windows[q->windows_n++] = (struct querier_window){ .w = w };
	}
	for (size_t i = 0; i < q->windows_n; i++) {
		struct window *w = q->windows[i].w;

		if (w->draining) {
			/* Reopening waits for pins, so this one is given back meanwhile. */
			w->pins--;
			w->waiting++;
			cond_broadcast(&db->changed);
			while (w->draining && cond_wait_until(&db->changed, &db->lock, deadline))
				;
			w->waiting--;
			w->pins++;
		}
		if (w->draining)
			continue;
		q->windows[i].store = w->store;
		q->windows[i].snap = store_snapshot_open(w->store);
	}
}

enum err_code db_querier_open(struct db *db, int64_t min_ns, int64_t max_ns,
	const atomic_bool *cancel, struct db_querier **out, struct err *err)
{
	struct db_querier *q = calloc(1, sizeof(*q));
	struct err why;

	if (!q)
		return err_set(err, ERR_NOMEM, "query: out of memory");
	q->db = db;
	q->min_ns = min_ns < 0 ? 0 : min_ns;
	q->max_ns = max_ns < 0 ? 0 : max_ns;
	q->cancel = cancel;
	arena_init(&q->arena, 0);
	mutex_lock(&db->lock);
	if (!(q->windows = calloc(db->windows_n + 1, sizeof(*q->windows)))) {
		mutex_unlock(&db->lock);
		free(q);
		return err_set(err, ERR_NOMEM, "query: out of memory");
	}
	q->number = ++db->queriers_opened;
	q->older = db->queriers;
	if (q->older)
		q->older->newer = q;
	db->queriers = q;
	pin(q);
	mutex_unlock(&db->lock);
	for (size_t i = 0; i < q->windows_n; i++)
		if (!q->windows[i].snap) {
			err_set(&why, ERR_UNAVAILABLE, "it is being reopened after an error");
			querier_warn(q, &q->windows[i], &why);
		}
	*out = q;
	return ERR_OK;
}

void db_querier_close(struct db_querier *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->windows_n; i++) {
		store_iter_close(q->windows[i].it);
		store_snapshot_close(q->windows[i].store, q->windows[i].snap);
		head_unpin(q->db, q->windows[i].w);
	}
	mutex_lock(&q->db->lock);
	if (q->newer)
		q->newer->older = q->older;
	else
		q->db->queriers = q->older;
	if (q->older)
		q->older->newer = q->newer;
	mutex_unlock(&q->db->lock);
	arena_release(&q->arena);
	free(q->windows);
	free(q->stacks);
	free(q->sets);
	free(q->values);
	free(q);
}

const struct str *db_querier_warnings(const struct db_querier *q, size_t *n)
{
	*n = q->warnings_n;
	return q->warnings;
}

void querier_warn(struct db_querier *q, struct querier_window *w, const struct err *why)
{
	struct str *v;
	char *text;

	metric_add(&read_damage, NULL, 1);
	if (w->warned) /* one per window says enough */
		return;
	w->warned = true;
	text = arena_printf(&q->arena,
		"rows of the window that starts at %" PRId64 " may be missing: %s",
		w->w->start_ns / NS_PER_S, why->msg);
	v = arena_array(&q->arena, struct str, q->warnings_n + 1);
	if (!text || !v)
		return;
	if (q->warnings_n)
		memcpy(v, q->warnings, q->warnings_n * sizeof(*v));
	v[q->warnings_n++] = str_of(text);
	q->warnings = v;
}

void querier_check(struct db_querier *q, struct querier_window *w, const struct store_iter *it)
{
	struct err why;

	if (store_iter_status(it, &why))
		querier_warn(q, w, &why);
}

bool querier_canceled(const struct db_querier *q)
{
	return q->cancel && atomic_load_explicit(q->cancel, memory_order_relaxed);
}

struct store_iter *querier_iter(struct querier_window *w)
{
	if (!w->it && w->snap)
		w->it = store_iter_open(w->store, w->snap);
	return w->it;
}

/* ---- select ---- */

static enum err_code canceled(struct err *err)
{
	return err_set(err, ERR_CANCELED, "query canceled");
}

static bool has_rows(struct db_querier *q, const struct series *s)
{
	int64_t last = atomic_load(&s->last_ts_ns), ts;
	uint32_t id;

	if (last > q->min_ns && last <= q->max_ns)
		return true;
	for (size_t i = q->windows_n; i-- > 0;) {
		struct querier_window *w = &q->windows[i];
		int64_t from = q->min_ns > w->w->start_ns ? q->min_ns : w->w->start_ns;
		struct key key = key_row(s->id, from + 1);
		struct store_iter *it = querier_iter(w);

		if (!it)
			continue;
		store_iter_seek(it, key_str(&key));
		querier_check(q, w, it);
		if (store_iter_valid(it) && key_parse_row(store_iter_key(it), &id, &ts) &&
			id == s->id && ts <= q->max_ns)
			return true;
	}
	return false;
}

/* Ids of series that the matchers accept, of the windows' series. */
static enum err_code match(
	struct db_querier *q, const struct matcher *m, size_t n, struct bits *out, struct err *err)
{
	struct bits all = { 0 };
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < q->windows_n && !rc; i++) {
		const struct bits *b = &q->windows[i].w->series;

		if (b->words && !bits_reserve(&all, (uint32_t)(b->words * 64 - 1)))
			rc = err_set(err, ERR_NOMEM, "select: out of memory");
		for (size_t k = 0; k < b->words && !rc; k++)
			all.w[k] |= b->w[k];
	}
	if (!rc)
		rc = series_match_locked(q->db->series, m, n, &all, out, err);
	bits_release(&all);
	return rc;
}

/* Series of `ids` that are in the index still; the querier keeps their memory. */
static enum err_code collect(struct db_querier *q, const struct bits *ids, struct series ***out,
	size_t *n, struct err *err)
{
	size_t count = 0, at = 0;
	struct series **v;

	for (size_t w = 0; w < ids->words; w++)
		count += (size_t)__builtin_popcountll(ids->w[w]);
	if (!(v = malloc((count + 1) * sizeof(struct series *))))
		return err_set(err, ERR_NOMEM, "select: out of memory");
	for (size_t w = 0; w < ids->words; w++)
		for (uint64_t rest = ids->w[w]; rest; rest &= rest - 1) {
			uint32_t id = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));

			if ((v[at] = series_by_id_locked(q->db->series, id)))
				at++;
		}
	*out = v;
	*n = at;
	return ERR_OK;
}

static int series_cmp(const void *a, const void *b)
{
	const struct series *x = *(struct series *const *)a, *y = *(struct series *const *)b;

	return labels_cmp(x->labels, y->labels);
}

/* Sorted by labels; malloc'ed. */
static enum err_code select_series(struct db_querier *q, const struct matcher *m, size_t n,
	struct series ***out, size_t *out_n, struct err *err)
{
	struct bits ids = { 0 };
	struct series **v = NULL;
	size_t all = 0, kept = 0;
	enum err_code rc;

	series_lock_read(q->db->series);
	if (!(rc = match(q, m, n, &ids, err)))
		rc = collect(q, &ids, &v, &all, err);
	series_unlock(q->db->series);
	bits_release(&ids);
	for (size_t i = 0; i < all && !rc; i++) {
		if (i % 64 == 0 && querier_canceled(q))
			rc = canceled(err);
		else if (has_rows(q, v[i]))
			v[kept++] = v[i];
	}
	if (rc) {
		free(v);
		return rc;
	}
	qsort(v, kept, sizeof(struct series *), series_cmp);
	*out = v;
	*out_n = kept;
	return ERR_OK;
}

enum err_code db_select(struct db_querier *q, const struct matcher *m, size_t n, struct arena *a,
	struct db_series **out, size_t *out_n, struct err *err)
{
	struct series **v;
	enum err_code rc;
	size_t found;

	if ((rc = select_series(q, m, n, &v, &found, err)))
		return rc;
	if (!(*out = arena_array(a, struct db_series, found + 1))) {
		rc = arena_fail(a, "select", err);
		goto done;
	}
	for (size_t i = 0; i < found; i++) {
		struct series_place *place = arena_new(a, struct series_place);

		(*out)[i] = (struct db_series){ .labels = labels_dup(a, v[i]->labels),
			.partition = v[i]->partition,
			.places = place,
			.places_n = 1 };
		if (place)
			place->id = v[i]->id;
		if (!place || !(*out)[i].labels.v) {
			rc = arena_fail(a, "select", err);
			goto done;
		}
	}
	*out_n = found;
done:
	free(v);
	return rc;
}

/* ---- names ---- */

static int str_cmp_qsort(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static size_t unique(struct str *v, size_t n)
{
	size_t kept = 0;

	qsort(v, n, sizeof(*v), str_cmp_qsort);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || !str_eq(v[kept - 1], v[i]))
			v[kept++] = v[i];
	return kept;
}

struct names {
	struct str name; /* empty: label names are wanted, else this label's values */
	struct arena *arena;
	struct str *v;
	size_t n, cap;
};

static enum err_code names_add(struct names *x, struct str s, struct err *err)
{
	size_t cap = x->cap ? x->cap * 2 : 256;
	struct str *grown;

	if (!s.len)
		return ERR_OK;
	if (x->n == x->cap) {
		/* Most are the same ones again: only what is new may make it grow. */
		x->n = x->n ? unique(x->v, x->n) : 0;
		if (x->n * 2 > x->cap || !x->cap) {
			if (!(grown = realloc(x->v, cap * sizeof(*grown))))
				return err_set(err, ERR_NOMEM, "label names: out of memory");
			x->v = grown;
			x->cap = cap;
		}
	}
	x->v[x->n++] = s;
	return ERR_OK;
}

static enum err_code add_series_names(struct names *x, const struct series *s, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (x->name.len)
		return names_add(x, labels_get(s->labels, x->name), err);
	for (size_t k = 0; k < s->labels.n && !rc; k++)
		rc = names_add(x, s->labels.v[k].name, err);
	return rc;
}

static enum err_code add_value(
	struct names *x, const struct partition *p, uint32_t set, struct err *err)
{
	struct buf text = { 0 };
	struct str copy = { 0 };
	enum err_code rc;

	sym_label_value(p, set, x->name, &text);
	if (text.len)
		copy = str_dup(x->arena, buf_str(&text));
	rc = (text.len && !copy.ptr) || buf_failed(&text) ? arena_fail(x->arena, "label names", err) :
							    names_add(x, copy, err);
	buf_release(&text);
	return rc;
}

/* Those of a partition's samples, whichever of its series have them; names of ours are left out. */
static enum err_code add_sample_names(
	struct names *x, const struct partition *p, struct err *err)
{
	uint32_t sets = sym_label_sets_n(p);
	enum err_code rc = ERR_OK;

	if (x->name.len && !sym_has_label_key(p, x->name))
		return ERR_OK;
	for (uint32_t i = 1; i < sets && !rc; i++) {
		struct sym_label_set set = sym_label_set(p, i);

		if (x->name.len) {
			rc = add_value(x, p, i, err);
			continue;
		}
		for (uint32_t k = 0; k < set.n && !rc; k++) {
			struct str key = sym_string(p, set.v[k].key);

			if (!str_has_prefix(key, STR("__")))
				rc = names_add(x, key, err);
		}
	}
	return rc;
}

/* Label names (name empty) or one label's values, of the selected series and of their samples. */
static enum err_code names(struct db_querier *q, struct str name, const struct matcher *m, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	struct names x = { .name = name, .arena = a };
	uint32_t partitions = 0;
	struct series **v;
	bool *seen; /* partitions by index: each is looked at once */
	enum err_code rc;
	size_t found;

	if ((rc = select_series(q, m, n, &v, &found, err)))
		return rc;
	for (size_t i = 0; i < found; i++)
		if (partition_index(v[i]->partition) >= partitions)
			partitions = partition_index(v[i]->partition) + 1;
	if (!(seen = arena_array(a, bool, partitions + 1)))
		rc = arena_fail(a, "label names", err);
	for (size_t i = 0; i < found && !rc; i++) {
		uint32_t at = partition_index(v[i]->partition);

		rc = add_series_names(&x, v[i], err);
		if (!rc && !seen[at])
			rc = add_sample_names(&x, v[i]->partition, err);
		seen[at] = true;
	}
	x.n = x.n ? unique(x.v, x.n) : 0;
	if (!rc && !(*out = arena_array(a, struct str, x.n + 1)))
		rc = arena_fail(a, "label names", err);
	for (size_t i = 0; i < x.n && !rc; i++)
		if (!((*out)[i] = str_dup(a, x.v[i])).ptr)
			rc = arena_fail(a, "label names", err);
	*out_n = x.n;
	free(x.v);
	free(v);
	return rc;
}

enum err_code db_label_names(struct db_querier *q, const struct matcher *m, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	return names(q, (struct str){ 0 }, m, n, a, out, out_n, err);
}

enum err_code db_label_values(struct db_querier *q, struct str name, const struct matcher *m,
	size_t n, struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	return names(q, name, m, n, a, out, out_n, err);
}
