#include "tsdb/lists/versions.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/map.h"
#include "tsdb/block/block.h"
#include "tsdb/segments/segments.h"

#define WHOLE ((size_t)1 << 30) /* more than any of these files has */
#define NAMES_HEAD_BYTES 17u

/* Place and seed of a file's checksum, a be64. Later versions must keep them. */
enum versions_sum {
	SUM_LAST, /* the last 8 bytes; of all before */
	SUM_LAST_START, /* the same; seed: the window's start, in version 1 none */
	SUM_LAST_OWNER, /* the same; seed: hash of the owner's name, in version 1 none */
	SUM_LENGTH, /* behind as many bytes as the be32 at 1 says */
	SUM_NAMES, /* bytes 9 to 16; seed: the window's start */
};

struct versions_file {
	const char *name; /* or how it ends */
	enum versions_sum sum;
	unsigned newest;
};

static const struct versions_file lists[] = {
	{ "losses", SUM_LAST, LOSSES_VERSION },
	{ "losses.copy", SUM_LAST, LOSSES_VERSION },
	{ "ids", SUM_LAST, IDS_VERSION },
	{ "inventory", SUM_LENGTH, INVENTORY_VERSION },
	{ "inventory.copy", SUM_LENGTH, INVENTORY_VERSION },
};
static const struct versions_file beside_windows[] = {
	{ ".acked", SUM_LAST_START, MARK_VERSION },
	{ ".names", SUM_NAMES, NAMES_VERSION },
	{ ".deleted", SUM_LAST_OWNER, DELETED_VERSION },
	{ ".deleted.copy", SUM_LAST_OWNER, DELETED_VERSION },
};
static const struct versions_file of_blocks[] = {
	{ "deleted", SUM_LAST_OWNER, DELETED_VERSION },
	{ "deleted.copy", SUM_LAST_OWNER, DELETED_VERSION },
};

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

enum err_code versions_refuse(const char *path, unsigned version, unsigned newest, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		"%s: version %u was written by a newer program; this one reads versions up to %u", path,
		version, newest);
}

/* The first bytes of a file; empty if it cannot be read. */
static void versions_read(const char *path, size_t max, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char part[4096];
	ssize_t n = 1;

	buf_clear(out);
	while (fd >= 0 && n > 0 && out->len < max) {
		n = read(fd, part, max - out->len < sizeof(part) ? max - out->len : sizeof(part));
		buf_add(out, part, n > 0 ? (size_t)n : 0);
	}
	if (fd >= 0)
		close(fd);
}

static bool versions_sum_is(struct str bytes, size_t hashed, uint64_t seed)
{
	struct cursor in;

	if (hashed > bytes.len || bytes.len - hashed < 8)
		return false;
	in = cursor_of((struct str){ bytes.ptr + hashed, 8 });
	return cursor_u64be(&in) == hash_bytes(bytes.ptr, hashed, seed);
}

/* owner: the name that the file belongs to, a window's start or a block's ULID. */
static bool versions_is_whole(enum versions_sum sum, struct str bytes, struct str owner)
{
	uint64_t start_ns = 0;
	int64_t start_s;
	struct cursor in;

	if (bytes.len < 9)
		return false;
	if (str_to_i64(owner, &start_s) && start_s >= 0 && start_s <= INT64_MAX / NS_PER_S)
		start_ns = (uint64_t)(start_s * NS_PER_S);
	switch (sum) {
	case SUM_LAST:
		return versions_sum_is(bytes, bytes.len - 8, 0);
	case SUM_LAST_START:
		return versions_sum_is(bytes, bytes.len - 8, start_ns);
	case SUM_LAST_OWNER:
		return versions_sum_is(bytes, bytes.len - 8, hash_bytes(owner.ptr, owner.len, 0));
	case SUM_LENGTH:
		in = cursor_of((struct str){ bytes.ptr + 1, 4 });
		return versions_sum_is(bytes, 5 + (size_t)cursor_u32be(&in), 0);
	case SUM_NAMES:
		return versions_sum_is(bytes, NAMES_HEAD_BYTES - 8, start_ns);
	}
	return false;
}

struct versions_checking {
	struct arena a;
	struct buf bytes;
	struct err *err;
};

