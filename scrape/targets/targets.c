/*
 * A set after a change is made from the one before it: parts whose groups are the same objects
 * stay, and so do their targets' places in the sorted array. What is new is sorted, and put
 * between. So a change of one pod among 10,000 expands one pod, compares its targets with some
 * others, and copies an array of pointers.
 */
#include "scrape/targets/targets.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

int target_cmp(const struct target *a, const struct target *b)
{
	int c = labels_cmp(a->labels, b->labels);

	return c ? c : str_cmp(a->url, b->url);
}

static int by_target(const void *a, const void *b)
{
	const struct target *const *x = a, *const *y = b;

	return target_cmp(*x, *y);
}

/* ---- pieces ---- */

/* The pieces of the set before, by their groups. */
struct known {
	const struct target_set *of; /* NULL: none */
	uint32_t *slots; /* index + 1; 0: free */
	size_t mask;
	size_t next; /* where the next one is, as long as nothing changes */
};

static size_t slot_of(const struct known *k, const struct groups *groups)
{
	return hash_u64((uint64_t)(uintptr_t)groups) & k->mask;
}

static enum err_code know(struct known *k, const struct target_set *before, struct err *err)
{
	size_t n = 16, at;

	while (n < 2 * before->pieces_n)
		n *= 2;
	if (!(k->slots = calloc(n, sizeof(*k->slots))))
		return err_nomem(err, "targets");
	k->mask = n - 1;
	for (size_t i = 0; i < before->pieces_n; i++) {
		for (at = slot_of(k, before->pieces[i].groups); k->slots[at]; at = (at + 1) & k->mask)
			;
		k->slots[at] = (uint32_t)i + 1;
	}
	return ERR_OK;
}

/* The piece of these groups in the set before, or NULL. */
static enum err_code find_known(
	struct known *k, const struct groups *groups, const struct target_piece **out, struct err *err)
{
	const struct target_set *s = k->of;
	enum err_code rc;
	size_t at;

	*out = NULL;
	if (!s)
		return ERR_OK;
	if (k->next < s->pieces_n && s->pieces[k->next].groups == groups) {
		*out = &s->pieces[k->next++];
		return ERR_OK;
	}
	if (!k->slots && (rc = know(k, s, err)))
		return rc;
	for (at = slot_of(k, groups); k->slots[at]; at = (at + 1) & k->mask)
		if (s->pieces[k->slots[at] - 1].groups == groups) {
			k->next = k->slots[at];
			*out = &s->pieces[k->next - 1];
			break;
		}
	return ERR_OK;
}

struct expansion {
	struct target_set *set;
	struct known known;
	struct shard shard;
	size_t fresh_n; /* targets of parts that are new */
	size_t targets, errors;
};

static size_t count_leaves(const struct groups *g)
{
	size_t n = 0;

	if (!g->parts_n)
		return g->n > 0;
	for (size_t i = 0; i < g->parts_n; i++)
		n += count_leaves(g->parts[i]);
	return n;
}

static enum err_code make_piece(struct expansion *x, struct groups *g, struct err *err)
{
	struct target_set *s = x->set;
	size_t limit = s->job->keep_dropped_targets;
	struct target_part_options o = {
		.config = s->config,
		.job = s->job,
		.shard = x->shard,
		.shared = s->shared,
		.dropped_max = limit ? limit - (limit < s->dropped_n ? limit : s->dropped_n) : SIZE_MAX,
		.elsewhere_max = SIZE_MAX,
	};
	struct target_piece *piece = &s->pieces[s->pieces_n];
	enum err_code rc;

	if (!limit)
		o.elsewhere_max = s->elsewhere >= TARGETS_ELSEWHERE_SHOWN_MAX ?
			0 :
			TARGETS_ELSEWHERE_SHOWN_MAX - s->elsewhere;
	if ((rc = target_part_make(&o, g, piece, err)))
		return rc;
	if (piece->part)
		x->fresh_n += piece->part->n;
	return ERR_OK;
}

static enum err_code take_piece(struct expansion *x, struct groups *g, struct err *err)
{
	struct target_set *s = x->set;
	const struct target_piece *known;
	struct target_piece *p = &s->pieces[s->pieces_n];
	enum err_code rc;

	if ((rc = find_known(&x->known, g, &known, err)))
		return rc;
	if (known && !(known->part && known->part->seen == s->number)) {
		*p = *known;
		p->fresh = false;
		if (p->part)
			target_part_ref(p->part);
	} else if ((rc = make_piece(x, g, err))) {
		return rc;
	}
	s->pieces_n++;
	if (p->part) {
		p->part->seen = s->number;
		s->sorted_n += p->part->n;
		s->dropped_n += p->part->dropped_n;
	}
	s->dropped_total += p->dropped;
	s->elsewhere += p->elsewhere;
	x->targets += p->targets;
	x->errors += p->errors;
	return ERR_OK;
}

