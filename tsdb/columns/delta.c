#include "tsdb/columns/delta.h"

#include <assert.h>
#include <stdlib.h>

#include "tsdb/columns/row.h"
#include "tsdb/symbols/partition.h"

/* The sums of one profile's cumulative columns: distinct keys, ascending; column c of entry i: v[c
 * * n + i]. */
struct delta_sums {
	uint32_t n, columns_n;
	uint64_t *keys;
	uint32_t *first; /* the input's entry where its delta goes */
	int64_t *v;
	__int128 total[ROW_COLUMNS_MAX];
};

void delta_base_release(struct delta_base *b)
{
	buf_release(&b->bytes);
	*b = (struct delta_base){ 0 };
}

static enum err_code delta_nomem(const struct arena *a, struct err *err)
{
	return arena_fail(a, "delta of a profile", err);
}

/* The cumulative columns by distinct key. */
static enum err_code delta_input_sum_up(
	const struct delta_input *in, struct arena *a, struct delta_sums *out, struct err *err)
{
	uint32_t columns[ROW_COLUMNS_MAX];

	out->columns_n = 0;
	for (uint32_t c = 0; c < in->columns_n; c++)
		if (in->kinds[c] == KIND_CUMULATIVE)
			columns[out->columns_n++] = c;
	out->keys = arena_alloc_raw(a, (size_t)in->n + 1, sizeof(*out->keys));
	out->first = arena_alloc_raw(a, (size_t)in->n + 1, sizeof(*out->first));
	out->v = arena_alloc_raw(a, ((size_t)in->n + 1) * out->columns_n, sizeof(*out->v));
	if (!out->keys || !out->first || !out->v)
		return delta_nomem(a, err);
	out->n = 0;
	for (uint32_t i = 0; i < in->n; i++)
		if (i == 0 || in->keys[i] != in->keys[i - 1])
			out->n++;
	for (uint32_t c = 0; c < out->columns_n; c++) {
		const int64_t *from = in->values + (size_t)columns[c] * in->n;
		int64_t *to = out->v + (size_t)c * out->n;
		uint32_t at = 0;

		out->total[c] = 0;
		for (uint32_t i = 0; i < in->n; i++) {
			if (i && in->keys[i] == in->keys[i - 1]) {
				if (__builtin_add_overflow(to[at - 1], from[i], &to[at - 1]))
					return err_set(err, ERR_LIMIT, "sum of a stack's counters exceeds 64 bits");
			} else {
				out->keys[at] = in->keys[i];
				out->first[at] = i;
				to[at++] = from[i];
			}
			out->total[c] += from[i];
		}
	}
	return ERR_OK;
}

static enum err_code delta_base_read(
	const struct delta_base *base, struct arena *a, struct delta_sums *out, struct err *err)
{
	struct row_view *v = arena_new(a, struct row_view);
	uint32_t *stacks, *sets;
	enum err_code rc;

	if (!v)
		return delta_nomem(a, err);
	if ((rc = row_parse(buf_str(&base->bytes), base->ts_ns, v, err)))
		return rc;
	stacks = arena_alloc_raw(a, (size_t)v->n + 1, sizeof(*stacks));
	sets = arena_alloc_raw(a, (size_t)v->n + 1, sizeof(*sets));
	out->keys = arena_alloc_raw(a, (size_t)v->n + 1, sizeof(*out->keys));
	out->v = arena_alloc_raw(a, ((size_t)v->n + 1) * v->columns_n, sizeof(*out->v));
	if (!stacks || !sets || !out->keys || !out->v)
		return delta_nomem(a, err);
	if ((rc = row_ids(v, stacks, sets, err)))
		return rc;
	out->n = v->n;
	out->columns_n = v->columns_n;
	for (uint32_t i = 0; i < v->n; i++)
		out->keys[i] = (uint64_t)stacks[i] << 32 | sets[i];
	for (uint32_t c = 0; c < v->columns_n; c++) {
		if ((rc = row_values(v, c, out->v + (size_t)c * v->n, err)))
			return rc;
		out->total[c] = v->columns[c].total;
	}
	return ERR_OK;
}

