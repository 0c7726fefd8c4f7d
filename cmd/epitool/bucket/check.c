/* bucket verify, repair: what manifests name, and manifests that are lost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/self/flags.h"
#include "cmd/epitool/bucket/bucket_command.h"
#include "cmd/epitool/bucket/place.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"
#include "tsdb/cluster/inspect/inspect.h"

static void objects_check_print_line(void *ctx, const char *line)
{
	printf("%s\n", line);
}

static bool objects_check_is_interrupted(void *ctx)
{
	return atomic_load(&interrupted);
}

/* ---- verify ---- */

static enum err_code objects_check_verify_all(
	struct inspect *inspect, const char *only, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct str *names;
	struct arena a;
	size_t n;

	if (only)
		return inspect_verify(inspect, str_of(only), err);
	arena_init(&a, 0);
	if (!(rc = shard_list_names(inspect->bucket, &a, &names, &n, err)))
		for (size_t i = 0; i < n && !rc; i++)
			rc = inspect_verify(inspect, names[i], err);
	arena_release(&a);
	return rc;
}

static enum err_code objects_check_verify(
	struct inspect *inspect, const char *only, bool deep, struct err *err)
{
	enum err_code rc;
	struct err why;
	char *dir;

	if (!deep)
		return objects_check_verify_all(inspect, only, err);
	if (asprintf(&dir, "%s/epitool-XXXXXX", place_temp_dir()) < 0)
		return err_nomem(err, "verify");
	if (!mkdtemp(dir)) {
		rc = err_set(err, ERR_IO, "%s: no directory for copies", dir);
		free(dir);
		return rc;
	}
	inspect->dir = dir;
	rc = objects_check_verify_all(inspect, only, err);
	if (fs_remove_tree(&fs_posix, dir, &why) && !rc)
		rc = err_copy(err, &why);
	free(dir);
	return rc;
}

int objects_verify(int argc, char **argv)
{
	const char *file, *args[1];
	bool deep = false;
	struct flag flags[] = {
		CONFIG_FLAG(&file),
		{ "deep", FLAG_BOOL, &deep, NULL,
			"Copy each block and segment to a temporary directory and check all that is in it." },
	};
	struct inspect x = { .finding = objects_check_print_line,
		.note = objects_check_print_line,
		.stop = objects_check_is_interrupted };
	struct err err;
	enum err_code rc;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"bucket verify [FLAGS] [SHARD]",
		"Reads all that manifests name: is it there, with its size and hash? Objects that no\n"
		"manifest names are listed: they are on their way in or out, or left by a crash.",
		args, 0, 1, &n);
	if (code >= 0)
		return code;
	interrupt_catch();
	if (!(rc = bucket_of_config(file, &x.bucket, &err)))
		rc = objects_check_verify(&x, n ? args[0] : NULL, deep, &err);
	bucket_close(x.bucket);
	if (rc)
		return bucket_command_failed(&err);
	printf("%" PRIu64 " %s verified, %" PRIu64 " objects, %" PRIu64 " bytes, %" PRIu64
		   " %s; %" PRIu64 " without a name\n",
		x.shards, x.shards == 1 ? "shard" : "shards", x.objects, x.bytes, x.findings,
		x.findings == 1 ? "finding" : "findings", x.orphans);
	return x.findings ? EXIT_FAILED : 0;
}

/* ---- repair ---- */

int objects_repair(int argc, char **argv)
{
	const char *file, *args[1];
	bool force = false;
	struct flag flags[] = {
		CONFIG_FLAG(&file),
		{ "force", FLAG_BOOL, &force, NULL,
			"Do not wait a minute to see that no server uses the shard." },
	};
	struct inspect x = { .finding = objects_check_print_line,
		.note = objects_check_print_line,
		.stop = objects_check_is_interrupted };
	struct err err;
	enum err_code rc;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"bucket repair [FLAGS] SHARD",
		"Rebuilds the manifest of a shard, if missing or not readable, from its blocks\n"
		"and segments. Names what it could not take: the shard removes that when it starts.",
		args, 1, 1, &n);
	if (code >= 0)
		return code;
	interrupt_catch();
	if (!(rc = bucket_of_config(file, &x.bucket, &err)))
		rc = inspect_repair(&x, str_of(args[0]), force ? -1 : 0, &err);
	bucket_close(x.bucket);
	if (rc)
		return bucket_command_failed(&err);
	printf("manifest of shard %s written: %" PRIu64 " blocks, %" PRIu64 " objects\n", args[0],
		x.blocks, x.objects);
	return 0;
}
