#include "cmd/epitool/backup/backup_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/net/sigv4.h"
#include "base/quote.h"

#define MAGIC "epimetheus-backup "
#define END "end "

/* ---- names ---- */

bool backup_name_is_valid(struct str name)
{
	static const char shape[] = "00000000T000000Z-xxxxxxxx";

	_Static_assert(sizeof(shape) == BACKUP_NAME_LEN + 1, "a name has its shape");
	if (name.len != BACKUP_NAME_LEN)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		bool digit = name.ptr[i] >= '0' && name.ptr[i] <= '9';
		bool hex = digit || (name.ptr[i] >= 'a' && name.ptr[i] <= 'f');

		if (shape[i] == '0' ? !digit : shape[i] == 'x' ? !hex : name.ptr[i] != shape[i])
			return false;
	}
	return true;
}

void backup_name_make(char out[BACKUP_NAME_LEN + 1])
{
	time_t now = (time_t)(clock_now_ns() / NS_PER_S);
	uint32_t random = 0;
	struct tm tm;
	size_t n;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint32_t)clock_monotonic_ns();
	gmtime_r(&now, &tm);
	n = strftime(out, BACKUP_NAME_LEN + 1, "%Y%m%dT%H%M%SZ", &tm);
	snprintf(out + n, BACKUP_NAME_LEN + 1 - n, "-%08" PRIx32, random);
}

/* ---- print ---- */

void backup_manifest_print(const struct backup_manifest *m, struct buf *out)
{
	char hash[SIGV4_HASH_LEN + 1];
	size_t start = out->len;

	buf_printf(out, MAGIC "%d\nname " STR_FMT "\nsource " STR_FMT "\nfindings %" PRIu64 "\n",
		BACKUP_MANIFEST_VERSION, STR_ARG(m->name), STR_ARG(m->source), m->findings);
	for (size_t i = 0; i < m->files_n; i++) {
		const struct backup_file *f = &m->files[i];

		buf_printf(out, "file %s %" PRIu64 " %" PRId64 " %" PRIu64 " " STR_FMT "\n", f->hash,
			f->bytes, f->modified_ns, f->inode, STR_ARG(f->path));
	}
	if (buf_failed(out))
		return;
	sigv4_hash((struct str){ out->ptr + start, out->len - start }, hash);
	buf_printf(out, END "%s\n", hash);
}

/* ---- parse ---- */

struct backup_manifest_reading {
	struct str left;
	size_t line; /* of the text, from 1 */
	struct arena *a;
	struct backup_manifest *m;
	size_t cap;
};

static enum err_code backup_manifest_bad(
	const struct backup_manifest_reading *r, const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "line %zu: %s", r->line, what);
}

/* The next line without its end; false: there is none. */
static bool backup_manifest_line(struct backup_manifest_reading *r, struct str *line)
{
	const char *end = r->left.len ? memchr(r->left.ptr, '\n', r->left.len) : NULL;

	if (!end)
		return false;
	*line = (struct str){ r->left.ptr, (size_t)(end - r->left.ptr) };
	r->left.ptr += line->len + 1;
	r->left.len -= line->len + 1;
	r->line++;
	return true;
}

/* The value of a line "WORD VALUE". */
static enum err_code backup_manifest_field(
	struct backup_manifest_reading *r, struct str word, struct str *out, struct err *err)
{
	if (!backup_manifest_line(r, out) || !str_has_prefix(*out, word))
		return backup_manifest_bad(r, "it is not what belongs here", err);
	out->ptr += word.len;
	out->len -= word.len;
	return ERR_OK;
}

/* Up to the next space. */
static struct str backup_manifest_word(struct str *line)
{
	const char *space = line->len ? memchr(line->ptr, ' ', line->len) : NULL;
	struct str word = { line->ptr, space ? (size_t)(space - line->ptr) : line->len };
	size_t used = word.len + (space != NULL);

	line->ptr += used;
	line->len -= used;
	return word;
}

static bool backup_manifest_is_hash(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!(s.ptr[i] >= '0' && s.ptr[i] <= '9') && !(s.ptr[i] >= 'a' && s.ptr[i] <= 'f'))
			return false;
	return s.len == BUCKET_HASH_LEN;
}

/* A number in the only form in which we write it. */
static bool backup_manifest_u64(struct str s, uint64_t *out)
{
	return str_to_u64(s, out) && (s.len == 1 || s.ptr[0] != '0');
}

static enum err_code backup_manifest_file(
	struct backup_manifest_reading *r, struct str line, struct err *err)
{
	struct backup_manifest *m = r->m;
	struct backup_file f = { 0 };
	struct str hash = backup_manifest_word(&line);
	uint64_t modified;

