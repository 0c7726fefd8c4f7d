#include "cmd/epitool/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/tsdb_blocks.h"
#include "tsdb/db.h"
#include "tsdb/lists/inventory.h"
#include "tsdb/lists/losses.h"

#define LIST_BYTES_MAX (256u << 20)
#define LIST_READS 3

struct verifying {
	struct verify_result *result;
	const struct verify_options *options;
	const char *dir;
};

static int verify_fail(const struct err *err)
{
	fprintf(stderr, "epitool: error: %s\n", err->msg);
	return EXIT_FAILED;
}

static void verify_tell(void *ctx, const char *what)
{
	struct verifying *x = ctx;

	x->result->findings++;
	printf("%s: %s\n", x->dir, what);
}

static int verifying_check_block(void *ctx, struct block *b, const struct err *damaged)
{
	struct verifying *x = ctx;
	struct err err;

	x->dir = block_dir(b);
	x->result->blocks++;
	if (damaged)
		verify_tell(x, damaged->msg);
	return block_verify(b, verify_tell, x, &err) || damaged ? EXIT_FAILED : 0;
}

static bool verify_is_lost(const struct loss *l, size_t n, const struct db_block_status *window)
{
	for (size_t i = 0; i < n; i++)
		if (l[i].min_ns < window->max_ns && l[i].max_ns > window->min_ns)
			return true;
	return false;
}

/*
 * Losses: earlier ones that nobody accepted, and those found now; and windows that are damaged
 * without a loss.
 */
static enum err_code verify_find_losses(
	struct db *db, const char *dir, struct arena *a, struct verifying *all, struct err *err)
{
	struct db_block_status *v;
	struct buf text = { 0 };
	struct loss *losses;
	size_t n, losses_n;
	enum err_code rc;

	if ((rc = db_verify_head(db, err)) || (rc = db_losses(db, a, &losses, &losses_n, err)) ||
		(rc = db_list(db, a, &v, &n, err)))
		return rc;
	all->dir = dir;
	for (size_t i = 0; i < losses_n; i++) {
		if (losses[i].accepted)
			continue;
		buf_clear(&text);
		loss_print(&losses[i], &text);
		buf_add_char(&text, '\0');
		verify_tell(all, buf_failed(&text) ? "a loss" : text.ptr);
	}
	for (size_t i = 0; i < n; i++)
		if (!v[i].ulid[0] && v[i].damaged && !verify_is_lost(losses, losses_n, &v[i]))
			verify_tell(all, "a window of the head is damaged; nothing of it is lost");
	buf_release(&text);
	return ERR_OK;
}

static enum err_code verify_read_list(
	const char *path, bool of_losses, struct arena *a, struct err *err)
{
	struct buf bytes = { 0 };
	struct inventory_entry *entries;
	uint64_t generation, next;
	struct loss *losses;
	enum err_code rc;
	size_t n;

	if (!(rc = fs_read_file(path, LIST_BYTES_MAX, &bytes, err)))
		rc = of_losses ?
			losses_decode(buf_str(&bytes), path, a, &generation, &next, &losses, &n, err) :
			inventory_decode(buf_str(&bytes), path, a, &generation, &entries, &n, err);
	buf_release(&bytes);
	return rc;
}

/* One copy of a list; the database serves from the other one. A server that runs overwrites it in
 * place, so what cannot be read is read again. */
static void verify_list(struct verifying *all, struct arena *a, const char *name)
{
	const struct timespec pause = { .tv_nsec = 100 * NS_PER_MS };
	bool of_losses = str_has_prefix(str_of(name), STR("losses"));
	char *path = arena_printf(a, "%s/%s", all->dir, name);
	struct err err;

	if (!path || !fs_exists(path))
		return;
	for (int i = 0; i < LIST_READS && verify_read_list(path, of_losses, a, &err); i++) {
		if (i + 1 == LIST_READS)
			verify_tell(all, err.msg);
		else
			nanosleep(&pause, NULL);
	}
}

static void verify_lists(struct verifying *all)
{
	static const char *const names[] = { "losses", "losses.copy", "inventory", "inventory.copy" };
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		verify_list(all, &a, names[i]);
	arena_release(&a);
}

static void verify_passed_over(void *ctx, const struct err *why)
{
	verify_tell(ctx, why->msg);
}

static bool verifying_skips(void *ctx, struct str ulid)
{
	const struct verifying *x = ctx;

	return x->options->skip && x->options->skip(x->options->ctx, ulid);
}

/* Writes nothing: the server's next start finds the same losses. */
static int verify_all(struct db *db, const char *dir, struct verifying *all)
{
	struct arena a;
	struct err err;
	int rc;

	verify_lists(all);
	rc = tsdb_each_block(dir, verifying_check_block, verifying_skips, all);
	arena_init(&a, 0);
	if (db && verify_find_losses(db, dir, &a, all, &err))
		rc = verify_fail(&err);
	arena_release(&a);
	return rc;
}

int verify_directory(
	const char *dir, const struct verify_options *options, struct verify_result *out)
{
	const struct verify_options all = { 0 };
	struct verifying x = { out, options ? options : &all, dir };
	struct db_options o;
	struct db *db = NULL;
	enum err_code opened;
	struct err err;
	int rc;

	*out = (struct verify_result){ 0 };
	db_options_default(&o);
	o.dir = dir;
	o.read_only = true;
	o.passed_over = verify_passed_over;
	o.passed_over_ctx = &x;
	if (!fs_exists(dir)) {
		err_set(&err, ERR_NOT_FOUND, "%s: no such directory", dir);
		return verify_fail(&err);
	}
	/* Of a newer program's directory nothing can be said; of any other all that can be read is. */
	if ((opened = db_open(&o, &db, &err)))
		verify_fail(&err);
	out->newer = opened == ERR_UNSUPPORTED;
	if (out->newer)
		return EXIT_FAILED;
	rc = verify_all(db, dir, &x);
	db_close(db);
	return opened || out->findings ? EXIT_FAILED : rc;
}

void verify_print_result(const struct verify_result *r)
{
	printf("%" PRIu64 " %s verified, %" PRIu64 " %s\n", r->blocks,
		r->blocks == 1 ? "block" : "blocks", r->findings,
		r->findings == 1 ? "finding" : "findings");
}

int tsdb_verify(int argc, char **argv)
{
	const char *dir = NULL;
	int rc = tsdb_flags(NULL, 0, argc, argv, "tsdb verify [DIR]",
		"Hashes, order, counts, every row and sum, every symbol.", &dir);
	struct verify_result result;

	if (rc >= 0)
		return rc;
	rc = verify_directory(dir, NULL, &result);
	if (!result.newer && fs_exists(dir))
		verify_print_result(&result);
	return rc;
}
