#include "tests/tsdb/kept.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define FILE_MAX (64u << 20)

const char *const kept_damage_names[KEPT_DAMAGES] = { "flipped", "zeroed", "cut", "removed" };

/* A failure here is one of the machine, not of the program. */
static void require(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

static char *path_of(const struct kept *k, const char *below)
{
	char *path = NULL;

	require(asprintf(&path, "%s%s", k->dir, below) >= 0, below);
	return path;
}

static void read_dir(struct kept *k, const char *below)
{
	char *dir = path_of(k, below);
	struct str *names;
	struct arena a;
	size_t n;

	arena_init(&a, 0);
	require(!fs_list(dir, &a, &names, &n, NULL), dir);
	for (size_t i = 0; i < n; i++) {
		char *path = arena_printf(&a, "%s/" STR_FMT, dir, STR_ARG(names[i]));
		struct kept_file f = { .path = strdup(path + strlen(k->dir)) };
		struct stat st;

		require(lstat(path, &st) == 0, path);
		f.is_dir = S_ISDIR(st.st_mode);
		require(f.is_dir || !fs_read_file(path, FILE_MAX, &f.bytes, NULL), path);
		if (k->n == k->cap) {
			k->cap = k->cap ? k->cap * 2 : 64;
			k->v = realloc(k->v, k->cap * sizeof(*k->v));
			require(k->v != NULL, path);
		}
		k->v[k->n++] = f;
		if (f.is_dir)
			read_dir(k, f.path);
	}
	arena_release(&a);
	free(dir);
}

void kept_read(struct kept *k, const char *dir)
{
	*k = (struct kept){ .dir = strdup(dir) };
	read_dir(k, "");
}

static void write_file(const char *path, struct str bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	require(fd >= 0 && write(fd, bytes.ptr, bytes.len) == (ssize_t)bytes.len, path);
	close(fd);
}

void kept_put_back(const struct kept *k)
{
	require(!fs_remove_tree(&fs_posix, k->dir, NULL), k->dir);
	require(mkdir(k->dir, 0755) == 0, k->dir);
	for (size_t i = 0; i < k->n; i++) {
		char *path = path_of(k, k->v[i].path);

		if (k->v[i].is_dir)
			require(mkdir(path, 0755) == 0, path);
		else
			write_file(path, buf_str(&k->v[i].bytes));
		free(path);
	}
}

void kept_release(struct kept *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->v[i].path);
		buf_release(&k->v[i].bytes);
	}
	free(k->v);
	free(k->dir);
}

void kept_damage(
	const struct kept *k, const struct kept_file *f, enum kept_damage kind, uint64_t at, uint64_t n)
{
	char *path = path_of(k, f->path), byte;
	int fd = -1;

	n = at + n < f->bytes.len ? n : f->bytes.len - at;
	if (kind == KEPT_REMOVE)
		require(unlink(path) == 0, path);
	else
		require((fd = open(path, O_RDWR)) >= 0, path);
	if (kind == KEPT_CUT)
		require(ftruncate(fd, (off_t)at) == 0, path);
	for (uint64_t i = at; i < at + n && (kind == KEPT_ZERO || kind == KEPT_FLIP); i++) {
		byte = kind == KEPT_ZERO ? 0 : (char)(f->bytes.ptr[i] ^ (1 << i % 8));
		require(pwrite(fd, &byte, 1, (off_t)i) == 1, path);
		if (kind == KEPT_FLIP)
			break;
	}
	if (fd >= 0)
		close(fd);
	free(path);
}

void kept_exchange(const struct kept *k, const struct kept_file *a, const struct kept_file *b)
{
	char *first = path_of(k, a->path), *second = path_of(k, b->path);

	write_file(first, buf_str(&b->bytes));
	write_file(second, buf_str(&a->bytes));
	free(first);
	free(second);
}
