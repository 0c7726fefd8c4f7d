/*
 * epitool tsdb repair: does what the start of a server would do to a data directory that no server
 * has open, and lists the losses. --accept: a person knows of them, and queries need not warn any
 * more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/self/flags.h"
#include "cmd/epitool/epitool.h"
#include "tsdb/db.h"

static int repair_fail(const struct err *err)
{
	fprintf(stderr, "epitool: error: %s\n", err->msg);
	return EXIT_FAILED;
}

static enum err_code repair_open_db(const char *dir, struct db **out, struct err *err)
{
	struct db_options o;
	enum err_code rc;

	if (!fs_exists(dir))
		return err_set(err, ERR_NOT_FOUND, "%s: no such directory", dir);
	fs_hide_from_others(); /* as the server does */
	db_options_default(&o);
	o.dir = dir;
	o.retention_ns = 0; /* removes damaged data only */
	o.no_compaction = true;
	if ((rc = db_open(&o, out, err)) == ERR_UNAVAILABLE)
		return err_set(err, rc,
			"%s is in use: stop its server first, or ask it, with"
			" --web.enable-admin-api: POST /api/v1/admin/tsdb/accept_losses",
			dir);
	return rc;
}

/* Losses that are still not accepted are a failure. */
static int repair_print(struct db *db)
{
	struct buf out = { 0 };
	struct loss *v;
	struct arena a;
	struct err err;
	size_t n, left = 0;

	arena_init(&a, 0);
	if (db_losses(db, &a, &v, &n, &err)) {
		arena_release(&a);
		return repair_fail(&err);
	}
	for (size_t i = 0; i < n; i++) {
		loss_print(&v[i], &out);
		buf_add_cstr(&out, v[i].accepted ? " (accepted)\n" : "\n");
		left += !v[i].accepted;
	}
	buf_printf(&out, "%zu %s, %zu not accepted\n", n, n == 1 ? "loss" : "losses", left);
	fwrite(out.ptr, 1, out.len, stdout);
	buf_release(&out);
	arena_release(&a);
	return left ? EXIT_FAILED : 0;
}

static enum err_code repair_read_numbers(
	const struct flag_list *list, uint64_t *numbers, struct err *err)
{
	for (size_t i = 0; i < list->n; i++)
		if (!str_to_u64(str_of(list->v[i]), &numbers[i]))
			return err_set(err, ERR_INVALID, "--loss: \"%s\" is not a number", list->v[i]);
	return ERR_OK;
}

int tsdb_repair(int argc, char **argv)
{
	bool accept = false;
	struct flag_list list = { 0 };
	/* clang-format off */
	struct flag flags[] = {
		{ "accept", FLAG_BOOL, &accept, NULL,
			"Queries stop warning of what is lost now." },
		{ "loss", FLAG_LIST, &list, NULL,
			"With --accept: this one, by its number; may be given more than once." },
	};
	/* clang-format on */
	uint64_t numbers[FLAG_LIST_MAX];
	struct db *db = NULL;
	struct err err;
	const char *dir;
	size_t accepted;
	int rc = tsdb_flags(flags, 2, argc, argv, "tsdb repair [--accept] [DIR]",
		"What was lost. DIR must not be that of a running server.", &dir);

	if (rc >= 0)
		return rc;
	if (repair_read_numbers(&list, numbers, &err)) {
		repair_fail(&err);
		return EXIT_USAGE;
	}
	if (list.n && !accept) {
		fprintf(stderr, "epitool: error: --loss goes with --accept\n");
		return EXIT_USAGE;
	}
	if (repair_open_db(dir, &db, &err))
		return repair_fail(&err);
	rc = accept && db_accept_losses(db, numbers, list.n, &accepted, &err) ? repair_fail(&err) :
																			repair_print(db);
	db_close(db);
	return rc;
}
