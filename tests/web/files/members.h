/* Two members that keep files in one bucket, over a fake store; a test program has them once. */
#ifndef TESTS_WEB_FILES_MEMBERS_H
#define TESTS_WEB_FILES_MEMBERS_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "tests/tsdb/bucket/world.h"
#include "web/files/kept.h"

#define DAY NS_PER_DAY
#define BYTES STR("main;f 3\n")

struct member {
	char dir[64];
	struct kept *k;
	struct kept_options o;
};

static struct member a, c;
static struct arena arena;

static inline bool member_open(struct member *m)
{
	if (!m->dir[0]) {
		snprintf(m->dir, sizeof(m->dir), "/tmp/epi_kept_XXXXXX");
		if (!mkdtemp(m->dir))
			abort();
	}
	m->o.dir = m->dir;
	return !kept_open(&m->o, &m->k, &err);
}

static inline void member_close(struct member *m)
{
	kept_close(m->k);
	m->k = NULL;
}

static inline void member_end(struct member *m)
{
	member_close(m);
	if (m->dir[0])
		CHECK(!fs_remove_tree(&fs_posix, m->dir, NULL));
}

/* The thread of a member lists once, at its start: tests say when else. */
static inline void member_init(struct member *m)
{
	*m = (struct member){ .o = { .fs = &fs_posix,
							  .bytes_max = 1000,
							  .time_max_ns = 100 * DAY,
							  .bucket = b,
							  .removes = true,
							  .look_ns = 3600 * NS_PER_S,
							  .rest_ns = 1 } };
}

static inline bool begin(void)
{
	arena_init(&arena, 64u << 20);
	if (!world_start())
		return false;
	member_init(&a);
	member_init(&c);
	return true;
}

static inline void end(void)
{
	member_end(&a);
	member_end(&c);
	arena_release(&arena);
	world_stop();
}

static inline int64_t now(void)
{
	return clock_now_ns();
}

static inline enum err_code put(struct member *m, const char *name, struct kept_file *out)
{
	return kept_put(m->k, str_of(name), BYTES, DAY, now(), out, &err);
}

/* ERR_OK only with the bytes that were kept. */
static inline enum err_code get(struct member *m, const char *id)
{
	struct str bytes = STR("");
	struct kept_file f;
	enum err_code rc = kept_get(m->k, str_of(id), now(), &arena, &f, &bytes, &err);

	if (!rc && !str_eq(bytes, BYTES))
		CHECK_FAIL("%s: other bytes", id);
	return rc;
}

static inline size_t listed(struct member *m, struct kept_listing *l)
{
	CHECK_OK(kept_list(m->k, now(), &arena, l, &err), &err);
	return l->n;
}

static inline void path_of(
	const struct member *m, const char *id, const char *suffix, char out[200])
{
	snprintf(out, 200, "%s/%.32s.%s", m->dir, id, suffix);
}

static inline bool has_copy(const struct member *m, const char *id)
{
	char path[200];

	path_of(m, id, "cached", path);
	return fs_exists(path);
}

/* As it is in the fake, with the bucket's prefix. */
static inline void key_of(const char *id, char out[400])
{
	out[0] = '\0';
	mutex_lock(&fake.lock);
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++) {
		struct str key = buf_str(&fake.objects[i].key);

		if (fake.objects[i].used && str_find(key, str_of(id)) >= 0)
			snprintf(out, 400, STR_FMT, STR_ARG(key));
	}
	mutex_unlock(&fake.lock);
}

static inline unsigned objects(void)
{
	unsigned n = 0;

	mutex_lock(&fake.lock);
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		n += fake.objects[i].used;
	mutex_unlock(&fake.lock);
	return n;
}

static inline unsigned requests(enum bucket_kind kind)
{
	struct bucket_usage u;

	bucket_get_usage(b, &u);
	return (unsigned)u.kinds[kind].requests;
}

static inline void store_is_away(bool is)
{
	mutex_lock(&fake.lock);
	fake.limited = is;
	fake.left = 0;
	mutex_unlock(&fake.lock);
}

/* The client gives up soon: for tests in which the store goes away. */
static inline bool begin_impatient(void)
{
	arena_init(&arena, 64u << 20);
	if (!world_fake())
		return false;
	config.attempts_max = 2;
	config.pause_ns = config.pause_max_ns = NS_PER_MS;
	if (bucket_open(&config, &b, &err))
		return false;
	member_init(&a);
	member_init(&c);
	return true;
}

static inline bool flip(const char *path)
{
	int fd = open(path, O_RDWR);
	bool done;
	struct stat st;
	char last = 0;

	done = fd >= 0 && !fstat(fd, &st) && pread(fd, &last, 1, st.st_size - 1) == 1;
	last ^= 1;
	done = done && pwrite(fd, &last, 1, st.st_size - 1) == 1;
	close(fd);
	return done;
}

#endif