static enum err_code delta_sums_write_base(
	const struct delta_sums *s, int64_t ts_ns, struct arena *a, struct buf *out, struct err *err)
{
	uint32_t *stacks = arena_alloc_raw(a, (size_t)s->n + 1, sizeof(*stacks));
	uint32_t *sets = arena_alloc_raw(a, (size_t)s->n + 1, sizeof(*sets));
	enum err_code rc;
	char *exact;

	if (!stacks || !sets)
		return delta_nomem(a, err);
	for (uint32_t i = 0; i < s->n; i++) {
		stacks[i] = (uint32_t)(s->keys[i] >> 32);
		sets[i] = (uint32_t)s->keys[i];
	}
	if ((rc = row_encode(&(struct row){ .n = s->n,
							 .columns_n = s->columns_n,
							 .stacks = stacks,
							 .label_sets = sets,
							 .values = s->v },
			 ts_ns, out, err)))
		return rc;
	/* It stays for an interval at least, and what is encoded into has room for the worst case. */
	if (!(exact = malloc(out->len)))
		return err_nomem(err, "delta of a profile");
	memcpy(exact, out->ptr, out->len);
	free(out->ptr);
	out->ptr = exact;
	out->cap = out->len;
	return ERR_OK;
}

/* Subtracts `before` from `now`. False when a counter fell; then *now is of no use. */
static bool delta_sums_subtract(struct delta_sums *now, const struct delta_sums *before)
{
	uint32_t i = 0;

	for (uint32_t j = 0; j < before->n; j++) {
		while (i < now->n && now->keys[i] < before->keys[j])
			i++;
		for (uint32_t c = 0; c < before->columns_n; c++) {
			int64_t was = before->v[(size_t)c * before->n + j], *is;

			if (i == now->n || now->keys[i] != before->keys[j]) {
				if (was > 0)
					return false; /* vanished */
				continue;
			}
			is = &now->v[(size_t)c * now->n + i];
			if (*is < was || __builtin_sub_overflow(*is, was, is))
				return false;
		}
	}
	return true;
}

static bool delta_sums_total_fell(const struct delta_sums *now, const struct delta_sums *before)
{
	for (uint32_t c = 0; c < now->columns_n; c++)
		if (now->total[c] < before->total[c])
			return true;
	return false;
}

/* The sums, or zeros where s is NULL, into the input's cumulative columns. */
static void delta_input_put_back(const struct delta_input *in, const struct delta_sums *s)
{
	uint32_t at = 0;

	for (uint32_t c = 0; c < in->columns_n; c++) {
		int64_t *to = in->values + (size_t)c * in->n;

		if (in->kinds[c] != KIND_CUMULATIVE)
			continue;
		memset(to, 0, in->n * sizeof(*to));
		for (uint32_t i = 0; s && i < s->n; i++)
			to[s->first[i]] = s->v[(size_t)at * s->n + i];
		at++;
	}
}

bool delta_base_young(const struct delta_base *base, int64_t ts_ns, int64_t interval_ns)
{
	int64_t age;

	if (!base->bytes.len || ts_ns <= base->ts_ns)
		return false;
	age = ts_ns - base->ts_ns;
	return age / DELTA_BASE_INTERVALS_MAX < interval_ns ||
		(age / DELTA_BASE_INTERVALS_MAX == interval_ns && age % DELTA_BASE_INTERVALS_MAX == 0);
}

enum err_code delta_apply(const struct delta_base *base, const struct delta_input *in,
	struct arena *a, struct delta_base *next, bool *first, struct err *err)
{
	struct delta_sums *now = arena_new(a, struct delta_sums),
					  *raw = arena_new(a, struct delta_sums);
	struct delta_sums *before = arena_new(a, struct delta_sums);
	const struct delta_sums *put = NULL;
	struct buf bytes = { 0 };
	enum err_code rc;
	size_t size;