static enum err_code take_leaves(struct expansion *x, struct groups *g, struct err *err)
{
	enum err_code rc;

	if (!g->parts_n)
		return g->n ? take_piece(x, g, err) : ERR_OK;
	for (size_t i = 0; i < g->parts_n; i++)
		if ((rc = take_leaves(x, g->parts[i], err)))
			return rc;
	return ERR_OK;
}

/* ---- the sorted array ---- */

/* Targets of the parts that are new, sorted. */
static const struct target **gather_fresh(const struct expansion *x)
{
	const struct target **v = calloc(x->fresh_n ? x->fresh_n : 1, sizeof(*v));
	const struct target_piece *p;
	size_t n = 0;

	for (size_t i = 0; v && i < x->set->pieces_n; i++) {
		p = &x->set->pieces[i];
		for (size_t k = 0; p->fresh && p->part && k < p->part->n; k++)
			v[n++] = &p->part->v[k];
	}
	assert(!v || n == x->fresh_n);
	if (v && n)
		qsort(v, n, sizeof(*v), by_target);
	return v;
}

/* The first of the sorted ones, from `at`, that is not before t. */
static size_t place_of(const struct target_set *s, size_t at, const struct target *t)
{
	size_t end = s->sorted_n, mid;

	while (at < end) {
		mid = at + (end - at) / 2;
		if (target_cmp(s->sorted[mid], t) < 0)
			at = mid + 1;
		else
			end = mid;
	}
	return at;
}

static enum err_code sort_all(struct expansion *x, struct err *err)
{
	struct target_set *s = x->set;
	const struct target_set *before = x->known.of;
	const struct target **fresh = gather_fresh(x);
	size_t n = 0, at = 0, old_n = before ? before->sorted_n : 0, place;

	s->sorted = calloc(s->sorted_n ? s->sorted_n : 1, sizeof(struct target *));
	if (!fresh || !s->sorted) {
		free(fresh);
		return err_nomem(err, "targets");
	}
	for (size_t k = 0; k <= x->fresh_n; k++) {
		place = k < x->fresh_n && before ? place_of(before, at, fresh[k]) : old_n;
		for (; at < place; at++)
			if (before->sorted[at]->part->seen == s->number)
				s->sorted[n++] = before->sorted[at];
		if (k < x->fresh_n)
			s->sorted[n++] = fresh[k];
	}
	assert(n == s->sorted_n);
	free(fresh);
	return ERR_OK;
}

/* ---- duplicates ---- */

static void printf_error(struct target_set *s, const struct buf *text)
{
	if (!s->error && !buf_failed(text))
		s->error = strndup(text->ptr, text->len);
	if (!s->error)
		s->error = strdup("out of memory");
}

static void say_duplicate(
	struct expansion *x, const struct target *kept, const struct target *other)
{
	struct buf b = { 0 };

	if (x->errors++)
		return;
	buf_printf(&b, STR_FMT " is not scraped: " STR_FMT " has the same labels ",
		STR_ARG(other->shown_url), STR_ARG(kept->shown_url));
	labels_print(&b, other->labels);
	printf_error(x->set, &b);
	buf_release(&b);
}

static bool same_labels(const struct target *a, const struct target *b)
{
	return a->labels_hash == b->labels_hash && labels_eq(a->labels, b->labels);
}

/*
 * Two targets with the same labels would write one series: the first by URL is scraped, and the
 * others are an error.
 */
static enum err_code deduplicate(struct expansion *x, struct err *err)
{
	struct target_set *s = x->set;
	const struct target **v = s->sorted;
	size_t first = 1, n;

	while (first < s->sorted_n && !same_labels(v[first - 1], v[first]))
		first++;
	s->v = v;
	s->n = s->sorted_n;
	if (first >= s->sorted_n)
		return ERR_OK;
	if (!(s->v = calloc(s->sorted_n, sizeof(*v)))) {
		s->n = 0;
		return err_nomem(err, "targets");
	}
	memcpy(s->v, v, first * sizeof(*v));
	n = first;
	for (size_t i = first; i < s->sorted_n; i++) {
		if (!same_labels(s->v[n - 1], v[i]))
			s->v[n++] = v[i];
		else if (!str_eq(s->v[n - 1]->url, v[i]->url))
			say_duplicate(x, s->v[n - 1], v[i]);
	}
	s->n = n;
	return ERR_OK;
}

