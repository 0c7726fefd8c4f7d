/* Names of the store's files, and the end of an index file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "tsdb/debuginfo/store/internal.h"

#define MAGIC STR("epidbgi1")

const char *const debuginfo_kinds[DEBUGINFO_KINDS] = { "stripped", "no_text", "full" };
const char *const debuginfo_origins[DEBUGINFO_ORIGINS] = { "upload", "debuginfod", "directory" };
const char *const debuginfo_qualities[DEBUGINFO_QUALITIES] = { "nothing", "symbols", "lines",
	"dwarf" };

static char *path_end(struct buf *b)
{
	buf_add_char(b, '\0');
	if (buf_failed(b)) {
		buf_release(b);
		return NULL;
	}
	return b->ptr;
}

char *path_in(const struct debuginfo_store *s, const char *name)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s/%s", s->dir, name);
	return path_end(&b);
}

char *path_of_index(const struct debuginfo_store *s, const struct debuginfo_id *id)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s/", s->dir);
	debuginfo_id_stem(id, &b);
	buf_add_cstr(&b, ".idx");
	return path_end(&b);
}

/* Suffixes: an upload, and the path of its file. */
static const char *const queued_words[] = { "queued", "path" };
enum queued_word { QUEUED_FILE, QUEUED_PATH, QUEUED_WORDS };

static char *path_of_word(const struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin, enum queued_word word)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s/", s->dir);
	debuginfo_id_stem(id, &b);
	buf_printf(
		&b, ".%s.%s.%s", debuginfo_kinds[kind], debuginfo_origins[origin], queued_words[word]);
	return path_end(&b);
}

char *path_of_queued(const struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin)
{
	return path_of_word(s, id, kind, origin, QUEUED_FILE);
}

char *path_of_waiting(const struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin)
{
	return path_of_word(s, id, kind, origin, QUEUED_PATH);
}

/* Cuts *s behind its last point; gives the number of that word in the table, or n. */
static size_t debuginfo_names_last_word(struct str *s, const char *const *words, size_t n)
{
	const char *dot = s->len ? memrchr(s->ptr, '.', s->len) : NULL;
	struct str word;
	size_t i;

	if (!dot)
		return n;
	word = (struct str){ dot + 1, s->len - (size_t)(dot + 1 - s->ptr) };
	for (i = 0; i < n && !str_is(word, words[i]); i++)
		;
	s->len = (size_t)(dot - s->ptr);
	return i;
}

bool queued_name_parse(struct str name, struct debuginfo_id *id, enum debuginfo_kind *kind,
	enum debuginfo_origin *origin, bool *of_path)
{
	size_t word = debuginfo_names_last_word(&name, queued_words, QUEUED_WORDS), k, o;

	if (word == QUEUED_WORDS ||
		(o = debuginfo_names_last_word(&name, debuginfo_origins, DEBUGINFO_ORIGINS)) ==
			DEBUGINFO_ORIGINS ||
		(k = debuginfo_names_last_word(&name, debuginfo_kinds, DEBUGINFO_KINDS)) == DEBUGINFO_KINDS)
		return false;
	*kind = (enum debuginfo_kind)k;
	*origin = (enum debuginfo_origin)o;
	*of_path = word == QUEUED_PATH;
	return debuginfo_id_of_stem(name, id);
}

/* A new file that the next open removes. */
enum err_code tmp_open(struct debuginfo_store *s, char **path, int *fd, struct err *err)
{
	char name[40];
	enum err_code rc;
	uint64_t number;

	mutex_lock(&s->lock);
	number = ++s->last_number;
	mutex_unlock(&s->lock);
	snprintf(name, sizeof(name), "%llu.tmp", (unsigned long long)number);
	if (!(*path = path_in(s, name)))
		return err_nomem(err, "path");
	rc = s->fs->ops->open(s->fs, *path, O_RDWR | O_CREAT | O_TRUNC, 0644, fd, err);
	if (rc) {
		free(*path);
		*path = NULL;
	}
	return rc;
}

enum err_code space_check(struct debuginfo_store *s, uint64_t bytes, struct err *err)
{
	uint64_t left;
	enum err_code rc;

	if (!s->o.free_bytes_min || !s->fs->ops->free_bytes)
		return ERR_OK;
	if ((rc = s->fs->ops->free_bytes(s->fs, s->dir, &left, err)))
		return rc;
	if (left < s->o.free_bytes_min || left - s->o.free_bytes_min < bytes)
		return err_set(err, ERR_IO, "disk: %llu bytes are free, %llu are kept free",
			(unsigned long long)left, (unsigned long long)s->o.free_bytes_min);
	return ERR_OK;
}