	assert(in->columns_n <= ROW_COLUMNS_MAX);
	assert(in->n == 0 || (in->keys && (in->values || in->columns_n == 0)));
	*first = false;
	*next = (struct delta_base){ 0 };
	if (!now || !raw || !before)
		return delta_nomem(a, err);
	if ((rc = delta_input_sum_up(in, a, now, err)))
		return rc;
	if (now->columns_n == 0)
		return ERR_OK;
	if (base->bytes.len && in->ts_ns <= base->ts_ns) { /* late: the base stays */
		*first = true;
		delta_input_put_back(in, NULL);
		return ERR_OK;
	}
	if ((rc = delta_sums_write_base(now, in->ts_ns, a, &bytes, err)))
		goto out;
	if (base->types != in->types || !delta_base_young(base, in->ts_ns, in->interval_ns)) {
		*first = true;
	} else {
		if ((rc = delta_base_read(base, a, before, err)))
			goto out;
		/* subtract works in place, and a restart wants the numbers as they were. */
		*raw = *now;
		size = (size_t)now->n * now->columns_n * sizeof(*now->v);
		if (!(now->v = arena_alloc_raw(a, 1, size + 1))) {
			rc = delta_nomem(a, err);
			goto out;
		}
		if (size)
			memcpy(now->v, raw->v, size);
		if (delta_sums_subtract(now, before))
			put = now;
		else if (delta_sums_total_fell(raw, before))
			put = raw;
	}
	delta_input_put_back(in, put);
	*next = (struct delta_base){
		.bytes = bytes, .ts_ns = in->ts_ns, .interval_ns = in->interval_ns, .types = in->types
	};
	return ERR_OK;
out:
	buf_release(&bytes);
	return rc;
}

/* ---- other ids ---- */

/* The entries in the order of the new keys; the values of equal ones are added up. */
static enum err_code delta_sums_reorder(struct delta_sums *s, const uint64_t *keys,
	const uint32_t *order, struct arena *a, struct err *err)
{
	int64_t *v = arena_alloc_raw(a, ((size_t)s->n + 1) * s->columns_n, sizeof(*v)), *to;
	uint32_t n = 0;

	if (!v)
		return delta_nomem(a, err);
	for (uint32_t i = 0; i < s->n; i++)
		if (i == 0 || keys[i] != keys[i - 1])
			s->keys[n++] = keys[i];
	for (uint32_t c = 0; c < s->columns_n; c++) {
		to = v + (size_t)c * n;
		for (uint32_t i = 0, at = 0; i < s->n; i++) {
			int64_t is = s->v[(size_t)c * s->n + order[i]];

			if (i == 0 || keys[i] != keys[i - 1])
				to[at++] = is;
			else if (__builtin_add_overflow(to[at - 1], is, &to[at - 1]))
				return err_set(err, ERR_LIMIT, "sum of a stack's counters exceeds 64 bits");
		}
	}
	s->v = v;
	s->n = n;
	return ERR_OK;
}

enum err_code delta_base_renumber(
	struct delta_base *base, delta_renumber_fn fn, void *ctx, struct arena *a, struct err *err)
{
	struct delta_sums *s = arena_new(a, struct delta_sums);
	uint64_t *keys, *keys_tmp;
	uint32_t *order, *order_tmp, stack, set;
	struct buf bytes = { 0 };
	enum err_code rc;

	if (!s)
		return delta_nomem(a, err);
	if ((rc = delta_base_read(base, a, s, err)))
		return rc;
	keys = arena_alloc_raw(a, (size_t)s->n + 1, sizeof(*keys));
	keys_tmp = arena_alloc_raw(a, (size_t)s->n + 1, sizeof(*keys_tmp));
	order = arena_alloc_raw(a, (size_t)s->n + 1, sizeof(*order));
	order_tmp = arena_alloc_raw(a, (size_t)s->n + 1, sizeof(*order_tmp));
	if (!keys || !keys_tmp || !order || !order_tmp)
		return delta_nomem(a, err);
	for (uint32_t i = 0; i < s->n; i++) {
		stack = (uint32_t)(s->keys[i] >> 32);
		set = (uint32_t)s->keys[i];
		if ((rc = fn(ctx, &stack, &set, err)))
			return rc;
		keys[i] = (uint64_t)stack << 32 | set;
		order[i] = i;
	}
	keys_sort(keys, order, s->n, keys_tmp, order_tmp);
	if ((rc = delta_sums_reorder(s, keys, order, a, err)))
		return rc;
	if ((rc = delta_sums_write_base(s, base->ts_ns, a, &bytes, err))) {
		buf_release(&bytes);
		return rc;
	}
	buf_release(&base->bytes);
	base->bytes = bytes;
	return ERR_OK;
}
