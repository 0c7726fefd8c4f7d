/*
 * book_parts DIR: writes the parts of the book that the programs' own tables say. Run it at the top
 * of the tree; it reads examples/rules/.
 */
#include <stdio.h>

#include "base/fs.h"
#include "base/log.h"
#include "cmd/book/book.h"
#include "web/openapi/operations.h"

/* clang-format off */
static const struct book_part parts[] = {
	{ "config-file", config_part_write },
	{ "config-global", config_part_write },
	{ "config-scrape", config_part_write },
	{ "config-pprof", config_part_write },
	{ "config-profiles", config_part_write_profiles },
	{ "config-foreign", config_part_write_foreign },
	{ "config-relabel", config_part_write },
	{ "config-http-client", config_part_write },
	{ "config-discovery", config_part_write },
	{ "config-sd-static", config_part_write },
	{ "config-sd-file", config_part_write },
	{ "config-sd-http", config_part_write },
	{ "config-sd-dns", config_part_write },
	{ "config-sd-kubernetes", config_part_write },
	{ "config-sd-consul", config_part_write },
	{ "config-sd-nomad", config_part_write },
	{ "config-sd-docker", config_part_write },
	{ "config-sd-ec2", config_part_write },
	{ "config-sd-filters", config_part_write },
	{ "config-push", config_part_write },
	{ "config-debuginfod", config_part_write },
	{ "config-source-links", config_part_write },
	{ "config-rules", config_part_write },
	{ "config-alerting", config_part_write },
	{ "config-web", config_part_write },
	{ "config-bucket", config_part_write },
	{ "flags-epimetheus", flags_part_write_server },
	{ "epitool", flags_part_write_tool },
	{ "exit-codes", flags_part_write_exits },
	{ "metrics", metrics_part_write },
	{ "alerts", alerts_part_write },
	{ "functions", functions_part_write },
};
/* clang-format on */

static enum err_code book_part_save(const char *dir, const struct book_part *part, struct err *err)
{
	struct buf out = { 0 };
	char path[1024];
	enum err_code rc = part->write(part, &out, err);

	snprintf(path, sizeof(path), "%s/%s.md", dir, part->name);
	if (!rc && buf_failed(&out))
		rc = err_nomem(err, "part");
	if (!rc)
		rc = fs_write_file(&fs_posix, path, buf_str(&out), err);
	buf_release(&out);
	return rc ? err_wrap(err, rc, "part %s", part->name) : ERR_OK;
}

/* The API has a part for each tag of its operations. */
static enum err_code book_part_save_tag(const char *dir, const char *tag, struct err *err)
{
	char name[64];
	const struct book_part part = { name, api_part_write };

	snprintf(name, sizeof(name), API_PART_PREFIX "%s", tag);
	return book_part_save(dir, &part, err);
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	enum err_code rc;

	log_set(LOG_WARN, LOG_LOGFMT);
	if (argc != 2) {
		fprintf(stderr, "usage: book_parts DIR\n");
		return 2;
	}
	rc = config_part_check(&err);
	for (size_t i = 0; !rc && i < sizeof(parts) / sizeof(parts[0]); i++)
		rc = book_part_save(argv[1], &parts[i], &err);
	for (size_t i = 0; !rc && i < operation_tags_n; i++)
		rc = book_part_save_tag(argv[1], operation_tags[i].name, &err);
	if (rc)
		fprintf(stderr, "book_parts: %s\n", err.msg);
	return rc ? 1 : 0;
}
