#include "tsdb/debuginfo/names/index_cache.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#define OPEN_MAX 256u
#define FRESH_NS \
	(600 * INT64_C(1000000000)) /* then it is opened again: the store notes its use \
								 */

struct open_index {
	struct debuginfo_index *file;
	struct symindex *index;
	unsigned refs; /* the table's lock */
};

struct index_cache_slot {
	struct debuginfo_id id;
	struct open_index *index; /* NULL: there was none */
	uint64_t generation;
	int64_t opened_ns, used_ns; /* monotonic */
};

struct index_cache {
	struct debuginfo_store *store;
	index_wanted_fn wanted;
	void *ctx;
	struct mutex lock; /* guards all below */
	struct index_cache_slot slots[OPEN_MAX];
	size_t n;
};

enum err_code index_cache_open(struct debuginfo_store *store, index_wanted_fn wanted, void *ctx,
	struct index_cache **out, struct err *err)
{
	struct index_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(err, "names of addresses");
	c->store = store;
	c->wanted = wanted;
	c->ctx = ctx;
	mutex_init(&c->lock);
	*out = c;
	return ERR_OK;
}

/* ---- one binary ---- */

static void open_index_unref(struct open_index *o)
{
	if (!o || --o->refs)
		return;
	symindex_close(o->index);
	debuginfo_index_close(o->file);
	free(o);
}

const struct symindex *open_index_symbols(const struct open_index *o)
{
	return o->index;
}

void index_cache_release(struct index_cache *c, struct open_index *o)
{
	if (!o)
		return;
	mutex_lock(&c->lock);
	open_index_unref(o);
	mutex_unlock(&c->lock);
}

void index_cache_drop(struct index_cache *c, struct open_index *o)
{
	debuginfo_drop(c->store, o->file);
}

void index_cache_close(struct index_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		open_index_unref(c->slots[i].index);
	mutex_destroy(&c->lock);
	free(c);
}

/* NULL: there is none that can be read. */
static struct open_index *index_cache_open_entry(
	struct index_cache *c, const struct debuginfo_id *id)
{
	struct open_index *x = calloc(1, sizeof(*x));
	enum err_code rc;
	struct err err;

	if (!x)
		return NULL;
	rc = debuginfo_open(c->store, id, &x->file, &err);
	if (!rc && (rc = symindex_open(debuginfo_index_bytes(x->file), &x->index, &err))) {
		if (rc == ERR_CORRUPT)
			debuginfo_drop(c->store, x->file);
		debuginfo_index_close(x->file);
	}
	if (!rc) {
		x->refs = 1;
		return x;
	}
	if (rc != ERR_NOT_FOUND)
		log_error("debuginfo", "symbols cannot be read", LOG_STR("build_id", debuginfo_id_text(id)),
			LOG_E(&err));
	free(x);
	return NULL;
}

/* ---- the table ---- */

static struct index_cache_slot *index_cache_find_slot(
	struct index_cache *c, const struct debuginfo_id *id)
{
	struct index_cache_slot *oldest = c->slots;

	for (size_t i = 0; i < c->n; i++) {
		if (debuginfo_id_eq(&c->slots[i].id, id))
			return &c->slots[i];
		if (c->slots[i].used_ns < oldest->used_ns)
			oldest = &c->slots[i];
	}
	if (c->n < OPEN_MAX)
		oldest = &c->slots[c->n++];
	open_index_unref(oldest->index);
	*oldest = (struct index_cache_slot){ .id = *id };
	return oldest;
}

/* A reference for the caller, or NULL. */
static struct open_index *naming_index_cache_get(
	struct index_cache *c, const struct debuginfo_id *id)
{
	uint64_t generation = debuginfo_generation(c->store);
	int64_t now = clock_monotonic_ns();
	struct open_index *x;
	struct index_cache_slot *s;

	mutex_lock(&c->lock);
	s = index_cache_find_slot(c, id);
	if (s->opened_ns == 0 || s->generation != generation || now - s->opened_ns > FRESH_NS) {
		open_index_unref(s->index);
		s->index = index_cache_open_entry(c, id);
		s->generation = generation;
		s->opened_ns = now;
	}
	s->used_ns = now;
	if ((x = s->index))
		x->refs++;
	mutex_unlock(&c->lock);
	return x;
}

struct open_index *index_cache_get(
	struct index_cache *c, struct str build_id, struct str path, bool *by_path)
{
	struct debuginfo_id id[2];
	struct open_index *x;

	*by_path = false;
	if (build_id.len == 0) {
		*by_path = !debuginfo_path_is_no_file(path) &&
			debuginfo_find_name(c->store, path, id, 2) == 1;
		return *by_path ? naming_index_cache_get(c, &id[0]) : NULL;
	}
	/* A text of hexadecimal digits may be GNU's or a hash of the file. */
	for (unsigned kind = 0; kind < DEBUGINFO_ID_KINDS; kind++)
		if (!debuginfo_id_init(&id[0], (enum debuginfo_id_kind)kind, build_id, NULL) &&
			(x = naming_index_cache_get(c, &id[0])))
			return x;
	if (c->wanted && !debuginfo_path_is_no_file(path) && debuginfo_id_guess(build_id, &id[0]))
		c->wanted(c->ctx, &id[0], path);
	return NULL;
}
