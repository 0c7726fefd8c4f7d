#include "tsdb/block/block_internal.h"

/* Selecting series by postings, and names and values of labels. */

struct block_match {
	struct block *b;
	const struct matcher *m;
	struct str name; /* of the label that is looked at */
	block_has_key_fn has_key;
	void *ctx;
	struct bits has, yes; /* series with the label; those whose value matches */
	struct buf key, value;
	struct err *err;
};

static void block_set_run(struct bits *b, uint32_t first, uint32_t n)
{
	for (uint32_t end = first + n; first < end;) {
		uint32_t bit = first & 63, here = 64 - bit < end - first ? 64 - bit : end - first;
		uint64_t ones = here == 64 ? UINT64_MAX : (UINT64_C(1) << here) - 1;

		b->w[first >> 6] |= ones << bit;
		first += here;
	}
}

static enum err_code block_match_set_posting(
	struct block_match *b, struct bits *into, struct str bytes)
{
	struct posting_reader r;
	uint32_t first, n, total = 0;
	enum err_code rc;

	if ((rc = posting_open(&r, bytes, (uint32_t)b->b->meta.series, b->err)))
		return rc;
	for (; posting_next(&r, &first, &n); total += n)
		block_set_run(into, first, n);
	if (r.in.bad || total != r.series_n)
		return err_set(b->err, ERR_CORRUPT, "a posting is wrong");
	return ERR_OK;
}

/* The posting under b->key; none is fine. */
static enum err_code block_match_add_posting(struct block_match *b, struct bits *into)
{
	enum err_code rc;

	buf_clear(&b->value);
	if (buf_failed(&b->key))
		return err_nomem(b->err, "select");
	rc = index_get(b->b, buf_str(&b->key), &b->value, b->err);
	if (rc == ERR_NOT_FOUND)
		return ERR_OK;
	return rc ? rc : block_match_set_posting(b, into, buf_str(&b->value));
}

static enum err_code block_match_add_name(struct block_match *b, struct str name, struct bits *into)
{
	buf_clear(&b->key);
	block_key_name(&b->key, name);
	return block_match_add_posting(b, into);
}

static enum err_code block_match_add_value(struct block_match *b, struct bits *into)
{
	buf_clear(&b->key);
	block_key_value(&b->key, b->name, b->m->value);
	return block_match_add_posting(b, into);
}

/* Every value of the name is tested once. */
static enum err_code block_match_test_values(struct block_match *b, struct index_iter *it)
{
	struct str key, value;
	enum err_code rc;

	while (!(rc = index_iter_next(it, &key, &value, b->err))) {
		key.ptr += it->prefix;
		key.len -= it->prefix;
		if (matcher_test(b->m, key) && (rc = block_match_set_posting(b, &b->yes, value)))
			break;
	}
	return rc;
}

/*
 * Looks up the values that a matcher lists, in their order. Those that lie between two values of
 * the index are passed over together, so the shorter list decides how many steps there are.
 */
static enum err_code block_match_look_up(struct block_match *b, struct index_iter *it)
{
	struct str listed, key, value;
	enum err_code rc = ERR_NOT_FOUND;
	size_t i = 0;

	while (matcher_listed(b->m, i, &listed)) {
		b->key.len = it->prefix;
		buf_add_str(&b->key, listed);
		if (buf_failed(&b->key))
			return err_nomem(b->err, "select");
		index_iter_seek(it, buf_str(&b->key));
		if ((rc = index_iter_next(it, &key, &value, b->err)))
			return rc;
		key.ptr += it->prefix;
		key.len -= it->prefix;
		if (str_eq(key, listed)) {
			if ((rc = block_match_set_posting(b, &b->yes, value)))
				return rc;
			i++;
			continue;
		}
		while (matcher_listed(b->m, i, &listed) && str_cmp(listed, key) < 0)
			i++;
	}
	return ERR_OK;
}

/* Sets `yes` by a regular expression, be it negated or not. */
static enum err_code block_match_add_matching(struct block_match *b)
{
	struct index_iter it;
	struct str listed;
	enum err_code rc;

