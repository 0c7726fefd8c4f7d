#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/damage/damage.h"

#define FILE_MAX (64u << 20)
#define ULID_CHARS 26u

static enum err_code put_file(const char *path, struct str content, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n = fd < 0 ? -1 : write(fd, content.ptr, content.len);

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)content.len ? ERR_OK : err_errno(err, errno, "write %s", path);
}

enum err_code tree_copy(const char *from, const char *to, struct err *err)
{
	struct buf content = { 0 };
	struct arena a;
	struct str *names;
	struct stat st;
	enum err_code rc;
	size_t n = 0;

	if (lstat(from, &st))
		return err_errno(err, errno, "stat %s", from);
	arena_init(&a, 0);
	if (!S_ISDIR(st.st_mode)) {
		if (!(rc = fs_read_file(from, FILE_MAX, &content, err)))
			rc = put_file(to, buf_str(&content), err);
	} else if (mkdir(to, 0755) && errno != EEXIST) {
		rc = err_errno(err, errno, "mkdir %s", to);
	} else {
		rc = fs_list(from, &a, &names, &n, err);
	}
	for (size_t i = 0; i < n && !rc; i++)
		rc = tree_copy(arena_printf(&a, "%s/" STR_FMT, from, STR_ARG(names[i])),
			arena_printf(&a, "%s/" STR_FMT, to, STR_ARG(names[i])), err);
	buf_release(&content);
	arena_release(&a);
	return rc;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_ulid(const char *s)
{
	return strspn(s, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ULID_CHARS;
}

static char *kind_of(const char *path)
{
	struct buf out = { 0 };
	char *kind;

	while (*path) {
		if (is_ulid(path)) {
			buf_add_cstr(&out, "ULID");
			path += ULID_CHARS;
		} else if (is_digit(*path)) {
			buf_add_char(&out, 'N');
			while (is_digit(*path))
				path++;
		} else {
			buf_add_char(&out, *path++);
		}
	}
	buf_add_char(&out, '\0');
	kind = buf_failed(&out) ? NULL : strdup(out.ptr);
	buf_release(&out);
	return kind;
}

static enum err_code add_file(
	struct tree *t, const char *path, const struct stat *st, struct err *err)
{
	struct tree_file *v;

	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 64;
		if (!(v = realloc(t->v, t->cap * sizeof(*v))))
			return err_set(err, ERR_NOMEM, "out of memory");
		t->v = v;
	}
	v = &t->v[t->n++];
	*v = (struct tree_file){ strdup(path), kind_of(path), (uint64_t)st->st_size,
		S_ISDIR(st->st_mode) };
	return v->path && v->kind ? ERR_OK : err_set(err, ERR_NOMEM, "out of memory");
}

static enum err_code list_below(
	const char *dir, const char *below, struct tree *out, struct err *err)
{
	struct arena a;
	struct str *names;
	struct stat st;
	enum err_code rc;
	size_t n = 0;

	arena_init(&a, 0);
	rc = fs_list(arena_printf(&a, "%s/%s", dir, below), &a, &names, &n, err);
	for (size_t i = 0; i < n && !rc; i++) {
		const char *path = arena_printf(
			&a, "%s%s" STR_FMT, below, *below ? "/" : "", STR_ARG(names[i]));

		if (lstat(arena_printf(&a, "%s/%s", dir, path), &st))
			rc = err_errno(err, errno, "stat %s/%s", dir, path);
		else if (!(rc = add_file(out, path, &st, err)) && S_ISDIR(st.st_mode))
			rc = list_below(dir, path, out, err);
	}
	arena_release(&a);
	return rc;
}

enum err_code tree_list(const char *dir, struct tree *out, struct err *err)
{
	*out = (struct tree){ 0 };
	return list_below(dir, "", out, err);
}

void tree_release(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].path);
		free(t->v[i].kind);
	}
	free(t->v);
	*t = (struct tree){ 0 };
}