	if (!backup_manifest_is_hash(hash) ||
		!backup_manifest_u64(backup_manifest_word(&line), &f.bytes) ||
		!backup_manifest_u64(backup_manifest_word(&line), &modified) || modified > INT64_MAX ||
		!backup_manifest_u64(backup_manifest_word(&line), &f.inode))
		return backup_manifest_bad(r, "it is no file", err);
	if (bucket_check_key(line, NULL))
		return backup_manifest_bad(r, "a path that no data directory has", err);
	if (m->files_n && str_cmp(m->files[m->files_n - 1].path, line) >= 0)
		return backup_manifest_bad(r, "paths do not ascend", err);
	memcpy(f.hash, hash.ptr, hash.len);
	f.modified_ns = (int64_t)modified;
	f.path = str_dup(r->a, line);
	if (!f.path.ptr || !arena_array_room(r->a, &m->files, m->files_n, 1, &r->cap))
		return arena_fail(r->a, "manifest", err);
	m->files[m->files_n++] = f;
	return ERR_OK;
}

/* Checks the last line, and takes it off. */
static enum err_code backup_manifest_check_end(struct backup_manifest_reading *r, struct err *err)
{
	const size_t end_len = sizeof(END) - 1 + BUCKET_HASH_LEN + 1;
	char hash[SIGV4_HASH_LEN + 1];
	struct str end;

	if (r->left.len < end_len)
		return err_set(err, ERR_CORRUPT, "it is cut short");
	r->left.len -= end_len;
	end = (struct str){ r->left.ptr + r->left.len, end_len };
	if (!str_has_prefix(end, STR(END)) || end.ptr[end_len - 1] != '\n')
		return err_set(err, ERR_CORRUPT, "it is cut short");
	sigv4_hash(r->left, hash);
	if (memcmp(hash, end.ptr + sizeof(END) - 1, BUCKET_HASH_LEN))
		return err_set(err, ERR_CORRUPT, "its bytes are not those that were written");
	return ERR_OK;
}

static enum err_code backup_manifest_read_head(
	struct backup_manifest_reading *r, struct str name, struct err *err)
{
	struct str findings, version;
	struct backup_manifest *m = r->m;
	enum err_code rc;
	uint64_t number;

	if ((rc = backup_manifest_field(r, STR(MAGIC), &version, err)))
		return rc;
	if (!backup_manifest_u64(version, &number))
		return backup_manifest_bad(r, "it is no version", err);
	if (number > BACKUP_MANIFEST_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			"version %" PRIu64 " was written by a newer program; this one reads version %d", number,
			BACKUP_MANIFEST_VERSION);
	if (number != BACKUP_MANIFEST_VERSION)
		return backup_manifest_bad(r, "it is no version", err);
	if ((rc = backup_manifest_field(r, STR("name "), &m->name, err)) ||
			(rc = backup_manifest_field(r, STR("source "), &m->source, err)) ||
				(rc = backup_manifest_field(r, STR("findings "), &findings, err)))
		return rc;
	if (!str_eq(m->name, name) || !backup_name_is_valid(m->name))
		return err_set(err, ERR_CORRUPT, "it is that of backup %s", QUOTED(m->name));
	if (m->source.len > BACKUP_SOURCE_BYTES_MAX || !backup_manifest_u64(findings, &m->findings))
		return backup_manifest_bad(r, "it is no number, or too long", err);
	if (str_printable(r->a, m->source).ptr != m->source.ptr)
		return err_set(err, ERR_CORRUPT, "line 3: a source that does not print");
	m->name = str_dup(r->a, m->name);
	m->source = str_dup(r->a, m->source);
	return m->name.ptr && m->source.ptr ? ERR_OK : arena_fail(r->a, "manifest", err);
}

enum err_code backup_manifest_parse(
	struct str text, struct str name, struct arena *a, struct backup_manifest *out, struct err *err)
{
	struct backup_manifest_reading r = { .left = text, .a = a, .m = out };
	enum err_code rc;
	struct str line;

	*out = (struct backup_manifest){ 0 };
	if (text.len > BACKUP_MANIFEST_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "it has %zu bytes, limit %zu", text.len, BACKUP_MANIFEST_BYTES_MAX);
	if ((rc = backup_manifest_check_end(&r, err)) ||
		(rc = backup_manifest_read_head(&r, name, err)))
		return rc;
	while (!rc && r.left.len)
		if (!(rc = backup_manifest_field(&r, STR("file "), &line, err)))
			rc = backup_manifest_file(&r, line, err);
	return rc;
}

/* ---- what it has ---- */

static int backup_manifest_by_path(const void *a, const void *b)
{
	const struct backup_file *x = a, *y = b;

	return str_cmp(x->path, y->path);
}

const struct backup_file *backup_manifest_find(const struct backup_manifest *m, struct str path)
{
	const struct backup_file key = { .path = path };

	return m->files_n ? bsearch(&key, m->files, m->files_n, sizeof(key), backup_manifest_by_path) :
						NULL;
}

uint64_t backup_manifest_bytes(const struct backup_manifest *m)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < m->files_n; i++)
		bytes += m->files[i].bytes;
	return bytes;
}
