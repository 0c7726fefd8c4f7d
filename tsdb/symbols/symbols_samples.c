#include "tsdb/symbols/intern.h"

/*
 * A stack is looked up whole, by a hash of its locations. One pass hashes all stacks and prefetches
 * the cache lines where their leaves may be; a second one takes each leaf, if its nodes are the
 * stack's, or else walks the node map. Measured on 20 services: half of an append's time was
 * waiting for the node map's memory.
 *
 * Going up from a guess ends where an earlier stack of the profile had come by: if both have the
 * same locations from there to the root, the rest is right. Most stacks end there after one or two
 * steps off the runs of neighbouring nodes, where each costs a cache line and a wrong prediction.
 * The first run of all stacks is compared before the first step of any.
 */

/* The way up from a guess: the nodes below `at` are the stack's. */
struct climb {
	uint32_t at, done; /* done: frames */
	uint32_t item; /* of `at`, which does not lie behind its parent; 0: no frame is left */
};

struct look {
	uint64_t hash;
	uint32_t sample, guess;
	uint32_t known, known_n; /* without a guess: the deepest node that is there, and its depth */
	struct climb climb; /* from the guess: behind the first run */
};

/* The upper part of a stack that was found: the node of its lowest frame. */
struct upper {
	uint32_t node; /* 0: free */
	uint32_t n; /* frames */
	uint32_t end; /* of the stack in location_ids */
};

#define UPPERS_MAX 4096u
#define UPPERS_NEW_MAX 8u /* of one stack */

static bool symbols_samples_is_zero(const int64_t *values, uint32_t n)
{
	int64_t any = 0;

	for (uint32_t i = 0; i < n; i++)
		any |= values[i];
	return any == 0;
}

static uint32_t symbols_samples_frames_shared(
	const uint32_t *ids, const struct pprof_sample *a, const struct pprof_sample *b)
{
	const uint32_t *x = ids + a->location_first + a->location_n;
	const uint32_t *y = ids + b->location_first + b->location_n;
	uint32_t n = a->location_n < b->location_n ? a->location_n : b->location_n, k = 0;

	while (k < n && *--x == *--y)
		k++;
	return k;
}

/* Each frame counts by itself: no multiplication waits for the one before. */
static enum err_code symbols_samples_look_at(
	struct intern *in, const struct pprof_sample *s, struct look *l)
{
	const uint32_t *ids = in->f->location_ids + s->location_first, *locations = in->locations;
	const uint64_t *weights = in->weights;
	uint32_t n = s->location_n, location;
	uint64_t hash = n;
	enum err_code rc;

	for (uint32_t k = 0; k < n; k++) {
		location = locations[ids[k]];
		if (__builtin_expect(location == SYM_NONE, 0) &&
			(rc = intern_location(in, ids[k], &location)))
			return rc;
		hash += ((uint64_t)location + 1) * weights[k];
	}
	l->hash = hash ^ hash >> 32;
	__builtin_prefetch(leafcache_bucket(&in->p->leaves, l->hash));
	return ERR_OK;
}

/* ---- climbing from a leaf ---- */

/* While the nodes lie directly behind their parents, in one chunk. False: a node is not the
 * frame's. */
static bool climb_chunk(const struct intern *in, const struct pprof_sample *s, struct climb *c)
{
	const uint32_t *ids = in->f->location_ids + s->location_first, *locations = in->locations;
	uint32_t i = c->done, left = s->location_n - i, run;
	const uint32_t *items = nodemap_stack_items(partition_nodes(in->p), c->at, &run);
	const uint32_t *last = items - (run < left ? run : left);

	for (; items != last && !(*items & 1); items--, i++)
		if ((*items & ~2u) != (locations[ids[i]] + 1) << 2)
			return false;
	c->at -= i - c->done;
	c->done = i;
	c->item = items != last ? *items : 0;
	return true;
}

static bool climb_run(const struct intern *in, const struct pprof_sample *s, struct climb *c)
{
	do {
		if (!climb_chunk(in, s, c))
			return false;
	} while (!c->item && c->done < s->location_n);
	return true;
}

/* A guess of which the first run is not the stack's goes: the stack is looked up with the others
 * that have none. */
static void climb_first(const struct intern *in, struct look *l)
{
	const struct pprof_sample *s = &in->f->samples[l->sample];

	l->climb = (struct climb){ .at = l->guess };
	if (!climb_run(in, s, &l->climb))
		*l = (struct look){ .hash = l->hash, .sample = l->sample };
	else if (l->climb.item)
		__builtin_prefetch(nodemap_stack_head(partition_nodes(in->p), l->climb.item));
}