static enum err_code versions_check_file(struct versions_checking *c, const struct versions_file *f,
	const char *dir, struct str name, struct str owner)
{
	char *path = path_join(&c->a, str_of(dir), name);
	unsigned version;

	if (!path)
		return arena_fail(&c->a, "versions", c->err);
	/* Mostly the first byte is all that is needed. */
	versions_read(path, 1, &c->bytes);
	if (!c->bytes.len || (version = (unsigned char)c->bytes.ptr[0]) <= f->newest)
		return ERR_OK;
	versions_read(path, f->sum == SUM_NAMES ? NAMES_HEAD_BYTES : WHOLE, &c->bytes);
	if (buf_failed(&c->bytes))
		return err_nomem(c->err, "versions");
	return versions_is_whole(f->sum, buf_str(&c->bytes), owner) ?
		versions_refuse(path, version, f->newest, c->err) :
		ERR_OK;
}

static enum err_code versions_check_segment(
	struct versions_checking *c, const char *dir, struct str name)
{
	char *path = path_join(&c->a, str_of(dir), name);
	struct segment s;
	struct err why;

	if (!path)
		return arena_fail(&c->a, "versions", c->err);
	versions_read(path, SEGMENT_HEAD_BYTES, &c->bytes);
	return segment_parse_head(buf_str(&c->bytes), &s, &why) == ERR_UNSUPPORTED ?
		err_set(c->err, ERR_UNSUPPORTED, "%s: %s", path, why.msg) :
		ERR_OK;
}

static enum err_code versions_check_head(struct versions_checking *c, const char *dir)
{
	char *head = path_join(&c->a, str_of(dir), STR("head"));
	struct str *names;
	size_t n = 0;
	enum err_code rc = ERR_OK;

	if (!head)
		return arena_fail(&c->a, "versions", c->err);
	if (fs_list(head, &c->a, &names, &n, NULL))
		n = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		if (str_find(names[i], STR(SEGMENT_FILE)) >= 0)
			rc = versions_check_segment(c, head, names[i]);
		for (size_t k = 0; k < N_OF(beside_windows) && !rc; k++) {
			const struct versions_file *f = &beside_windows[k];
			struct str owner = names[i];

			if (!str_has_suffix(owner, str_of(f->name)))
				continue;
			owner.len -= strlen(f->name);
			rc = versions_check_file(c, f, head, names[i], owner);
		}
	}
	return rc;
}

static enum err_code versions_check_block(
	struct versions_checking *c, const char *blocks, struct str ulid)
{
	char *dir = path_join(&c->a, str_of(blocks), ulid);
	struct block_meta meta;
	enum err_code rc = ERR_OK;
	struct err why;

	if (!dir)
		return arena_fail(&c->a, "versions", c->err);
	if (block_read_meta(dir, &c->a, &meta, &why) == ERR_UNSUPPORTED)
		return err_copy(c->err, &why);
	for (size_t k = 0; k < N_OF(of_blocks) && !rc; k++)
		rc = versions_check_file(c, &of_blocks[k], dir, str_of(of_blocks[k].name), ulid);
	return rc;
}

static enum err_code versions_check_blocks(struct versions_checking *c, const char *dir)
{
	char *blocks = path_join(&c->a, str_of(dir), STR("blocks"));
	struct str *names;
	struct ulid ulid;
	size_t n = 0;
	enum err_code rc = ERR_OK;

	if (!blocks)
		return arena_fail(&c->a, "versions", c->err);
	if (fs_list(blocks, &c->a, &names, &n, NULL))
		n = 0;
	for (size_t i = 0; i < n && !rc; i++)
		if (ulid_parse(names[i], &ulid))
			rc = versions_check_block(c, blocks, names[i]);
	return rc;
}

enum err_code versions_check(const char *dir, bool with_head, struct err *err)
{
	struct versions_checking c = { .err = err };
	enum err_code rc = ERR_OK;

	arena_init(&c.a, 0);
	for (size_t i = 0; i < N_OF(lists) && !rc; i++)
		rc = versions_check_file(&c, &lists[i], dir, str_of(lists[i].name), STR(""));
	if (!rc)
		rc = versions_check_blocks(&c, dir);
	if (!rc && with_head)
		rc = versions_check_head(&c, dir);
	buf_release(&c.bytes);
	arena_release(&c.a);
	return rc;
}
