#include "cmd/epitool/backup/backup_store.h"

#include <stdlib.h>
#include <time.h>

#include "base/array.h"
#include "base/log.h"
#include "cmd/epitool/progress.h"

#define WAIT_NS (BACKUP_MARK_NS + 300 * NS_PER_S)
#define WAIT_EACH_NS NS_PER_S

enum err_code backup_store_init(struct backup_store *s, const struct place *root, struct err *err)
{
	const struct {
		const char *name;
		struct place *place;
	} parts[] = { { "objects", &s->objects }, { "backups", &s->backups },
		{ "running", &s->running }, { "removing", &s->removing } };

	*s = (struct backup_store){ .wait_ns = WAIT_NS };
	arena_init(&s->arena, 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		*parts[i].place = *root;
		parts[i].place->path = root->bucket ?
			arena_printf(&s->arena, "%s%s/", root->path, parts[i].name) :
			arena_printf(&s->arena, "%s/%s", root->path, parts[i].name);
		if (!parts[i].place->path)
			return arena_fail(&s->arena, "backups", err);
	}
	return ERR_OK;
}

void backup_store_release(struct backup_store *s)
{
	arena_release(&s->arena);
}

/* A directory that nobody has made yet is empty. */
static enum err_code backup_store_list(
	const struct place *p, struct arena *a, struct place_list *out, struct err *err)
{
	enum err_code rc = place_list(p, a, out, err);

	return rc == ERR_NOT_FOUND && !p->bucket ? ERR_OK : rc;
}

enum err_code backup_store_names(
	const struct backup_store *s, struct arena *a, struct str **names, size_t *n, struct err *err)
{
	struct place_list list;
	enum err_code rc;

	*n = 0;
	if ((rc = backup_store_list(&s->backups, a, &list, err)))
		return rc;
	if (!(*names = arena_array(a, struct str, list.n + 1)))
		return arena_fail(a, "backups", err);
	for (size_t i = 0; i < list.n; i++)
		if (backup_name_is_valid(list.v[i].key)) /* else half a file of one that was killed */
			(*names)[(*n)++] = list.v[i].key;
	return ERR_OK;
}

enum err_code backup_store_read(const struct backup_store *s, struct str name, struct arena *a,
	struct backup_manifest *out, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	if (!(rc = place_read(&s->backups, name, BACKUP_MANIFEST_BYTES_MAX, &text, err)) &&
		(rc = backup_manifest_parse(buf_str(&text), name, a, out, err)))
		rc = err_wrap(err, rc, "the manifest of backup " STR_FMT, STR_ARG(name));
	buf_release(&text);
	return rc;
}

/* ---- marks ---- */

static struct str backup_store_own(const struct backup_store *s)
{
	return str_of(s->name);
}

static enum err_code backup_store_mark(
	const struct backup_store *s, const struct place *p, struct err *err)
{
	return place_write(p, backup_store_own(s), STR("\n"), err);
}

static void backup_store_unmark(const struct place *p, struct str name)
{
	struct err err;

	if (place_remove(p, name, &err))
		log_warn("epitool", "a mark stays", LOG_STR("name", name), LOG_E(&err));
}

/* Is there a mark of another process that lives? */
static enum err_code backup_store_look(
	const struct backup_store *s, const struct place *p, bool *others, struct err *err)
{
	struct place_list running, marks;
	int64_t now_ns = INT64_MIN; /* by the place's clock: of our own mark */
	enum err_code rc;
	struct arena a;

	*others = false;
	arena_init(&a, 0);
	if ((rc = backup_store_list(&s->running, &a, &running, err)) ||
		(rc = backup_store_list(p, &a, &marks, err)))
		goto out;
	for (size_t i = 0; i < running.n; i++)
		if (str_eq(running.v[i].key, backup_store_own(s)))
			now_ns = running.v[i].modified_ns;
	for (size_t i = 0; i < marks.n; i++) {
		const struct place_object *o = &marks.v[i];

		if (str_eq(o->key, backup_store_own(s)) || !backup_name_is_valid(o->key))
			continue;
		if (now_ns > o->modified_ns && now_ns - o->modified_ns > BACKUP_MARK_NS)
			backup_store_unmark(p, o->key);
		else
			*others = true;
	}
out:
	arena_release(&a);
	return rc;
}