static bool symbols_samples_reserve_leaves(struct intern *in)
{
	struct leafcache *c = &in->p->leaves;
	size_t before = leafcache_bytes(c);
	bool ok = leafcache_reserve(c, in->looks_n);

	atomic_fetch_add(&in->p->bytes, leafcache_bytes(c) - before);
	return ok;
}

static enum err_code symbols_samples_make_room(struct intern *in, uint32_t depth)
{
	unsigned log2 = 4;

	while (1u << log2 < in->looks_n && 1u << log2 < UPPERS_MAX)
		log2++;
	in->uppers_shift = 32 - log2;
	in->weights = arena_alloc_raw(in->arena, (size_t)depth + 1, sizeof(*in->weights));
	in->path = arena_alloc_raw(in->arena, (size_t)depth + 1, sizeof(*in->path));
	in->marks = arena_array(in->arena, uint64_t, (size_t)in->f->locations_n + 1);
	in->uppers = arena_array(in->arena, struct upper, (size_t)1 << log2);
	if (!in->weights || !in->path || !in->marks || !in->uppers ||
		!symbols_samples_reserve_leaves(in))
		return intern_nomem(in);
	for (uint32_t k = 0; k < depth; k++)
		in->weights[k] = map_hash_u64(k + 1) | 1;
	return ERR_OK;
}

/* The samples that have a value. */
static enum err_code look_at_all(struct intern *in)
{
	const struct pprof *f = in->f;
	uint32_t depth = 0;
	enum err_code rc;

	for (uint32_t i = 0; i < f->samples_n; i++) {
		if (symbols_samples_is_zero(f->values + (size_t)i * f->types_n, f->types_n))
			continue;
		if (f->samples[i].location_n > depth)
			depth = f->samples[i].location_n;
		in->looks[in->looks_n++] = (struct look){ .sample = i };
	}
	if ((rc = symbols_samples_make_room(in, depth)))
		return rc;
	for (uint32_t i = 0; i < in->looks_n; i++)
		if ((rc = symbols_samples_look_at(in, &f->samples[in->looks[i].sample], &in->looks[i])))
			return rc;
	for (uint32_t i = 0; i < in->looks_n; i++) {
		struct look *l = &in->looks[i];

		l->guess = leafcache_take(&in->p->leaves, l->hash);
		__builtin_prefetch(segvec_at(&in->p->vec[SYM_NODE], l->guess));
	}
	for (uint32_t i = 0; i < in->looks_n; i++)
		if (in->looks[i].guess)
			climb_first(in, &in->looks[i]);
	return ERR_OK;
}

/* ---- stacks that are there ---- */

static struct upper *upper_at(const struct intern *in, uint32_t node)
{
	return &in->uppers[node * UINT32_C(0x9e3779b1) >> in->uppers_shift];
}

static bool symbols_samples_is_upper(
	const struct intern *in, const struct pprof_sample *s, uint32_t node, uint32_t n)
{
	const struct upper *u = upper_at(in, node);
	const uint32_t *ids = in->f->location_ids;

	return u->node == node && u->n == n &&
		!memcmp(ids + s->location_first + s->location_n - n, ids + u->end - n, n * sizeof(*ids));
}

/* The nodes from a guess upwards are the stack's; c: behind the first run. */
static bool symbols_samples_is_guess(
	struct intern *in, const struct pprof_sample *s, struct climb c)
{
	const uint32_t *ids = in->f->location_ids + s->location_first;
	const struct stack_nodes nodes = partition_nodes(in->p);
	uint32_t n = s->location_n, new_n = 0;
	struct upper new[UPPERS_NEW_MAX];
	struct stack_node node;

	while (c.done < n) {
		node = stack_node_of(nodes, c.at, c.item);
		if (node.tag >> 1 != in->locations[ids[c.done++]] + 1)
			return false;
		c.at = node.parent;
		if (c.done < n && symbols_samples_is_upper(in, s, c.at, n - c.done))
			goto found;
		if (c.done < n && new_n < UPPERS_NEW_MAX)
			new[new_n++] = (struct upper){ c.at, n - c.done, s->location_first + n };
		if (!climb_run(in, s, &c))
			return false;
	}
	if (c.at)
		return false;
found:
	for (uint32_t k = 0; k < new_n; k++)
		*upper_at(in, new[k].node) = new[k];
	return true;
}

/* ---- new stacks ---- */

/*
 * Walks that wait for memory together. Each finds the deepest node that is there for its stack;
 * each step of one prefetches what its next step reads, and then it is the others' turn.
 */