	buf_clear(&b->key);
	block_key_value(&b->key, b->name, STR(""));
	if (buf_failed(&b->key))
		return err_nomem(b->err, "select");
	if ((rc = index_iter_open(&it, b->b, buf_str(&b->key), b->err)))
		return rc;
	rc = matcher_listed(b->m, 0, &listed) ? block_match_look_up(b, &it) :
											block_match_test_values(b, &it);
	index_iter_close(&it);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* Leaves in `yes` the series that have the label and are not in it. */
static void block_match_invert(struct block_match *b)
{
	for (size_t w = 0; w < b->yes.words; w++)
		b->yes.w[w] = b->has.w[w] & ~b->yes.w[w];
}

/* Some series of the slot lacks the label and is still among those that may match. */
static bool block_match_slot_lacks(
	const struct block_match *b, const struct block_slot *s, const struct bits *among)
{
	for (uint32_t id = s->first; id < s->first + s->n;) {
		uint64_t rest = (among->w[id >> 6] & ~b->has.w[id >> 6]) >> (id & 63);

		if (rest)
			return id + (uint32_t)__builtin_ctzll(rest) < s->first + s->n;
		id = (id | 63) + 1;
	}
	return false;
}

/*
 * A sample's label is matched by its own name, or as sample_<name> where the series has a label of
 * that name: then it is the samples that the matcher is about.
 */
static enum err_code block_match_about_samples(struct block_match *b, const struct bits *among)
{
	struct str name = b->m->name, inner = { name.ptr + 7, name.len - 7 };
	bool inner_too = str_has_prefix(name, STR("sample_"));
	struct bits clash = { 0 };
	enum err_code rc = ERR_OK;

	if (!b->has_key)
		return ERR_OK;
	if (inner_too) {
		if (!bits_reserve(&clash, (uint32_t)(among->words * 64 - 1)))
			return err_nomem(b->err, "select");
		rc = block_match_add_name(b, inner, &clash);
	}
	for (uint32_t slot = 0; slot < b->b->meta.partitions && !rc; slot++) {
		const struct block_slot *s = &b->b->slots[slot];
		bool all;

		if (!block_match_slot_lacks(b, s, among)) /* to ask costs a look at all sources */
			continue;
		all = b->has_key(b->ctx, slot, name);
		if (!all && (!inner_too || !b->has_key(b->ctx, slot, inner)))
			continue;
		for (uint32_t id = s->first; id < s->first + s->n; id++)
			if (!bits_get(&b->has, id) && (all || bits_get(&clash, id)))
				bits_set(&b->yes, id);
	}
	bits_release(&clash);
	return rc;
}

/* Series that have the label `name`, and those of them whose value matches. */
static enum err_code block_match_label(struct block_match *b, struct str name, size_t words)
{
	struct str listed;
	enum err_code rc;

	b->name = name;
	if (!bits_reserve(&b->has, (uint32_t)(words * 64 - 1)) ||
		!bits_reserve(&b->yes, (uint32_t)(words * 64 - 1)))
		return err_nomem(b->err, "select");
	if ((rc = block_match_add_name(b, name, &b->has)))
		return rc;
	rc = b->m->re ? block_match_add_matching(b) : block_match_add_value(b, &b->yes);
	if (!rc &&
		(b->m->op == MATCH_NE || (b->m->op == MATCH_NRE && matcher_listed(b->m, 0, &listed))))
		block_match_invert(b); /* of listed values; patterns are tested as they are */
	return rc;
}

static void block_match_release(struct block_match *b)
{
	bits_release(&b->has);
	bits_release(&b->yes);
	buf_release(&b->key);
	buf_release(&b->value);
}

/* LABEL_SERVICE: of series without service_name it is the job. */
static enum err_code block_match_service(struct block_match *b, size_t words)
{
	struct block_match other = { .b = b->b, .m = b->m, .err = b->err };
	enum err_code rc;

	if (!(rc = block_match_label(b, STR(LABEL_SERVICE_NAME), words)))
		rc = block_match_label(&other, STR(LABEL_SERVICE_ELSE), words);
	for (size_t w = 0; w < words && !rc; w++) {
		b->yes.w[w] |= other.yes.w[w] & ~b->has.w[w];
		b->has.w[w] |= other.has.w[w];
	}
	block_match_release(&other);
	return rc;
}

static enum err_code match_one(struct block_match *b, struct bits *out)
{
	const struct matcher *m = b->m;
	bool empty = matcher_test(m, STR(""));
	enum err_code rc;

	rc = label_is_service(m->name) ? block_match_service(b, out->words) :
									 block_match_label(b, m->name, out->words);
	if (!rc && !empty)
		rc = block_match_about_samples(b, out);
	for (size_t w = 0; w < out->words && !rc; w++)
		out->w[w] &= b->yes.w[w] | (empty ? ~b->has.w[w] : 0);
	return rc;
}

enum err_code block_match(struct block *b, const struct matcher *m, size_t n,
	block_has_key_fn has_key, void *ctx, struct bits *out, struct err *err)
{
	uint32_t series = (uint32_t)b->meta.series;
	enum err_code rc = ERR_OK;

	if (series && !bits_reserve(out, series - 1))
		return err_nomem(err, "select");
	if (out->words)
		memset(out->w, 0, out->words * sizeof(*out->w));
	if (!series)
		return ERR_OK;
	block_set_run(out, 0, series);
	for (size_t i = 0; !rc && i < n; i++) {
		struct block_match t = { .b = b, .m = &m[i], .has_key = has_key, .ctx = ctx, .err = err };

		rc = match_one(&t, out);
		block_match_release(&t);
	}
	return rc ? err_wrap(err, rc, "block %s", b->dir) : ERR_OK;
}

/* ---- names and values ---- */

struct block_walk {
	struct block *b;
	const struct bits *except; /* values that only these series have are left out; NULL: none */
	block_name_fn fn;
	void *ctx;
	struct err *err;
	bool ended; /* by fn */
};

/* *n: the series of a posting but for those that are left out. */
static enum err_code block_walk_count(struct block_walk *walk, struct str posting, uint32_t *n)
{
	struct posting_reader r;
	uint32_t first, run;
	enum err_code rc;

