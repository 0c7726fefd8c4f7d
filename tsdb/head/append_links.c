#include <stdlib.h>

#include "base/metrics.h"
#include "tsdb/columns/links.h"
#include "tsdb/head/append_internal.h"

/*
 * Links of a profile's samples, as OTLP has them. They are kept beside the entries: the same stack
 * and label set under different spans is one entry of the row, so that a request's id does not
 * multiply what is summed, and one entry per span of the links.
 */
METRIC_COUNTER(links_total, "epimetheus_tsdb_links_appended_total",
	"Links of samples to spans that were appended.", NULL);
METRIC_COUNTER(links_dropped, "epimetheus_tsdb_links_dropped_total",
	"Links of samples that were dropped: too many in the profile.", NULL);

struct linked {
	uint64_t key; /* as interned.keys */
	uint32_t link, entry;
};

static bool append_links_is_none(const struct pprof_link *l)
{
	static const struct pprof_link none;

	return !memcmp(l, &none, sizeof(none));
}

uint32_t *append_links_find(const struct pprof *p, const struct interned *in, struct arena *a)
{
	uint32_t *out = arena_alloc_raw(a, (size_t)in->n + 1, sizeof(*out));

	for (uint32_t i = 0; i < in->n && out; i++) {
		uint32_t link = p->sample_links[in->samples[i]];

		out[i] = link && !append_links_is_none(&p->links[link]) ? link : 0;
	}
	return out;
}

static int linked_cmp(const void *left, const void *right)
{
	const struct linked *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->link != b->link)
		return a->link < b->link ? -1 : 1;
	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

/* Adds entry `from` to entry `to` in all columns, each of them `stride` long. False: a sum exceeds
 * 64 bits, and nothing is added. */
static bool append_links_add_entry(
	int64_t *to, const int64_t *from, uint32_t to_stride, uint32_t from_stride, uint32_t columns_n)
{
	int64_t sum[ROW_COLUMNS_MAX];

	for (uint32_t c = 0; c < columns_n; c++)
		if (__builtin_add_overflow(
				to[(size_t)c * to_stride], from[(size_t)c * from_stride], &sum[c]))
			return false;
	for (uint32_t c = 0; c < columns_n; c++)
		to[(size_t)c * to_stride] = sum[c];
	return true;
}

static void append_links_copy_entry(
	int64_t *to, const int64_t *from, uint32_t to_stride, uint32_t from_stride, uint32_t columns_n)
{
	for (uint32_t c = 0; c < columns_n; c++)
		to[(size_t)c * to_stride] = from[(size_t)c * from_stride];
}

/* Columns of `stride` become columns of n. */
static void append_links_narrow(int64_t *values, uint32_t stride, uint32_t n, uint32_t columns_n)
{
	for (uint32_t c = 1; c < columns_n && n < stride; c++)
		memmove(values + (size_t)c * n, values + (size_t)c * stride, n * sizeof(*values));
}

static void append_links_merge_equal(const struct linking *l)
{
	uint32_t n = l->in->n, kept = 0, columns_n = l->r.columns_n;
	uint64_t *keys = l->in->keys;

	for (uint32_t i = 0; i < n; i++) {
		if (kept && keys[i] == keys[kept - 1] &&
			append_links_add_entry(l->values + kept - 1, l->values + i, n, n, columns_n))
			continue;
		keys[kept] = keys[i];
		append_links_copy_entry(l->values + kept++, l->values + i, n, n, columns_n);
	}
	append_links_narrow(l->values, n, kept, columns_n);
	l->in->n = kept;
}

/* Linked entries by (key, link), *n of them. NULL: no memory. */
static struct linked *append_links_list(const struct linking *l, uint32_t *n, uint32_t *dropped)
{
	struct linked *v = arena_alloc_raw(l->a, (size_t)l->in->n + 1, sizeof(*v));

