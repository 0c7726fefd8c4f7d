/*
 * dist_parts DIR ARCHITECTURE DISTRIBUTION: writes what packages have beside the programs and is
 * made of the programs' own tables: manual pages and bills of materials. Run it at the top of the
 * tree; it reads the page's lock file.
 */
#include <stdio.h>

#include "base/fs.h"
#include "base/log.h"
#include "cmd/dist/man_page.h"
#include "cmd/dist/sbom.h"

#define LOCK_FILE "web/ui/package-lock.json"
#define LOCK_FILE_BYTES_MAX (1u << 24)

static enum err_code dist_save(const char *dir, const char *name, struct buf *out, struct err *err)
{
	char path[1024];
	enum err_code rc;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	rc = buf_failed(out) ? err_nomem(err, name) : fs_write_file(&fs_posix, path, buf_str(out), err);
	buf_clear(out);
	return rc;
}

static enum err_code dist_save_pages(const char *dir, struct err *err)
{
	struct buf out = { 0 };
	enum err_code rc;

	if (!(rc = man_page_write_server(&out, err)) &&
		!(rc = dist_save(dir, "epimetheus.1", &out, err)) && !(rc = man_page_write_tool(&out, err)))
		rc = dist_save(dir, "epitool.1", &out, err);
	buf_release(&out);
	return rc;
}

static enum err_code dist_save_sboms(
	const char *dir, const char *architecture, const char *distribution, struct err *err)
{
	struct buf lock = { 0 }, out = { 0 };
	struct sbom s = { 0 };
	enum err_code rc;

	if ((rc = fs_read_file(LOCK_FILE, LOCK_FILE_BYTES_MAX, &lock, err)) ||
		(rc = sbom_collect(&s, architecture, distribution, buf_str(&lock), err)))
		goto done;
	sbom_write_spdx(&out, &s);
	if ((rc = dist_save(dir, "sbom.spdx.json", &out, err)))
		goto done;
	sbom_write_cyclonedx(&out, &s);
	rc = dist_save(dir, "sbom.cdx.json", &out, err);
done:
	sbom_release(&s);
	buf_release(&lock);
	buf_release(&out);
	return rc;
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	enum err_code rc;

	log_set(LOG_WARN, LOG_LOGFMT);
	if (argc != 4) {
		fprintf(stderr, "usage: dist_parts DIR ARCHITECTURE DISTRIBUTION\n");
		return 2;
	}
	if (!(rc = dist_save_pages(argv[1], &err)))
		rc = dist_save_sboms(argv[1], argv[2], argv[3], &err);
	if (rc)
		fprintf(stderr, "dist_parts: %s\n", err.msg);
	return rc ? 1 : 0;
}
