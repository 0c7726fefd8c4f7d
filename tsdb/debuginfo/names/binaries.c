#include "tsdb/debuginfo/names/binaries.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#define OPEN_MAX 256u
#define FRESH_NS \
	(600 * INT64_C(1000000000)) /* then it is opened again: the store notes its use \
								 */

struct binary {
	struct debuginfo_index *file;
	struct symindex *index;
	unsigned refs; /* the table's lock */
};

struct slot {
	struct debuginfo_id id;
	struct binary *binary; /* NULL: there was none */
	uint64_t generation;
	int64_t opened_ns, used_ns; /* monotonic */
};

struct binaries {
	struct debuginfo_store *store;
	binary_wanted_fn wanted;
	void *ctx;
	struct mutex lock; /* guards all below */
	struct slot slots[OPEN_MAX];
	size_t n;
};

enum err_code binaries_open(struct debuginfo_store *store, binary_wanted_fn wanted, void *ctx,
	struct binaries **out, struct err *err)
{
	struct binaries *b = calloc(1, sizeof(*b));

	if (!b)
		return err_nomem(err, "names of addresses");
	b->store = store;
	b->wanted = wanted;
	b->ctx = ctx;
	mutex_init(&b->lock);
	*out = b;
	return ERR_OK;
}

/* ---- one binary ---- */

static void unref(struct binary *x)
{
	if (!x || --x->refs)
		return;
	symindex_close(x->index);
	debuginfo_index_close(x->file);
	free(x);
}

const struct symindex *binary_index(const struct binary *x)
{
	return x->index;
}

void binary_release(struct binaries *b, struct binary *x)
{
	if (!x)
		return;
	mutex_lock(&b->lock);
	unref(x);
	mutex_unlock(&b->lock);
}

void binary_drop(struct binaries *b, struct binary *x)
{
	debuginfo_drop(b->store, x->file);
}

void binaries_close(struct binaries *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++)
		unref(b->slots[i].binary);
	mutex_destroy(&b->lock);
	free(b);
}

/* NULL: there is none that can be read. */
static struct binary *open_binary(struct binaries *b, const struct debuginfo_id *id)
{
	struct binary *x = calloc(1, sizeof(*x));
	enum err_code rc;
	struct err err;

	if (!x)
		return NULL;
	rc = debuginfo_open(b->store, id, &x->file, &err);
	if (!rc && (rc = symindex_open(debuginfo_index_bytes(x->file), &x->index, &err))) {
		if (rc == ERR_CORRUPT)
			debuginfo_drop(b->store, x->file);
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

static struct slot *find_slot(struct binaries *b, const struct debuginfo_id *id)
{
	struct slot *oldest = b->slots;

	for (size_t i = 0; i < b->n; i++) {
		if (debuginfo_id_eq(&b->slots[i].id, id))
			return &b->slots[i];
		if (b->slots[i].used_ns < oldest->used_ns)
			oldest = &b->slots[i];
	}
	if (b->n < OPEN_MAX)
		oldest = &b->slots[b->n++];
	unref(oldest->binary);
	*oldest = (struct slot){ .id = *id };
	return oldest;
}

/* A reference for the caller, or NULL. */
static struct binary *get(struct binaries *b, const struct debuginfo_id *id)
{
	uint64_t generation = debuginfo_generation(b->store);
	int64_t now = clock_monotonic_ns();
	struct binary *x;
	struct slot *s;

	mutex_lock(&b->lock);
	s = find_slot(b, id);
	if (s->opened_ns == 0 || s->generation != generation || now - s->opened_ns > FRESH_NS) {
		unref(s->binary);
		s->binary = open_binary(b, id);
		s->generation = generation;
		s->opened_ns = now;
	}
	s->used_ns = now;
	if ((x = s->binary))
		x->refs++;
	mutex_unlock(&b->lock);
	return x;
}

/* Kernels and what the kernel maps have no file that anybody serves. */
static bool is_kernels(struct str path)
{
	return path.len > 0 &&
		(path.ptr[0] == '[' || str_is(path, "vmlinux") || str_is(path, "//anon"));
}

static struct str last_element(struct str path)
{
	for (size_t i = path.len; i-- > 0;)
		if (path.ptr[i] == '/')
			return (struct str){ path.ptr + i + 1, path.len - i - 1 };
	return path;
}

struct binary *binaries_get(struct binaries *b, struct str build_id, struct str path, bool *by_path)
{
	struct debuginfo_id id[2], wanted;
	struct binary *x;
	bool any = false;
	struct err err;

	*by_path = false;
	if (build_id.len == 0) {
		path = last_element(path);
		*by_path = path.len > 0 && !is_kernels(path) &&
			debuginfo_find_name(b->store, path, id, 2) == 1;
		return *by_path ? get(b, &id[0]) : NULL;
	}
	/* A text of hexadecimal digits may be GNU's or a hash of the file. */
	for (unsigned kind = 0; kind < DEBUGINFO_ID_KINDS; kind++) {
		if (debuginfo_id_init(&id[0], (enum debuginfo_id_kind)kind, build_id, &err))
			continue;
		if ((x = get(b, &id[0])))
			return x;
		if (!any)
			wanted = id[0];
		any = true;
	}
	if (any && b->wanted && !is_kernels(path))
		b->wanted(b->ctx, &wanted, path);
	return NULL;
}
