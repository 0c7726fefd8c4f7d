/* A place that blocks can be opened in, as a bucket is one: a directory beside that of the
 * database, which may not answer. */
#ifndef TESTS_TSDB_CATALOG_FAR_H
#define TESTS_TSDB_CATALOG_FAR_H

#include <stdatomic.h>
#include <unistd.h>

#include "tests/tsdb/town.h"
#include "tsdb/store/range.h"

struct far {
	struct range_source source; /* first */
	char dir[80];
	atomic_bool down;
	atomic_uint opens, known, forgotten;
};

static inline enum err_code far_open(
	struct range_source *s, const char *path, struct range_reader **out, struct err *err)
{
	struct far *f = (struct far *)s;
	char full[256];

	if (atomic_load(&f->down))
		return err_set(err, ERR_UNAVAILABLE, "%s: nobody answers", path);
	atomic_fetch_add(&f->opens, 1);
	snprintf(full, sizeof(full), "%s/%s", f->dir, path);
	return range_open_file(full, out, err);
}

static inline void far_know(struct range_source *s, const char *path, uint64_t bytes, uint64_t hash)
{
	atomic_fetch_add(&((struct far *)s)->known, 1);
}

static inline void far_forget(struct range_source *s, const char *path)
{
	atomic_fetch_add(&((struct far *)s)->forgotten, 1);
}

/* Below the town's directory; the town is opened again with it. */
static inline bool far_start(struct far *f, struct town *w)
{
	*f = (struct far){ .source = { far_open, far_know, far_forget } };
	snprintf(f->dir, sizeof(f->dir), "%s/far", w->f.dir);
	w->f.o.remote = &f->source;
	return fs_mkdir_all(&fs_posix, f->dir, &w->f.err) == ERR_OK && fixture_reopen(&w->f);
}

/* The i-th block's files as they are now, below its key; the key in the arena. */
static inline const char *far_upload(struct town *w, size_t i)
{
	const char *block = town_block(w, i);

	town_copy(w, block, arena_printf(&w->f.arena, "far/s/%s", block));
	return arena_printf(&w->f.arena, "s/%s", block);
}

static inline struct ulid far_ulid(const char *name)
{
	struct ulid u;

	if (!ulid_parse(str_base_name(str_of(name)), &u))
		abort();
	return u;
}

#endif
