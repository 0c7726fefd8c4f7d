#include "tests/tsdb/cluster/scene.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "tsdb/head/follow.h"

#define PREFIX "p/q/"

bool scene_open(struct scene *s)
{
	struct bucket_config c;

	memset(s, 0, sizeof(*s));
	if (!town_open(&s->town))
		return false;
	s->town.f.o.segments = true;
	if (!fixture_reopen(&s->town.f) || !fake_start(&s->fake, NULL))
		return false;
	c = fake_config(&s->fake);
	c.attempts_max = 1;
	if (bucket_open(&c, &s->bucket, &s->err)) {
		town_failed("%s", s->err.msg);
		return false;
	}
	s->o = (struct publisher_options){ .bucket = s->bucket,
		.shard = STR("a"), .dir = s->town.f.dir, .host = "here", .interval_ns = NS_PER_S,
			.lease_ns = 1000 * NS_PER_S, .no_probe = true, .no_threads = true };
	return true;
}

void scene_close(struct scene *s)
{
	publisher_abandon(s->p);
	bucket_close(s->bucket);
	fake_stop(&s->fake);
	town_close(&s->town);
	arena_release(&s->arena);
}

bool scene_start(struct scene *s)
{
	enum err_code rc;

	if ((rc = publisher_open(&s->o, &s->p, &s->err)))
		return false;
	if ((rc = publisher_take(s->p, false, &s->err)) ||
		(rc = publisher_attach(s->p, s->town.f.db, &s->err)))
		scene_crash(s);
	return !rc;
}

void scene_crash(struct scene *s)
{
	publisher_abandon(s->p);
	s->p = NULL;
}

void scene_stop(struct scene *s)
{
	publisher_close(s->p);
	s->p = NULL;
}

void scene_settle(struct scene *s)
{
	for (unsigned i = 0; i < 4; i++) { /* put, name, find what has no name, list it as gone */
		if (publisher_round(s->p, &s->err) || publisher_work(s->p, &s->err))
			town_failed("settle: %s", s->err.msg);
	}
}

bool scene_look(struct scene *s)
{
	struct fake_object *o = fake_find(&s->fake, PREFIX "shards/a/manifest");
	struct buf text = { 0 };
	bool ok = false;

	arena_release(&s->arena);
	if (!o) {
		town_failed("there is no manifest");
		return false;
	}
	mutex_lock(&s->fake.lock); /* a publisher may be writing it */
	buf_add_str(&text, buf_str(&o->bytes));
	mutex_unlock(&s->fake.lock);
	if (manifest_parse(buf_str(&text), &s->arena, &s->m, &s->err))
		town_failed("manifest: %s", s->err.msg);
	else
		ok = true;
	buf_release(&text);
	return ok;
}

struct fake_object *scene_object(struct scene *s, const struct manifest_key *key)
{
	char path[BUCKET_KEY_BYTES_MAX];

	snprintf(path, sizeof(path), PREFIX "%s", key->text);
	return fake_find(&s->fake, path);
}

/* ---- objects ---- */

struct checking {
	struct scene *s;
	const char *what;
	size_t named;
};

static bool check_object(void *ctx, const struct manifest_key *key, const struct manifest_file *f)
{
	struct checking *c = ctx;
	struct fake_object *o = scene_object(c->s, key);

	c->named++;
	if (!o)
		town_failed("%s: not there: %s", c->what, key->text);
	else if (o->bytes.len != f->bytes || hash_bytes(o->bytes.ptr, o->bytes.len, 0) != f->hash)
		town_failed("%s: another object: %s", c->what, key->text);
	for (uint32_t i = 0; i < c->s->m.gone_n; i++)
		if (str_eq(c->s->m.gone[i].key, manifest_key_rest(key, c->s->m.shard)))
			town_failed("%s: named and gone: %s", c->what, key->text);
	return true;
}

void scene_check_objects(struct scene *s, const char *what, bool exact)
{
	struct checking c = { s, what, 0 };
	size_t there = 0;

	if (!scene_look(s))
		return;
	manifest_each_key(&s->m, check_object, &c);
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		there += s->fake.objects[i].used;
	for (uint32_t i = 0; i < s->m.gone_n; i++) {
		char path[BUCKET_KEY_BYTES_MAX];

		snprintf(path, sizeof(path), PREFIX "shards/a/" STR_FMT, STR_ARG(s->m.gone[i].key));
		there -= fake_find(&s->fake, path) != NULL;
	}
	if (exact && there != c.named + 1)
		town_failed("%s: %zu objects, %zu are named", what, there, c.named + 1);
}

/* ---- rows ---- */

static void write_object(
	struct scene *s, const char *dir, const char *name, const struct manifest_key *key)
{
	struct fake_object *o = scene_object(s, key);
	struct arena a;

	if (!o)
		return;
	arena_init(&a, 0);
	if (fs_mkdir_all(&fs_posix, dir, &s->err) ||
		fs_write_file(
			&fs_posix, path_join(&a, str_of(dir), str_of(name)), buf_str(&o->bytes), &s->err))
		town_failed("%s", s->err.msg);
	arena_release(&a);
}

static void restore_block(struct scene *s, const char *dir, const struct manifest_block *b)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/blocks/%s", dir, b->ulid.text);
	for (unsigned k = 0; k < MANIFEST_BLOCK_FILES; k++) {
		struct manifest_key key = manifest_key_block(s->m.shard, b, k);

		if (manifest_block_file(b, k)->bytes)
			write_object(s, path, manifest_block_file_names[k], &key);
	}
}

