#include "tsdb/read/twins.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/thread.h"
#include "tsdb/read/twins_times.h"

#define TWINS_SUSPECTS_MAX 16384u /* of a querier; further ones are not looked at */
#define TWINS_BYTES_MAX ((size_t)32 << 20) /* of labels and places of suspects */
#define TWINS_MAX 100u /* series that are counted */
#define TWINS_WORK_MAX 65536u /* of a querier, as twins_times.h counts it */
#define TWINS_SERIES_WORK_MAX 4096u
#define TWINS_LABELS_MAX 300u /* bytes in the warning */
#define TWINS_MEMBERS_MAX 3u /* names in the warning */

struct twins_suspect {
	struct labels labels;
	const struct twins_part *parts;
	size_t parts_n;
	uint32_t selection;
	bool counted;
};

/* The time in which the series of one selection were added. */
struct twins_selection {
	struct twins_range {
		int64_t min_ns, max_ns; /* (min, max] */
	} * v; /* ascending; no two touch */
	size_t n, cap;
};

struct twins {
	struct mutex lock; /* guards all fields but any and told */
	struct twins_suspect *suspects;
	size_t n, cap;
	atomic_bool any; /* suspects */
	struct twins_selection *selections;
	size_t selections_n, selections_cap;
	struct arena arena; /* labels, parts */
	bool news; /* noted since twins_tell */
	bool partial; /* some suspects cannot be looked at */
	bool told; /* the querier's thread */
};

struct twins *twins_open(void)
{
	struct twins *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	mutex_init(&t->lock);
	arena_init(&t->arena, TWINS_BYTES_MAX);
	return t;
}

void twins_close(struct twins *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->selections_n; i++)
		free(t->selections[i].v);
	free(t->selections);
	free(t->suspects);
	arena_release(&t->arena);
	mutex_destroy(&t->lock);
	free(t);
}

/* ---- suspects ---- */

uint32_t twins_begin(struct twins *t)
{
	uint32_t number = UINT32_MAX;

	mutex_lock(&t->lock);
	if (array_room(&t->selections, t->selections_n, 1, &t->selections_cap)) {
		number = (uint32_t)t->selections_n++;
		t->selections[number] = (struct twins_selection){ 0 };
	}
	mutex_unlock(&t->lock);
	return number;
}

