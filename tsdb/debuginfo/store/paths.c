/*
 * Paths of the files that indexes are made of, as their senders say: cleaned, found by base name,
 * and kept beside a queued upload. That file is synced before the upload gets its name, and removed
 * after it, so one without an upload is left by a crash.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "tsdb/debuginfo/store/internal.h"

void debuginfo_path_clean(struct str path, char out[DEBUGINFO_PATH_BYTES_MAX + 1])
{
	bool utf8 = str_is_utf8(path);
	size_t n = path.len < DEBUGINFO_PATH_BYTES_MAX ? path.len : DEBUGINFO_PATH_BYTES_MAX;
	const char *p = path.ptr + path.len - n;

	while (n && n < path.len && ((unsigned char)*p & 0xc0) == 0x80) { /* the rest of a letter */
		p++;
		n--;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		out[i] = c < ' ' || c == 0x7f || (c >= 0x80 && !utf8) ? '?' : p[i];
	}
	out[n] = '\0';
}

static bool paths_is_module(struct str name)
{
	return str_has_suffix(name, STR(".ko")) || str_find(name, STR(".ko.")) >= 0;
}

bool debuginfo_path_is_no_file(struct str path)
{
	static const char *const prefixes[] = { "[", "//anon", "anon_inode:", "/anon_hugepage",
		"/memfd:", "memfd:", "/dev/", "/SYSV", "linux-vdso" };
	static const char *const names[] = { "vmlinux", "vmlinuz", "kallsyms", "linux-vdso", "perf-",
		"jit-", "jitted-", "[" };
	struct str name = str_base_name(path);

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_has_prefix(path, str_of(prefixes[i])))
			return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_has_prefix(name, str_of(names[i])))
			return true;
	return paths_is_module(name);
}

enum err_code path_copy(const char *path, char **out, struct err *err)
{
	*out = NULL;
	return !path[0] || (*out = strdup(path)) ? ERR_OK : err_nomem(err, "path");
}

/* ---- base names ---- */

/* What a mapping of the binary is called: debug data of it often are in a file NAME.debug. */
static struct str paths_mapped_name(struct str path)
{
	struct str name = str_base_name(path), debug = STR(".debug");

	if (name.len > debug.len && str_has_suffix(name, debug))
		name.len -= debug.len;
	return name;
}

static struct debuginfo_entry **paths_named_bucket(struct debuginfo_store *s, struct str name)
{
	return &s->named[hash_bytes(name.ptr, name.len, s->seed) % BUCKETS];
}

void entry_set_path(struct debuginfo_store *s, struct debuginfo_entry *e, char *path)
{
	struct debuginfo_entry **at;

	mutex_assert_held(&s->lock);
	if (e->path) {
		at = paths_named_bucket(s, paths_mapped_name(str_of(e->path)));
		while (*at != e)
			at = &(*at)->next_named;
		*at = e->next_named;
		free(e->path);
	}
	e->path = path;
	if (path) {
		at = paths_named_bucket(s, paths_mapped_name(str_of(path)));
		e->next_named = *at;
		*at = e;
	}
}

size_t debuginfo_find_name(
	struct debuginfo_store *s, struct str path, struct debuginfo_id *d, size_t max)
{
	struct str base_name = paths_mapped_name(path);
	size_t n = 0;

	if (!base_name.len)
		return 0;
	mutex_lock(&s->lock);
	for (const struct debuginfo_entry *e = *paths_named_bucket(s, base_name); e;
		 e = e->next_named) {
		if (!str_eq(paths_mapped_name(str_of(e->path)), base_name))
			continue;
		if (n < max)
			d[n] = e->stamp.id;
		n++;
	}
	mutex_unlock(&s->lock);
	return n;
}

/* ---- beside a queued upload: the path, then 8 bytes of checksum ---- */

static uint64_t paths_checksum(const struct debuginfo_id *id, struct str path)
{
	return hash_bytes(path.ptr, path.len, hash_bytes(id, sizeof(*id), 0));
}

void waiting_path_remove(struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin)
{
	char *file = path_of_waiting(s, id, kind, origin);

	if (file && fs_exists(file))
		(void)!s->fs->ops->unlink(s->fs, file, NULL); /* the next open tries again */
	free(file);
}

enum err_code waiting_path_write(struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin, const char *path, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc;
	char *file;

	if (!path[0]) {
		waiting_path_remove(s, id, kind, origin); /* one that could not be removed */
		return ERR_OK;
	}
	buf_add_cstr(&b, path);
	buf_add_u64be(&b, paths_checksum(id, str_of(path)));
	file = path_of_waiting(s, id, kind, origin);
	rc = !file || buf_failed(&b) ? err_nomem(err, "path") :
								   fs_write_file(s->fs, file, buf_str(&b), err);
	free(file);
	buf_release(&b);
	return rc;
}

static bool paths_decode(const struct debuginfo_id *id, struct str bytes, char *out)
{
	struct str path = { bytes.ptr, bytes.len < 8 ? 0 : bytes.len - 8 };
	struct cursor c;

	if (bytes.len < 8)
		return false;
	c = cursor_of((struct str){ bytes.ptr + path.len, 8 });
	debuginfo_path_clean(path, out);
	return cursor_u64be(&c) == paths_checksum(id, path) && str_is(path, out);
}

enum err_code waiting_path_read(struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin, char **out, struct err *err)
{
	char path[DEBUGINFO_PATH_BYTES_MAX + 1] = "", *file;
	struct buf b = { 0 };
	struct err why;
	enum err_code rc;

	if (!(file = path_of_waiting(s, id, kind, origin)))
		return err_nomem(err, "path");
	rc = fs_read_file(file, DEBUGINFO_PATH_BYTES_MAX + 8, &b, &why);
	if (!rc && !paths_decode(id, buf_str(&b), path))
		rc = err_set(&why, ERR_CORRUPT, "%s is damaged", file);
	if (rc)
		path[0] = '\0';
	if (rc && rc != ERR_NOT_FOUND)
		log_warn("debuginfo", "path of a queued upload is not known", LOG_E(&why));
	buf_release(&b);
	free(file);
	return path_copy(path, out, err);
}