/* Until nobody removes. */
static enum err_code backup_store_wait(struct backup_store *s, struct err *err)
{
	int64_t until = clock_monotonic_ns() + s->wait_ns;
	bool others;
	enum err_code rc;

	while (!(rc = backup_store_look(s, &s->removing, &others, err)) && others) {
		if (atomic_load(&interrupted))
			return err_set(err, ERR_CANCELED, "interrupted");
		if (clock_monotonic_ns() >= until)
			return err_set(err, ERR_UNAVAILABLE,
				"another backup is removing old ones, see %s: try again later", s->removing.path);
		progress_wait(WAIT_EACH_NS);
		backup_store_touch(s);
	}
	return rc;
}

static int64_t backup_store_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

enum err_code backup_store_begin(struct backup_store *s, struct err *err)
{
	enum err_code rc;

	s->touched_ns = backup_store_clock();
	if ((rc = backup_store_mark(s, &s->running, err)) || (rc = backup_store_wait(s, err)))
		return rc;
	return backup_store_list(&s->objects, &s->arena, &s->there, err);
}

void backup_store_touch(struct backup_store *s)
{
	int64_t now = backup_store_clock();
	struct err err;

	s->late |= now - s->touched_ns > BACKUP_MARK_NS / 2;
	if (now - s->touched_ns < BACKUP_TOUCH_NS)
		return;
	if (backup_store_mark(s, &s->running, &err) ||
		(s->removes && backup_store_mark(s, &s->removing, &err)))
		log_warn("epitool", "a mark was not written", LOG_S("name", s->name), LOG_E(&err));
	else
		s->touched_ns = now;
}

void backup_store_end(struct backup_store *s)
{
	if (s->name[0])
		backup_store_unmark(&s->running, backup_store_own(s));
	s->name[0] = '\0';
}

/* ---- one backup ---- */