#define WALKERS 12u

struct walker {
	struct look *l;
	const uint32_t *root; /* of the stack in location_ids */
	uint32_t n;
};

static void symbols_samples_prefetch_step(const struct intern *in, const struct walker *w)
{
	const struct look *l = w->l;

	nodemap_prefetch(&in->p->table[SYM_NODE], partition_nodes(in->p), l->known,
		in->locations[*(w->root - l->known_n)]);
}

static void symbols_samples_walk_together(const struct intern *in, struct walker *w, unsigned n)
{
	const struct stack_nodes nodes = partition_nodes(in->p);

	while (n)
		for (unsigned i = 0; i < n; i++) {
			struct look *l = w[i].l;
			uint32_t found = nodemap_find(
				&in->p->table[SYM_NODE], nodes, l->known, in->locations[*(w[i].root - l->known_n)]);

			if (found) {
				l->known = found;
				l->known_n++;
			}
			if (found && l->known_n < w[i].n)
				symbols_samples_prefetch_step(in, &w[i]);
			else
				w[i--] = w[--n];
		}
}

/* All that the cache does not have. */
static void symbols_samples_walk_known(const struct intern *in)
{
	struct walker v[WALKERS];
	unsigned n = 0;

	for (uint32_t i = 0; i < in->looks_n; i++) {
		const struct pprof_sample *s = &in->f->samples[in->looks[i].sample];

		if (in->looks[i].guess || !s->location_n)
			continue;
		v[n] = (struct walker){ &in->looks[i],
			in->f->location_ids + s->location_first + s->location_n - 1, s->location_n };
		symbols_samples_prefetch_step(in, &v[n++]);
		if (n == WALKERS) {
			symbols_samples_walk_together(in, v, n);
			n = 0;
		}
	}
	symbols_samples_walk_together(in, v, n);
}

#define MARKS_TWICE UINT64_MAX /* a function may be twice in the location */

/* A bit for each function of a location; different functions may share one. */
static uint64_t symbols_samples_marks_of(const struct intern *in, uint32_t at)
{
	struct sym_location l;
	uint64_t marks = in->marks[at];

	if (marks)
		return marks;
	l = partition_location(in->p, in->locations[at]);
	for (uint32_t i = 0; i < l.lines_n; i++)
		marks |= UINT64_C(1) << (l.lines[i].function * UINT32_C(0x9e3779b1) >> 26);
	if ((uint32_t)__builtin_popcountll(marks) != l.lines_n)
		marks = MARKS_TWICE;
	return in->marks[at] = marks;
}

/* Nodes from frame place on, all new: whether a function recurs is only looked up where it may. */
static enum err_code symbols_samples_add_nodes(
	struct intern *in, const struct pprof_sample *s, uint32_t place, uint32_t *at)
{
	const uint32_t *root = in->f->location_ids + s->location_first + s->location_n - 1;
	uint64_t above = 0, marks;
	enum err_code rc;

	for (uint32_t i = 0; i < place; i++)
		above |= symbols_samples_marks_of(in, *(root - i));
	for (; place < s->location_n; place++) {
		marks = symbols_samples_marks_of(in, *(root - place));
		if ((rc = sym_add_node(in->p, *at, in->locations[*(root - place)],
				 marks != MARKS_TWICE && !(marks & above), at, in->err)))
			return rc;
		in->path[place] = *at;
		above |= marks;
	}
	return ERR_OK;
}

/*
 * Begins where it differs from the one before that was walked, or below what was known before any
 * was added, whichever is deeper. So the path is only needed below what was known: stacks that
 * share frames have at least as many of them known. A stack with a wrong guess was not looked up
 * then: it begins at the root.
 */
static enum err_code symbols_samples_walk(
	struct intern *in, const struct pprof_sample *s, const struct look *l, uint32_t *id)
{
	const uint32_t *root = in->f->location_ids + s->location_first + s->location_n - 1;
	const struct stack_nodes nodes = partition_nodes(in->p);
	uint32_t k = l->known_n, at = l->known, shared, found;

	shared = in->walked && !l->guess ?
		symbols_samples_frames_shared(in->f->location_ids, in->walked, s) :
		0;
	if (shared > k) {
		k = shared;
		at = in->path[k - 1];
	}
	in->walked = s;
	for (; k < s->location_n; k++) {
		found = nodemap_find(&in->p->table[SYM_NODE], nodes, at, in->locations[*(root - k)]);
		if (!found)
			break;
		at = in->path[k] = found;
	}
	*id = at;
	/* A new node has no children. */
	return symbols_samples_add_nodes(in, s, k, id);
}

