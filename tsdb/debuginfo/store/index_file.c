/* Readers of indexes: one mapping for all readers of an index, freed by the last. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "tsdb/debuginfo/store/internal.h"

static enum err_code index_file_map(
	struct debuginfo_store *s, const char *path, struct debuginfo_index *d, struct err *err)
{
	struct stat st;
	enum err_code rc;
	int fd;

	if ((rc = fs_posix.ops->open(&fs_posix, path, O_RDONLY, 0, &fd, err)))
		return rc;
	if (fstat(fd, &st)) {
		rc = err_errno(err, errno, "stat %s", path);
	} else if ((uint64_t)st.st_size != d->map_bytes) {
		rc = err_set(
			err, ERR_CORRUPT, "%s: %lld bytes, not %zu", path, (long long)st.st_size, d->map_bytes);
	} else {
		d->map = mmap(NULL, d->map_bytes, PROT_READ, MAP_SHARED, fd, 0);
		if (d->map == MAP_FAILED)
			rc = err_errno(err, errno, "map %s", path);
	}
	close(fd);
	return rc;
}

static enum err_code index_file_index_map(
	struct debuginfo_store *s, struct debuginfo_entry *e, struct err *err)
{
	struct debuginfo_index *x = calloc(1, sizeof(*x));
	char *path = path_of_index(s, &e->stamp.id);
	enum err_code rc;

	mutex_assert_held(&s->lock);
	if (!x || !path) {
		rc = err_nomem(err, "index");
		goto fail;
	}
	*x = (struct debuginfo_index){ .store = s,
		.entry = e,
		.quality = e->quality,
		.map_bytes = (size_t)e->file_bytes,
		.bytes = (size_t)e->index_bytes };
	if ((rc = index_file_map(s, path, x, err)))
		goto fail;
	e->mapped = x;
	free(path);
	return ERR_OK;
fail:
	free(path);
	free(x);
	return rc;
}

static enum err_code index_file_open(struct debuginfo_store *s, const struct debuginfo_id *id,
	bool used, struct debuginfo_index **out, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct debuginfo_entry *e;

	mutex_lock(&s->lock);
	e = entry_find(s, id);
	if (!e || !e->present)
		rc = err_set(err, ERR_NOT_FOUND, "no debug data");
	else if (!e->mapped)
		rc = index_file_index_map(s, e, err);
	if (!rc) {
		*out = e->mapped;
		e->mapped->readers++;
	}
	if (!rc && used) {
		e->stamp.used_s = store_now_s(s);
		s->stamps_changed = true;
	}
	mutex_unlock(&s->lock);
	return rc;
}

enum err_code debuginfo_open(struct debuginfo_store *s, const struct debuginfo_id *id,
	struct debuginfo_index **out, struct err *err)
{
	return index_file_open(s, id, true, out, err);
}

enum err_code debuginfo_peek(struct debuginfo_store *s, const struct debuginfo_id *id,
	struct debuginfo_index **out, struct err *err)
{
	return index_file_open(s, id, false, out, err);
}

struct str debuginfo_index_bytes(const struct debuginfo_index *d)
{
	return (struct str){ d->map, d->bytes };
}

struct str debuginfo_index_file(const struct debuginfo_index *d)
{
	return (struct str){ d->map, d->map_bytes };
}

enum debuginfo_quality debuginfo_index_quality(const struct debuginfo_index *d)
{
	return d->quality;
}

void debuginfo_index_close(struct debuginfo_index *d)
{
	bool last;

	if (!d)
		return;
	mutex_lock(&d->store->lock);
	last = --d->readers == 0;
	if (last && d->entry)
		d->entry->mapped = NULL;
	mutex_unlock(&d->store->lock);
	if (last) {
		munmap(d->map, d->map_bytes);
		free(d);
	}
}

enum err_code entry_remove_index(
	struct debuginfo_store *s, struct debuginfo_entry *e, struct err *err)
{
	char *path = path_of_index(s, &e->stamp.id);
	enum err_code rc;

	mutex_assert_held(&s->lock);
	if (!path)
		return err_nomem(err, "path");
	rc = s->fs->ops->unlink(s->fs, path, err);
	free(path);
	if (rc && rc != ERR_NOT_FOUND)
		return rc;
	if (e->mapped)
		e->mapped->entry = NULL;
	e->mapped = NULL;
	e->present = e->unsynced = false;
	s->indexes_n--;
	entry_set_path(s, e, NULL);
	atomic_fetch_add(&s->generation, 1);
	s->bytes -= e->file_bytes;
	e->file_bytes = e->index_bytes = e->source_bytes = 0;
	e->stamp.used_s = 0;
	return ERR_OK;
}

void debuginfo_drop(struct debuginfo_store *s, struct debuginfo_index *d)
{
	struct debuginfo_entry *e;
	struct err err;

	mutex_lock(&s->lock);
	e = d->entry;
	if (e && entry_remove_index(s, e, &err))
		log_warn("debuginfo", "damaged index is not removed", LOG_E(&err));
	else if (e)
		entry_tidy(s, e);
	mutex_unlock(&s->lock);
}

uint64_t debuginfo_generation(const struct debuginfo_store *s)
{
	return atomic_load(&s->generation);
}

void debuginfo_evict(struct debuginfo_store *s, const struct debuginfo_entry *keep)
{
	struct debuginfo_entry *e, *oldest;
	struct err err;

	mutex_assert_held(&s->lock);
	while (s->o.bytes_max && s->bytes > s->o.bytes_max) {
		oldest = NULL;
		for (size_t i = 0; i < BUCKETS; i++)
			for (e = s->buckets[i]; e; e = e->next)
				if (e->present && e != keep && (!oldest || e->stamp.used_s < oldest->stamp.used_s))
					oldest = e;
		if (!oldest)
			return;
		if (entry_remove_index(s, oldest, &err)) {
			log_warn("debuginfo", "index is not removed", LOG_E(&err));
			return;
		}
		entry_tidy(s, oldest);
	}
}