static void restore_window(struct scene *s, const char *dir, const struct manifest_window *w)
{
	struct segment of = { w->start_ns, w->end_ns, w->identity, 1, 0, true };
	struct head_restore *r = NULL;
	enum err_code rc = ERR_OK;
	char path[160], name[64];

	snprintf(path, sizeof(path), "%s/head", dir);
	for (uint32_t i = 0; i < w->segments_n && !rc; i++) {
		struct manifest_key key = manifest_key_segment(s->m.shard, w, &w->segments[i]);
		struct fake_object *o = scene_object(s, &key);

		of.first = w->segments[i].first;
		of.last = w->segments[i].last;
		if (!o)
			break;
		if (!r)
			rc = head_restore_open(&fs_posix, NULL, dir, &of, &r, &s->err);
		if (!rc)
			rc = head_restore_add(r, &of, buf_str(&o->bytes), &s->err);
	}
	if (rc) {
		head_restore_close(r);
		town_failed("restore: %s", s->err.msg);
	} else if (r && (rc = head_restore_end(r, &s->err))) {
		town_failed("restore: %s", s->err.msg);
	}
	if (w->deleted.bytes) {
		struct manifest_key key = manifest_key_window_deleted(s->m.shard, w);

		snprintf(name, sizeof(name), "%lld.deleted", (long long)(w->start_ns / SEC));
		write_object(s, path, name, &key);
	}
}

static void write_inventory(struct scene *s, const char *dir)
{
	struct inventory_entry *v = arena_array(
		&s->arena, struct inventory_entry, s->m.windows_n + s->m.blocks_n + 1);
	size_t n = 0;

	for (uint32_t i = 0; i < s->m.windows_n; i++) {
		const struct manifest_window *w = &s->m.windows[i];

		v[n++] = (struct inventory_entry){
			.min_ns = w->start_ns, .max_ns = w->end_ns, .deleted = w->deleted.bytes > 0
		};
	}
	for (uint32_t i = 0; i < s->m.blocks_n; i++) {
		const struct manifest_block *b = &s->m.blocks[i];

		v[n++] = (struct inventory_entry){ b->ulid, b->min_ns, b->max_ns, b->raw,
			b->deleted.bytes > 0 };
	}
	if (inventory_write(&fs_posix, dir, v, n, &s->err))
		town_failed("%s", s->err.msg);
}

static void restore(struct scene *s, const char *dir)
{
	struct manifest_key ids = manifest_key_small(s->m.shard, "ids", &s->m.ids);
	char head[128];

	snprintf(head, sizeof(head), "%s/head", dir);
	if (fs_mkdir_all(&fs_posix, head, &s->err))
		town_failed("%s", s->err.msg);
	if (s->m.ids.bytes)
		write_object(s, dir, "ids", &ids);
	for (uint32_t i = 0; i < s->m.blocks_n; i++)
		restore_block(s, dir, &s->m.blocks[i]);
	for (uint32_t i = 0; i < s->m.windows_n; i++)
		restore_window(s, dir, &s->m.windows[i]);
	write_inventory(s, dir);
}

static void check_rows(struct scene *s, const char *what, bool layout)
{
	struct fixture here = s->town.f;
	struct buf want = { 0 }, got = { 0 };

	if (!scene_look(s))
		return;
	town_layout(&s->town, &want);
	memcpy(s->town.f.dir + strlen(here.dir), ".back", sizeof(".back"));
	s->town.f.db = NULL;
	s->town.f.o.segments = false;
	restore(s, s->town.f.dir);
	if (fixture_reopen(&s->town.f)) {
		town_check(&s->town, what, __LINE__);
		town_layout(&s->town, &got);
		if (layout && s->town.f.db && !str_eq(buf_str(&want), buf_str(&got)))
			town_failed("%s: \"" STR_FMT "\" in the bucket, \"" STR_FMT "\" in the shard", what,
				STR_ARG(buf_str(&got)), STR_ARG(buf_str(&want)));
		db_close(s->town.f.db);
	} else {
		town_failed("%s: not opened", what);
	}
	if (fs_remove_tree(&fs_posix, s->town.f.dir, &s->err))
		town_failed("%s", s->err.msg);
	here.arena = s->town.f.arena;
	s->town.f = here;
	buf_release(&want);
	buf_release(&got);
}

void scene_check_rows_alone(struct scene *s, const char *what)
{
	check_rows(s, what, false);
}

void scene_check_rows(struct scene *s, const char *what)
{
	check_rows(s, what, true);
}

void scene_print(struct scene *s, struct buf *out)
{
	const char *between = "";

	if (!scene_look(s))
		return;
	for (uint32_t i = 0; i < s->m.blocks_n; i++) {
		const struct manifest_block *b = &s->m.blocks[i];

		buf_printf(out, "%sblock %u%s%s%s", between, b->level, b->raw ? "" : " sums",
			b->deleted.bytes ? " deleted" : "", b->kept ? " kept" : "");
		between = "; ";
	}
	for (uint32_t i = 0; i < s->m.windows_n; i++) {
		const struct manifest_window *w = &s->m.windows[i];

		buf_printf(out, "%s%lld:", between, (long long)(w->start_ns / SEC - T0));
		for (uint32_t k = 0; k < w->segments_n; k++)
			buf_printf(out, " %d-%d", (int)w->segments[k].first, (int)w->segments[k].last);
		buf_printf(out, "%s%s", w->deleted.bytes ? " deleted" : "", w->kept ? " kept" : "");
		between = "; ";
	}
}