	*n = *dropped = 0;
	for (uint32_t i = 0; i < l->in->n && v; i++) {
		uint32_t link = l->find[l->in->samples[i]];

		if (link && *n < LINKS_ROW_MAX)
			v[(*n)++] = (struct linked){ l->in->keys[i], link, i };
		else if (link)
			++*dropped;
	}
	if (v && *n)
		qsort(v, *n, sizeof(*v), linked_cmp);
	return v;
}

static int append_links_u32_cmp(const void *left, const void *right)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* Numbers of the profile's links become those of the links' own table. */
static bool append_links_renumber(
	const struct linking *l, uint32_t *of, uint32_t n, struct links *out)
{
	uint32_t *seen = arena_alloc_raw(l->a, (size_t)n + 1, sizeof(*seen)), *at;
	struct pprof_link *spans = arena_array(l->a, struct pprof_link, (size_t)n + 1);

	if (!seen || !spans)
		return false;
	memcpy(seen, of, n * sizeof(*of));
	qsort(seen, n, sizeof(*seen), append_links_u32_cmp);
	for (uint32_t i = 0; i < n; i++)
		if (!i || seen[i] != seen[out->spans_n - 1])
			seen[out->spans_n++] = seen[i];
	for (uint32_t i = 0; i < out->spans_n; i++)
		spans[i] = l->f->links[seen[i]];
	for (uint32_t i = 0; i < n; i++) {
		at = bsearch(&of[i], seen, out->spans_n, sizeof(*seen), append_links_u32_cmp);
		of[i] = (uint32_t)(at - seen);
	}
	out->spans = spans;
	out->of = of;
	return true;
}

/* One entry per key and link. False: no memory. */
static bool append_links_gather(const struct linking *l, const struct linked *linked, uint32_t n,
	struct row *r, struct links *links)
{
	uint32_t *stacks = arena_alloc_raw(l->a, n, sizeof(*stacks)), columns_n = r->columns_n;
	uint32_t *sets = arena_alloc_raw(l->a, n, sizeof(*sets)), kept = 0;
	uint32_t *of = arena_alloc_raw(l->a, n, sizeof(*of));
	int64_t *values = arena_alloc_raw(l->a, (size_t)n * columns_n + 1, sizeof(*values));

	if (!stacks || !sets || !of || !values)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const int64_t *from = l->values + linked[i].entry;

		if (i && linked[i].key == linked[i - 1].key && linked[i].link == linked[i - 1].link &&
			append_links_add_entry(values + kept - 1, from, n, l->in->n, columns_n))
			continue;
		stacks[kept] = (uint32_t)(linked[i].key >> 32);
		sets[kept] = (uint32_t)linked[i].key;
		of[kept] = linked[i].link;
		append_links_copy_entry(values + kept++, from, n, l->in->n, columns_n);
	}
	append_links_narrow(values, n, kept, columns_n);
	r->n = kept;
	r->stacks = stacks;
	r->label_sets = sets;
	r->values = values;
	return append_links_renumber(l, of, kept, links);
}

enum err_code append_links_encode(
	const struct linking *l, struct buf *out, struct db_append_stats *stats, struct err *err)
{
	struct links links = { 0 };
	struct row r = l->r;
	struct linked *v;
	uint32_t n, dropped;
	enum err_code rc;

	if (!(v = append_links_list(l, &n, &dropped)))
		return arena_fail(l->a, "storing a profile", err);
	if (!n)
		return ERR_OK;
	links.dropped = dropped;
	if (!append_links_gather(l, v, n, &r, &links))
		return arena_fail(l->a, "storing a profile", err);
	append_links_merge_equal(l);
	rc = links_encode(&links, &r, l->ts_ns, out, err);
	/* Of linked samples alone a total may exceed 64 bits, as others are negative. */
	if (rc == ERR_LIMIT) {
		buf_clear(out);
		stats->links_dropped = n + dropped;
		return ERR_OK;
	}
	stats->links = r.n;
	stats->links_dropped = dropped;
	return rc;
}

void append_links_count(const struct db_append_stats *stats)
{
	if (stats->links)
		metric_add(&links_total, NULL, stats->links);
	if (stats->links_dropped)
		metric_add(&links_dropped, NULL, stats->links_dropped);
}