/* ---- the end of an index file ---- */

void footer_add(struct buf *out, const struct debuginfo_id *id, const struct footer *f)
{
	size_t start = out->len;

	buf_add_cstr(out, f->path);
	buf_add_str(out, MAGIC);
	buf_add_u64be(out, hash_bytes(id, sizeof(*id), 0));
	buf_add_u64be(out, f->index_bytes);
	buf_add_u64be(out, f->source_bytes);
	buf_add_u64be(out, (uint64_t)f->added_s);
	buf_add_u32be(out, f->kind);
	buf_add_u32be(out, f->origin);
	buf_add_u32be(out, f->quality);
	buf_add_u32be(out, (uint32_t)strlen(f->path));
	if (!buf_failed(out))
		buf_add_u64be(out, hash_bytes(out->ptr + start, out->len - start, 0));
}

static enum err_code footer_values(
	struct cursor *c, const struct debuginfo_id *id, struct footer *f, struct err *err)
{
	uint64_t key = cursor_u64be(c), added;
	uint32_t kind, origin, quality;

	f->index_bytes = cursor_u64be(c);
	f->source_bytes = cursor_u64be(c);
	added = cursor_u64be(c);
	kind = cursor_u32be(c);
	origin = cursor_u32be(c);
	quality = cursor_u32be(c);
	if (key != hash_bytes(id, sizeof(*id), 0))
		return err_set(err, ERR_CORRUPT, "it is of another key");
	if (kind >= DEBUGINFO_KINDS || origin >= DEBUGINFO_ORIGINS || quality >= DEBUGINFO_QUALITIES ||
		added > (uint64_t)(TIME_MAX_NS / NS_PER_S))
		return err_set(err, ERR_CORRUPT, "its end has an unknown value");
	f->kind = (enum debuginfo_kind)kind;
	f->origin = (enum debuginfo_origin)origin;
	f->quality = (enum debuginfo_quality)quality;
	f->added_s = (int64_t)added;
	return ERR_OK;
}

enum err_code footer_decode(
	struct str bytes, const struct debuginfo_id *id, struct footer *f, struct err *err)
{
	struct cursor c, end;
	struct str path, clean;
	uint32_t path_bytes;

	if (bytes.len < FOOTER_BYTES)
		return err_set(err, ERR_CORRUPT, "it is too short");
	end = cursor_of((struct str){ bytes.ptr + bytes.len - 12, 12 });
	path_bytes = cursor_u32be(&end);
	if (path_bytes > DEBUGINFO_PATH_BYTES_MAX || path_bytes > bytes.len - FOOTER_BYTES)
		return err_set(err, ERR_CORRUPT, "its end is damaged");
	path = (struct str){ bytes.ptr + bytes.len - FOOTER_BYTES - path_bytes, path_bytes };
	c = cursor_of((struct str){ path.ptr + path.len, FOOTER_BYTES });
	if (!str_eq(cursor_bytes(&c, MAGIC.len), MAGIC) ||
		cursor_u64be(&end) != hash_bytes(path.ptr, path.len + FOOTER_BYTES - 8, 0))
		return err_set(err, ERR_CORRUPT, "its end is damaged");
	debuginfo_path_clean(path, f->path);
	clean = str_of(f->path);
	if (!str_eq(clean, path)) /* no store writes it */
		return err_set(err, ERR_CORRUPT, "its end has a bad path");
	return footer_values(&c, id, f, err);
}

enum err_code debuginfo_file_read(
	struct str file, const struct debuginfo_id *id, struct debuginfo_file *out, struct err *err)
{
	size_t n = file.len < FOOTER_BYTES_MAX ? file.len : FOOTER_BYTES_MAX;
	struct footer f;
	enum err_code rc = footer_decode((struct str){ file.ptr + file.len - n, n }, id, &f, err);

	if (rc)
		return rc;
	if (f.index_bytes != file.len - footer_bytes(&f))
		return err_set(err, ERR_CORRUPT, "it has another size");
	*out = (struct debuginfo_file){ .index = { file.ptr, (size_t)f.index_bytes },
		.kind = f.kind,
		.origin = f.origin,
		.source_bytes = f.source_bytes,
		.added_s = f.added_s };
	memcpy(out->path, f.path, sizeof(out->path));
	return ERR_OK;
}