static enum err_code symbols_samples_stack_id(
	struct intern *in, const struct pprof_sample *s, const struct look *l, uint32_t *id)
{
	struct climb c = l->climb;
	enum err_code rc;

	*id = 0;
	if (!s->location_n)
		return ERR_OK;
	*id = l->guess;
	if (!*id) { /* it may have been added since it was looked at */
		*id = leafcache_find(&in->p->leaves, l->hash);
		c = (struct climb){ .at = *id };
		if (*id && !climb_run(in, s, &c))
			*id = 0;
	}
	if (*id && symbols_samples_is_guess(in, s, c))
		return ERR_OK;
	if ((rc = symbols_samples_walk(in, s, l, id)))
		return rc;
	leafcache_add(&in->p->leaves, l->hash, *id);
	return ERR_OK;
}

/* ---- label sets ---- */

/* They repeat within a profile: each is looked up about once. */
#define SETS_SEEN 256u

struct set_seen {
	const struct pprof_sample *sample; /* that had it */
	uint32_t id;
};

static struct set_seen *symbols_samples_seen_at(
	const struct intern *in, const struct pprof_sample *s)
{
	const struct pprof_label *l = in->f->labels + s->label_first;
	uint64_t h = s->label_n;

	for (uint32_t i = 0; i < s->label_n; i++)
		h = (h ^ l[i].key ^ (uint64_t)l[i].str << 32 ^ (uint64_t)l[i].num) *
			UINT64_C(0x9e3779b97f4a7c15);
	return &in->seen[h >> 56];
}

static bool symbols_samples_same_labels(
	const struct pprof *p, const struct pprof_sample *a, const struct pprof_sample *b)
{
	const struct pprof_label *x = p->labels + a->label_first, *y = p->labels + b->label_first;

	if (a->label_n != b->label_n)
		return false;
	for (uint32_t i = 0; i < a->label_n; i++)
		if (x[i].key != y[i].key || x[i].str != y[i].str || x[i].num != y[i].num ||
			x[i].num_unit != y[i].num_unit)
			return false;
	return true;
}

static enum err_code symbols_samples_label_set_id(
	struct intern *in, const struct pprof_sample *s, uint32_t *id, bool *overflow)
{
	struct set_seen *seen = symbols_samples_seen_at(in, s);
	enum err_code rc;

	if (seen->sample && symbols_samples_same_labels(in->f, seen->sample, s)) {
		*id = seen->id;
		return ERR_OK;
	}

	if (s->label_n > in->labels_cap) {
		if (!(in->labels = arena_alloc_raw(in->arena, (size_t)s->label_n * 2, sizeof(*in->labels))))
			return intern_nomem(in);
		in->labels_cap = s->label_n * 2;
	}
	for (uint32_t i = 0; i < s->label_n; i++) {
		const struct pprof_label *l = &in->f->labels[s->label_first + i];

		in->labels[i].num = l->num;
		if ((rc = intern_string(in, l->key, &in->labels[i].key)) ||
			(rc = intern_string(in, l->str, &in->labels[i].str)) ||
			(rc = intern_string(in, l->num_unit, &in->labels[i].num_unit)))
			return rc;
	}
	sym_label_set_sort(in->labels, s->label_n);
	if ((rc = sym_intern_label_set(
			 in->p, &(struct sym_label_set){ in->labels, s->label_n }, id, overflow, in->err)))
		return rc;
	*seen = (struct set_seen){ s, *id };
	return ERR_OK;
}

enum err_code intern_samples(struct intern *in, struct interned *out)
{
	size_t most = (size_t)in->f->samples_n + 1;
	enum err_code rc;

	in->looks = arena_alloc_raw(in->arena, most, sizeof(*in->looks));
	in->seen = arena_array(in->arena, struct set_seen, SETS_SEEN);
	if (!in->looks || !in->seen)
		return intern_nomem(in);
	if ((rc = look_at_all(in)))
		return rc;
	symbols_samples_walk_known(in);
	for (uint32_t i = 0; i < in->looks_n; i++) {
		const struct pprof_sample *s = &in->f->samples[in->looks[i].sample];
		uint32_t stack, set = 0;

		if ((rc = symbols_samples_stack_id(in, s, &in->looks[i], &stack)) ||
			(s->label_n && (rc = symbols_samples_label_set_id(in, s, &set, &out->overflow))))
			return rc;
		out->keys[out->n] = (uint64_t)stack << 32 | set;
		out->samples[out->n++] = in->looks[i].sample;
	}
	return ERR_OK;
}