static int backup_store_by_key(const void *a, const void *b)
{
	const struct place_object *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

bool backup_store_has(const struct backup_store *s, const char *hash, uint64_t bytes)
{
	const struct place_object key = { .key = str_of(hash) }, *o;

	o = s->there.n ? bsearch(&key, s->there.v, s->there.n, sizeof(key), backup_store_by_key) : NULL;
	return o && o->bytes == bytes;
}

enum err_code backup_store_put(
	const struct backup_store *s, const char *hash, int fd, struct err *err)
{
	return place_put(&s->objects, str_of(hash), fd, err);
}

/* Objects of its own files are there, as far as names and sizes say. */
static enum err_code backup_store_check(
	struct backup_store *s, const struct backup_manifest *m, struct err *err)
{
	enum err_code rc;

	if ((rc = backup_store_wait(s, err)) ||
		(rc = backup_store_list(&s->objects, &s->arena, &s->there, err)))
		return rc;
	for (size_t i = 0; i < m->files_n; i++)
		if (!backup_store_has(s, m->files[i].hash, m->files[i].bytes))
			return err_set(err, ERR_UNAVAILABLE,
				STR_FMT ": its object was removed meanwhile: back up again",
				STR_ARG(m->files[i].path));
	return ERR_OK;
}

enum err_code backup_store_commit(
	struct backup_store *s, const struct backup_manifest *m, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	backup_manifest_print(m, &text);
	rc = buf_failed(&text) ? err_nomem(err, "manifest") :
							 place_write(&s->backups, m->name, buf_str(&text), err);
	buf_release(&text);
	if (!rc)
		rc = backup_store_check(s, m, err);
	if (rc) /* what could not be written may be there: a sync failed behind the rename */
		(void)!place_remove(&s->backups, m->name, NULL);
	return rc;
}

/* ---- removal ---- */

struct backup_store_removal {
	struct backup_store *s;
	struct arena a; /* of names, and hashes that are kept */
	struct str *names;
	bool *goes;
	size_t n;
	char (*hashes)[BUCKET_HASH_LEN + 1];
	size_t hashes_n, hashes_cap;
	struct backup_removed *out;
};

static int backup_store_by_hash(const void *a, const void *b)
{
	return memcmp(a, b, BUCKET_HASH_LEN);
}

/* From the newest to the oldest: which go, and the hashes of those that stay. */
static enum err_code backup_store_choose(
	struct backup_store_removal *r, struct str source, uint64_t keep, struct err *err)
{
	uint64_t whole = 0;

	for (size_t i = r->n; i-- > 0;) {
		struct backup_manifest m;
		enum err_code rc;
		struct arena a;

		arena_init(&a, 0);
		rc = backup_store_read(r->s, r->names[i], &a, &m, err);
		if (!rc && str_eq(m.source, source)) {
			r->goes[i] = whole >= keep && !str_eq(m.name, backup_store_own(r->s));
			whole += !m.findings;
		}
		if (!rc && !r->goes[i] &&
			!arena_array_room(&r->a, &r->hashes, r->hashes_n, m.files_n, &r->hashes_cap))
			rc = arena_fail(&r->a, "hashes", err);
		for (size_t k = 0; !rc && !r->goes[i] && k < m.files_n; k++)
			memcpy(r->hashes[r->hashes_n++], m.files[k].hash, BUCKET_HASH_LEN + 1);
		arena_release(&a);
		if (rc)
			return rc;
	}
	if (r->hashes_n)
		qsort(r->hashes, r->hashes_n, sizeof(*r->hashes), backup_store_by_hash);
	return ERR_OK;
}

static enum err_code backup_store_remove_object(
	struct backup_store_removal *r, const struct place_object *o, struct err *err)
{
	enum err_code rc;

	if (o->key.len == BUCKET_HASH_LEN && r->hashes_n &&
		bsearch(o->key.ptr, r->hashes, r->hashes_n, sizeof(*r->hashes), backup_store_by_hash))
		return ERR_OK;
	if ((rc = place_remove(&r->s->objects, o->key, err)))
		return rc;
	r->out->objects++;
	r->out->bytes += o->bytes;
	return ERR_OK;
}

/* Files that one that was killed had not finished. */
static enum err_code backup_store_remove_parts(struct backup_store_removal *r, struct err *err)
{
	const struct place *p = &r->s->objects;
	enum err_code rc;
	struct str *names;
	size_t n;

	if (p->bucket)
		return ERR_OK;
	if ((rc = fs_list(p->path, &r->a, &names, &n, err)))
		return rc == ERR_NOT_FOUND ? ERR_OK : rc;
	for (size_t i = 0; i < n && !rc; i++)
		if (str_has_suffix(names[i], STR(PLACE_PART)))
			rc = place_remove(p, names[i], err);
	return rc;
}

static enum err_code backup_store_remove_chosen(
	struct backup_store_removal *r, struct str source, uint64_t keep, struct err *err)
{
	struct backup_store *s = r->s;
	struct place_list objects;
	enum err_code rc;

	if ((rc = backup_store_names(s, &r->a, &r->names, &r->n, err)))
		return rc;
	if (!(r->goes = arena_array(&r->a, bool, r->n + 1)))
		return arena_fail(&r->a, "backups", err);
	if ((rc = backup_store_choose(r, source, keep, err)) ||
		(rc = backup_store_list(&s->objects, &r->a, &objects, err)))
		return rc;
	for (size_t i = 0; i < r->n && !rc; i++)
		if (r->goes[i] && !(rc = place_remove(&s->backups, r->names[i], err)))
			r->out->backups++;
	for (size_t i = 0; i < objects.n && !rc; i++) {
		backup_store_touch(s);
		if (atomic_load(&interrupted))
			return err_set(err, ERR_CANCELED, "interrupted");
		if (s->late)
			return err_set(err, ERR_UNAVAILABLE, "it stood still for too long");
		rc = backup_store_remove_object(r, &objects.v[i], err);
	}
	return rc ? rc : backup_store_remove_parts(r, err);
}

enum err_code backup_store_remove_old(struct backup_store *s, struct str source, uint64_t keep,
	struct backup_removed *out, struct err *err)
{
	struct backup_store_removal r = { .s = s, .out = out };
	enum err_code rc;

	*out = (struct backup_removed){ 0 };
	arena_init(&r.a, 0);
	s->removes = true;
	s->late = false;
	if (!(rc = backup_store_mark(s, &s->removing, err)) &&
		!(rc = backup_store_mark(s, &s->running, err))) {
		s->touched_ns = backup_store_clock();
		if (!(rc = backup_store_look(s, &s->running, &out->busy, err)) && !out->busy)
			rc = backup_store_remove_chosen(&r, source, keep, err);
	}
	s->removes = false;
	backup_store_unmark(&s->removing, backup_store_own(s));
	arena_release(&r.a);
	return rc ? err_wrap(err, rc, "remove old backups") : ERR_OK;
}
