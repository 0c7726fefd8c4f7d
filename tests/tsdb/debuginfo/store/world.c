#include "tests/tsdb/debuginfo/store/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"

int64_t now_s = T0_S;

static int64_t fixed_now(void)
{
	return now_s * NS_PER_S;
}

const struct debuginfo_options plain = { .now_ns = fixed_now, .idle_ns = NS_PER_HOUR };

char *dir_new(void)
{
	static char dir[64];

	now_s = T0_S;
	snprintf(dir, sizeof(dir), "/tmp/epi_dbgstore_XXXXXX");
	return mkdtemp(dir);
}

void dir_gone(const char *dir)
{
	if (fs_remove_tree(&fs_posix, dir, NULL))
		abort();
}

struct debuginfo_id gnu(const char *text)
{
	struct debuginfo_id id;

	if (debuginfo_id_init(&id, DEBUGINFO_GNU, str_of(text), NULL))
		abort();
	return id;
}

enum err_code upload(struct debuginfo_store *s, const char *text, enum debuginfo_kind kind,
	const char *bytes, struct err *err)
{
	struct debuginfo_offer offer = { .kind = kind, .origin = DEBUGINFO_UPLOAD };
	struct debuginfo_id id = gnu(text);
	struct debuginfo_upload *u;
	char path[32];
	enum err_code rc;

	snprintf(path, sizeof(path), "/bin/%s", text);
	offer.path = str_of(path);
	if ((rc = debuginfo_upload_begin(s, &id, &offer, &u, err)))
		return rc;
	if ((rc = debuginfo_upload_append(u, str_of(bytes), err))) {
		debuginfo_upload_cancel(u);
		return rc;
	}
	return debuginfo_upload_finish(u, err);
}

enum err_code begin(struct debuginfo_store *s, const struct debuginfo_id *id,
	struct debuginfo_upload **out, struct err *err)
{
	const struct debuginfo_offer offer = { .kind = DEBUGINFO_FULL, .origin = DEBUGINFO_UPLOAD };

	return debuginfo_upload_begin(s, id, &offer, out, err);
}

/* The next of the queue becomes an index of these bytes. */
enum err_code extract(
	struct debuginfo_store *s, const char *index, enum debuginfo_quality q, struct err *err)
{
	return extract_found(s, index, &(struct debuginfo_found){ .quality = q }, err);
}

enum err_code extract_found(struct debuginfo_store *s, const char *index,
	const struct debuginfo_found *found, struct err *err)
{
	struct debuginfo_job *j;
	enum err_code rc;

	if ((rc = debuginfo_job_next(s, &j, err)))
		return rc;
	if (write(j->out_fd, index, strlen(index)) != (ssize_t)strlen(index))
		abort();
	return debuginfo_job_publish(j, found, err);
}

const char *wants(struct debuginfo_store *s, const char *text, enum debuginfo_kind kind)
{
	static char out[100];
	struct debuginfo_id id = gnu(text);
	const char *reason;
	bool yes = debuginfo_wants(
		s, &id, &(struct debuginfo_offer){ .kind = kind, .origin = DEBUGINFO_UPLOAD }, &reason);

	snprintf(out, sizeof(out), "%s: %s", yes ? "yes" : "no", reason);
	return out;
}

size_t files_in(const char *dir, const char *suffix)
{
	struct str *names;
	struct arena a;
	size_t n = 0, found = 0;

	arena_init(&a, 0);
	if (!fs_list(dir, &a, &names, &n, NULL))
		for (size_t i = 0; i < n; i++)
			found += str_has_suffix(names[i], str_of(suffix));
	arena_release(&a);
	return found;
}

void spoil(const char *dir, const char *name, off_t at)
{
	char path[128], c;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR);
	if (fd < 0 || fstat(fd, &st) || pread(fd, &c, 1, st.st_size + at) != 1)
		abort();
	c ^= 4;
	if (pwrite(fd, &c, 1, st.st_size + at) != 1)
		abort();
	close(fd);
}