	if ((rc = posting_open(&r, posting, (uint32_t)walk->b->meta.series, walk->err)))
		return rc;
	*n = r.series_n;
	if (!walk->except)
		return ERR_OK;
	for (*n = 0; posting_next(&r, &first, &run);)
		for (uint32_t id = first; id < first + run; id++)
			*n += !bits_get(walk->except, id);
	return r.in.bad ? err_set(walk->err, ERR_CORRUPT, "a posting is wrong") : ERR_OK;
}

static enum err_code block_walk_names(struct block_walk *walk, struct str prefix)
{
	struct str key, value;
	struct index_iter it;
	enum err_code rc;
	uint32_t n;

	if ((rc = index_iter_open(&it, walk->b, prefix, walk->err)))
		return rc;
	while (!walk->ended && !(rc = index_iter_next(&it, &key, &value, walk->err))) {
		if ((rc = block_walk_count(walk, value, &n)))
			break;
		key.ptr += prefix.len;
		key.len -= prefix.len;
		walk->ended = (n || !walk->except) && !walk->fn(walk->ctx, key, n);
	}
	index_iter_close(&it);
	if (rc == ERR_NOT_FOUND)
		rc = ERR_OK;
	return rc ? err_wrap(walk->err, rc, "block %s", walk->b->dir) : ERR_OK;
}

enum err_code block_label_names(struct block *b, block_name_fn fn, void *ctx, struct err *err)
{
	struct block_walk walk = { .b = b, .fn = fn, .ctx = ctx, .err = err };
	const char letter = KEY_NAME;

	return block_walk_names(&walk, (struct str){ &letter, 1 });
}

static enum err_code block_walk_values(struct block_walk *walk, struct str name)
{
	struct buf prefix = { 0 };
	enum err_code rc;

	block_key_value(&prefix, name, STR(""));
	rc = buf_failed(&prefix) ? err_nomem(walk->err, "block") :
							   block_walk_names(walk, buf_str(&prefix));
	buf_release(&prefix);
	return rc;
}

enum err_code block_label_values(
	struct block *b, struct str name, block_name_fn fn, void *ctx, struct err *err)
{
	struct block_walk walk = { .b = b, .fn = fn, .ctx = ctx, .err = err };
	struct block_match service = { .b = b, .err = err };
	enum err_code rc;

	if (!label_is_service(name))
		return block_walk_values(&walk, name);
	if (!b->meta.series || (rc = block_walk_values(&walk, STR(LABEL_SERVICE_NAME))))
		return b->meta.series ? rc : ERR_OK;
	walk.except = &service.has;
	if (!bits_reserve(&service.has, (uint32_t)b->meta.series - 1))
		rc = err_nomem(err, "block");
	if (!rc && !(rc = block_match_add_name(&service, STR(LABEL_SERVICE_NAME), &service.has)))
		rc = block_walk_values(&walk, STR(LABEL_SERVICE_ELSE));
	block_match_release(&service);
	return rc;
}

enum err_code block_slot_having(struct block *b, uint32_t slot, struct str name, uint32_t *with,
	uint32_t *without, struct err *err)
{
	const struct block_slot *s = &b->slots[slot];
	uint32_t first, n, from, to, end = s->first + s->n;
	struct buf key = { 0 }, value = { 0 };
	struct posting_reader r;
	enum err_code rc;

	*with = 0;
	block_key_name(&key, name);
	rc = buf_failed(&key) ? err_nomem(err, "block") : index_get(b, buf_str(&key), &value, err);
	if (!rc && !(rc = posting_open(&r, buf_str(&value), (uint32_t)b->meta.series, err))) {
		while (posting_next(&r, &first, &n)) {
			from = first > s->first ? first : s->first;
			to = first + n < end ? first + n : end;
			*with += from < to ? to - from : 0;
		}
		if (r.in.bad)
			rc = err_set(err, ERR_CORRUPT, "a posting is wrong");
	}
	*without = s->n - *with;
	buf_release(&key);
	buf_release(&value);
	if (rc == ERR_NOT_FOUND)
		rc = ERR_OK;
	return rc ? err_wrap(err, rc, "block %s", b->dir) : ERR_OK;
}