static int twins_part_cmp(const void *a, const void *b)
{
	const struct twins_part *x = a, *y = b;

	return (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

/* How far a member's parts reach so far. */
struct twins_reach {
	uint32_t member;
	int64_t last_ns;
};

/*
 * True if parts of different members overlap in time. Parts ascend by their first times; far[0] is
 * the member that reaches farthest, far[1] the farthest of the others.
 */
static bool twins_meet(const struct db_querier *q, const struct twins_part *parts, size_t n)
{
	struct twins_reach far[2] = { { UINT32_MAX, -1 }, { UINT32_MAX, -1 } };

	for (size_t i = 0; i < n; i++) {
		struct twins_reach p = { q->sources[parts[i].place.source].member, parts[i].last_ns };

		if (far[far[0].member == p.member].last_ns >= parts[i].first_ns)
			return true;
		if (far[0].member == p.member) {
			far[0].last_ns = p.last_ns > far[0].last_ns ? p.last_ns : far[0].last_ns;
		} else if (p.last_ns > far[0].last_ns) {
			far[1] = far[0];
			far[0] = p;
		} else if (p.last_ns > far[1].last_ns) {
			far[1] = p;
		}
	}
	return false;
}

static bool twins_add_suspect(struct twins *t, uint32_t selection, struct labels labels,
	const struct twins_part *parts, size_t n)
{
	struct twins_suspect s = { .parts_n = n, .selection = selection };
	struct twins_part *copy;

	mutex_assert_held(&t->lock);
	if (selection >= t->selections_n || t->n >= TWINS_SUSPECTS_MAX ||
		!(copy = arena_array(&t->arena, struct twins_part, n)))
		return false;
	memcpy(copy, parts, n * sizeof(*copy));
	s.parts = copy;
	s.labels = labels_dup(&t->arena, labels);
	if ((labels.n && !s.labels.v) || !array_room(&t->suspects, t->n, 1, &t->cap))
		return false;
	t->suspects[t->n++] = s;
	atomic_store(&t->any, true);
	return true;
}

uint32_t twins_suspect(struct db_querier *q, uint32_t selection, struct labels labels,
	struct twins_part *parts, size_t n)
{
	struct twins *t = q->twins;
	uint32_t number = 0;

	assert(n);
	qsort(parts, n, sizeof(*parts), twins_part_cmp);
	if (!twins_meet(q, parts, n))
		return 0;
	mutex_lock(&t->lock);
	if (twins_add_suspect(t, selection, labels, parts, n))
		number = (uint32_t)t->n;
	else
		t->partial = true;
	mutex_unlock(&t->lock);
	return number;
}

/* ---- what sums add ---- */

/* The first range that ends at or after ts. */
static size_t twins_range_at(const struct twins_selection *s, int64_t ts_ns)
{
	size_t from = 0, to = s->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (s->v[mid].max_ns < ts_ns)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* False: out of memory. */
static bool twins_add_range(struct twins_selection *s, struct twins_range r)
{
	size_t at = twins_range_at(s, r.min_ns), end = at;

	for (; end < s->n && s->v[end].min_ns <= r.max_ns; end++) {
		r.min_ns = s->v[end].min_ns < r.min_ns ? s->v[end].min_ns : r.min_ns;
		r.max_ns = s->v[end].max_ns > r.max_ns ? s->v[end].max_ns : r.max_ns;
	}
	if (end == at && !array_room(&s->v, s->n, 1, &s->cap))
		return false;
	memmove(s->v + at + 1, s->v + end, (s->n - end) * sizeof(*s->v));
	s->n = s->n - (end - at) + 1;
	s->v[at] = r;
	return true;
}

void twins_note_sum(struct db_querier *q, const struct db_series *const *series, size_t n,
	int64_t min_ns, int64_t max_ns)
{
	struct twins *t = q->twins;
	uint32_t selection = UINT32_MAX;
	size_t i = 0;

	if (!t || min_ns >= max_ns || !atomic_load_explicit(&t->any, memory_order_relaxed))
		return;
	while (i < n && !series[i]->twin)
		i++;
	if (i == n)
		return;
	mutex_lock(&t->lock);
	for (; i < n; i++) {
		struct twins_suspect *s = series[i]->twin ? &t->suspects[series[i]->twin - 1] : NULL;

		if (!s)
			continue;
		s->counted = true;
		if (s->selection != selection &&
			!twins_add_range(&t->selections[s->selection], (struct twins_range){ min_ns, max_ns }))
			t->partial = true;
		selection = s->selection;
	}
	t->news = true;
	mutex_unlock(&t->lock);
}

/* ---- looking ---- */

struct twins_looking {
	struct db_querier *q;
	struct twins_times *times;
	const struct twins_suspect *found[TWINS_MAX];
	size_t n;
	bool more; /* the search was cut short: there may be more */
	int64_t at_ns; /* time of the first twin */
	uint32_t members[TWINS_MEMBERS_MAX]; /* the members that have it */
	size_t members_n;
};

/* The first time at or after ts that sums of the selection have added; INT64_MAX: none. */
static int64_t twins_next_counted(const struct twins_selection *s, int64_t ts_ns)
{
	size_t at = twins_range_at(s, ts_ns);

	if (at == s->n)
		return INT64_MAX;
	return ts_ns > s->v[at].min_ns ? ts_ns : s->v[at].min_ns + 1;
}

/*
 * *a: the place whose next row comes first; *b: the first one of another member. A place that is
 * not read yet has its at_ns at a time before which it has no rows.
 */
static void twins_find_next(
	const struct twins_times *times, size_t n, struct twins_time **a, struct twins_time **b)
{
	*a = *b = NULL;
	for (size_t i = 0; i < n; i++) {
		struct twins_time *t = twins_time_of(times, i);

		if (!*a || t->at_ns < (*a)->at_ns)
			*a = t;
	}
	for (size_t i = 0; i < n; i++) {
		struct twins_time *t = twins_time_of(times, i);

		if (t->member != (*a)->member && (!*b || t->at_ns < (*b)->at_ns))
			*b = t;
	}
}

static bool twins_has_member(const struct twins_looking *l, uint32_t member)
{
	for (size_t i = 0; i < l->members_n && i < TWINS_MEMBERS_MAX; i++)
		if (l->members[i] == member)
			return true;
	return false;
}

/* Notes which members have a row at this time. */
static void twins_note_members(struct twins_looking *l, size_t n, int64_t at_ns)
{
	l->at_ns = at_ns;
	for (uint32_t m = 0; m < l->q->members_n; m++)
		for (size_t i = 0; i < n; i++) {
			struct twins_time *t = twins_time_of(l->times, i);

			if (t->member != m || t->at_ns != at_ns || twins_has_member(l, m))
				continue;
			if (!t->exact)
				twins_time_read(l->times, t);
			if (!t->exact || t->at_ns != at_ns)
				continue;
			if (l->members_n < TWINS_MEMBERS_MAX)
				l->members[l->members_n] = m;
			l->members_n++;
			break;
		}
}

/*
 * Walks over the times of all places at once, and jumps to the next time that two members may have.
 * So long stretches that only one member has are not read.
 */
static void twins_look_at(
	struct twins_looking *l, const struct twins_suspect *s, const struct twins_selection *sums)
{
	int64_t next_ns = twins_next_counted(sums, 0);
	struct twins_time *a, *b;
	size_t n = s->parts_n;

	if (!twins_times_begin(l->times, l->q, s->parts, n, TWINS_SERIES_WORK_MAX)) {
		l->more = true;
		return;
	}
	while (next_ns < INT64_MAX) {
		if (querier_canceled(l->q) || twins_times_is_over(l->times)) {
			l->more = true;
			return;
		}
		for (size_t i = 0; i < n; i++)
			twins_time_raise(twins_time_of(l->times, i), next_ns);
		twins_find_next(l->times, n, &a, &b);
		if (!b || b->at_ns == INT64_MAX)
			return;
		next_ns = twins_next_counted(sums, b->at_ns);
		if (a->at_ns < next_ns)
			continue;
		if (!a->exact || !b->exact) {
			twins_time_read(l->times, a->exact ? b : a);
			continue;
		}
		l->found[l->n++] = s;
		if (l->n == 1)
			twins_note_members(l, n, a->at_ns);
		return;
	}
}

static bool twins_is_found(const struct twins_looking *l, struct labels labels)
{
	for (size_t i = 0; i < l->n; i++)
		if (labels_eq(l->found[i]->labels, labels))
			return true;
	return false;
}

static void twins_look(struct twins_looking *l)
{
	const struct twins *t = l->q->twins;

	l->more = t->partial;
	for (size_t i = 0; i < t->n; i++) {
		const struct twins_suspect *s = &t->suspects[i];

		if (!s->counted || twins_is_found(l, s->labels))
			continue;
		if (l->n == TWINS_MAX || twins_times_work(l->times) >= TWINS_WORK_MAX) {
			l->more = true;
			return;
		}
		twins_look_at(l, s, &t->selections[s->selection]);
	}
}

/* ---- the warning ---- */

static void twins_print_labels(struct buf *out, struct labels labels)
{
	struct buf text = { 0 };
	size_t n;

	labels_print(&text, labels);
	n = text.len;
	if (n > TWINS_LABELS_MAX) {
		n = TWINS_LABELS_MAX;
		while (n && ((unsigned char)text.ptr[n] & 0xc0) == 0x80) /* within a code point */
			n--;
	}
	buf_add(out, text.ptr, n);
	if (n < text.len)
		buf_add_cstr(out, "...");
	buf_release(&text);
}

static void twins_warn(const struct twins_looking *l)
{
	size_t named = l->members_n < TWINS_MEMBERS_MAX ? l->members_n : TWINS_MEMBERS_MAX;
	struct buf text = { 0 };

	buf_printf(&text, "%s%zu series %s profiles of one time in several shards, which count twice: ",
		l->more ? "at least " : "", l->n, l->n == 1 ? "has" : "have");
	twins_print_labels(&text, l->found[0]->labels);
	buf_add_cstr(&text, " at ");
	time_print_rfc3339(&text, l->at_ns);
	for (size_t i = 0; i < named; i++)
		buf_printf(&text, "%s%s",
			i == 0                                      ? " in " :
				i + 1 == named && named == l->members_n ? " and " :
														  ", ",
			l->q->of[l->members[i]]->name);
	if (named < l->members_n)
		buf_printf(&text, " and %zu more", l->members_n - named);
	querier_warn_text(l->q,
		buf_failed(&text) ? NULL : arena_printf(&l->q->arena, STR_FMT, STR_ARG(buf_str(&text))));
	buf_release(&text);
}

void twins_tell(struct db_querier *q)
{
	struct twins_looking l = { .q = q };
	struct twins *t = q->twins;

	if (!t || q->fork || t->told || !atomic_load_explicit(&t->any, memory_order_relaxed) ||
		!(l.times = twins_times_open()))
		return;
	mutex_lock(&t->lock);
	if (t->news)
		twins_look(&l);
	t->news = false;
	mutex_unlock(&t->lock);
	if ((t->told = l.n > 0))
		twins_warn(&l);
	twins_times_close(l.times);
}