/* ---- what is wrong ---- */

static void find_error(struct expansion *x)
{
	struct target_set *s = x->set;
	const struct target_part *p;
	struct buf b = { 0 };

	for (size_t i = 0; i < s->pieces_n && x->errors; i++) {
		p = s->pieces[i].part;
		if (p && p->error.len) {
			buf_add_str(&b, p->error);
			printf_error(s, &b);
			break;
		}
	}
	buf_release(&b);
}

static void count_errors(struct expansion *x)
{
	struct target_set *s = x->set;
	struct buf b = { 0 };

	if (x->errors > 1 && s->error) {
		buf_printf(&b, "%s (and %zu more)", s->error, x->errors - 1);
		free(s->error);
		s->error = NULL;
		printf_error(s, &b);
	}
	buf_release(&b);
}

/* All parts are new. */
static void refuse_all(struct expansion *x)
{
	struct target_set *s = x->set;
	struct buf b = { 0 };
	struct target_part *p;

	s->limit_exceeded = true;
	buf_printf(&b, "target_limit exceeded (number of targets: %zu, limit: %zu)", x->targets,
		(size_t)s->job->target_limit);
	free(s->error);
	s->error = NULL;
	printf_error(s, &b);
	buf_release(&b);
	for (size_t i = 0; i < s->pieces_n; i++) {
		if (!(p = s->pieces[i].part))
			continue;
		assert(s->pieces[i].fresh);
		p->refused = str_dup(&p->arena, str_of(s->error));
		if (!p->refused.ptr)
			p->refused = STR("target_limit exceeded");
	}
}

/* ---- the set ---- */

static enum err_code set_new(struct config *config, const struct scrape_config *job,
	struct groups *groups, struct target_shared *shared, struct target_set **out, struct err *err)
{
	static atomic_uint_fast64_t numbers;
	struct target_set *s = calloc(1, sizeof(*s));
	size_t leaves = count_leaves(groups);

	if (!s)
		return err_nomem(err, "targets");
	atomic_init(&s->refs, 1);
	s->number = atomic_fetch_add(&numbers, 1) + 1;
	s->config = config_ref(config);
	s->groups = groups_ref(groups);
	s->job = job;
	s->pieces = calloc(leaves ? leaves : 1, sizeof(*s->pieces));
	s->shared = shared && !target_shared_is_full(shared) ? target_shared_ref(shared) :
														   target_shared_new();
	if (!s->pieces || !s->shared) {
		target_set_unref(s);
		return err_nomem(err, "targets");
	}
	*out = s;
	return ERR_OK;
}

static enum err_code fill(struct expansion *x, struct groups *groups, struct err *err)
{
	enum err_code rc = take_leaves(x, groups, err);

	if (!rc)
		rc = sort_all(x, err);
	if (!rc) {
		find_error(x);
		rc = deduplicate(x, err);
	}
	if (!rc)
		count_errors(x);
	free(x->known.slots);
	return rc;
}

/* Parts that were refused, or are to be, are not taken over: what they say of it cannot change. */
enum err_code targets_expand(struct config *config, const struct scrape_config *job,
	struct shard shard, struct groups *groups, const struct target_set *before,
	struct target_set **out, struct err *err)
{
	struct expansion x = { .shard = shard };
	enum err_code rc;

	assert(job >= config->scrape && job < config->scrape + config->scrape_n);
	if (before && before->job == job && !before->limit_exceeded)
		x.known.of = before;
	if ((rc = set_new(config, job, groups, before ? before->shared : NULL, &x.set, err)))
		return rc;
	if ((rc = fill(&x, groups, err))) {
		target_set_unref(x.set);
		return rc;
	}
	if (job->target_limit && x.targets > job->target_limit) {
		if (x.known.of) {
			target_set_unref(x.set);
			return targets_expand(config, job, shard, groups, NULL, out, err);
		}
		refuse_all(&x);
	}
	*out = x.set;
	return ERR_OK;
}

struct target_set *target_set_ref(struct target_set *s)
{
	unsigned before = atomic_fetch_add(&s->refs, 1);

	assert(before > 0);
	return s;
}

void target_set_unref(struct target_set *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	for (size_t i = 0; i < s->pieces_n; i++)
		target_part_unref(s->pieces[i].part);
	if (s->v != s->sorted)
		free(s->v);
	free(s->sorted);
	free(s->pieces);
	target_shared_unref(s->shared);
	config_unref(s->config);
	groups_unref(s->groups);
	free(s->error);
	free(s);
}
