#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/damage/damage.h"

#define FILE_MAX (64u << 20)
#define TRIES 200

const char *const harm_names[HARM_KINDS] = { "flip", "flips", "cut", "empty", "zero", "zero-all",
	"noise", "append", "take-out", "remove", "swap", "other", "foreign", "older", "rename" };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lock files and LevelDB's text logs hold no data. */
static bool holds_nothing(const struct tree_file *f)
{
	const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;

	return !strcmp(name, "lock") || !strcmp(name, "LOCK") || !strncmp(name, "LOG", 3);
}

enum err_code harms_init(struct harms *h, const char *dir, struct err *err)
{
	char now[400];
	enum err_code rc;
	size_t n = 0;

	*h = (struct harms){ .dir = dir };
	snprintf(now, sizeof(now), "%s/now", dir);
	if ((rc = tree_list(now, &h->tree, err)))
		return rc;
	if (!(h->kinds = calloc(h->tree.n, sizeof(*h->kinds))))
		return err_set(err, ERR_NOMEM, "out of memory");
	for (size_t i = 0; i < h->tree.n; i++)
		if (!holds_nothing(&h->tree.v[i]))
			h->kinds[n++] = h->tree.v[i].kind;
	qsort(h->kinds, n, sizeof(*h->kinds), by_text);
	for (size_t i = 0; i < n; i++)
		if (!i || strcmp(h->kinds[i], h->kinds[i - 1]))
			h->kinds[h->kinds_n++] = h->kinds[i];
	return ERR_OK;
}

void harms_release(struct harms *h)
{
	tree_release(&h->tree);
	free(h->kinds);
	*h = (struct harms){ 0 };
}

/* ---- bytes of one file ---- */

static uint64_t below(struct draw *d, uint64_t n)
{
	return (((uint64_t)draw(d, 1u << 30) << 30) + draw(d, 1u << 30)) % n;
}

/* Somewhere; small files and the ends of large ones as often as their middle. */
static uint64_t place(struct draw *d, uint64_t size)
{
	uint64_t end = size < 128 ? size : 128;

	switch (draw(d, 4)) {
	case 0:
		return below(d, end);
	case 1:
		return size - 1 - below(d, end);
	default:
		return below(d, size);
	}
}

static void fill_noise(struct draw *d, char *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		p[i] = (char)draw(d, 256);
}

static uint64_t some_bytes(struct draw *d, uint64_t rest)
{
	uint64_t n = 1 + below(d, draw(d, 2) ? 16 : 8192);

	return n < rest ? n : rest;
}

static void harm_bytes(enum harm how, struct buf *b, struct draw *d, struct buf *what)
{
	uint64_t at = b->len ? place(d, b->len) : 0, n = some_bytes(d, b->len - at), flips;
	char noise[64];

	buf_printf(what, " at %d of %d", (int)at, (int)b->len);
	switch (how) {
	case HARM_FLIP:
		b->ptr[at] ^= (char)(1 << draw(d, 8));
		return;
	case HARM_FLIPS:
		for (flips = 2 + draw(d, 60); flips; flips--)
			b->ptr[place(d, b->len)] ^= (char)(1 << draw(d, 8));
		return;
	case HARM_CUT:
		b->len = at;
		return;
	case HARM_EMPTY:
		b->len = 0;
		return;
	case HARM_ZERO:
		memset(b->ptr + at, 0, n);
		buf_printf(what, ", %d bytes", (int)n);
		return;
	case HARM_ZERO_ALL:
		memset(b->ptr, 0, b->len);
		return;
	case HARM_NOISE:
		fill_noise(d, b->ptr + at, n);
		buf_printf(what, ", %d bytes", (int)n);
		return;
	case HARM_APPEND:
		n = 1 + draw(d, sizeof(noise));
		if (draw(d, 2))
			fill_noise(d, noise, n);
		else
			memset(noise, 0, n);
		buf_add(b, noise, n);
		return;
	case HARM_TAKE_OUT:
		memmove(b->ptr + at, b->ptr + at + n, b->len - at - n);
		b->len -= n;
		buf_printf(what, ", %d bytes", (int)n);
		return;
	default:
		abort();
	}
}

static enum err_code put(const char *path, struct str content, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n = fd < 0 ? -1 : write(fd, content.ptr, content.len);

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)content.len ? ERR_OK : err_errno(err, errno, "write %s", path);
}

/* ---- whole files and directories ---- */

struct harming {
	const struct harms *h;
	const struct tree_file *f, *other; /* other: of the same kind, and another; or NULL */
	const struct tree_file *foreign; /* of another kind, as f a file or a directory; or NULL */
	struct arena a;
	const char *path;
	struct draw *d;
	struct buf what;
};

static const char *path_in(struct harming *x, const char *dir, const struct tree_file *f)
{
	return arena_printf(&x->a, "%s/%s", dir, f->path);
}

static enum err_code remove_path(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return err_errno(err, errno, "stat %s", path);
	if (S_ISDIR(st.st_mode))
		return fs_remove_tree(&fs_posix, path, err);
	return unlink(path) ? err_errno(err, errno, "unlink %s", path) : ERR_OK;
}

static enum err_code replace(struct harming *x, const char *by, struct err *err)
{
	enum err_code rc = remove_path(x->path, err);

	return rc ? rc : tree_copy(by, x->path, err);
}

static enum err_code swap(struct harming *x, const char *with, struct err *err)
{
	const char *aside = arena_printf(&x->a, "%s.aside", x->path);

	if (rename(x->path, aside) || rename(with, x->path) || rename(aside, with))
		return err_errno(err, errno, "swap %s and %s", x->path, with);
	return ERR_OK;
}

/* As people rename files: a suffix, or one other character. */
static enum err_code rename_it(struct harming *x, struct err *err)
{
	static const char *const ends[] = { "x", ".bak", "~", ".tmp", ".old" };
	char *to = arena_printf(&x->a, "%s", x->path);
	size_t name = (size_t)(strrchr(to, '/') + 1 - to), n = strlen(to) - name;

	if (draw(x->d, 2))
		to = arena_printf(&x->a, "%s%s", x->path, ends[draw(x->d, 5)]);
	else
		to[name + draw(x->d, (uint32_t)n)] = "0123456789ABCDEF"[draw(x->d, 16)];
	buf_printf(&x->what, " to %s", strrchr(to, '/') + 1);
	if (fs_exists(to))
		return err_set(err, ERR_EXISTS, "%s is there", to);
	return rename(x->path, to) ? err_errno(err, errno, "rename %s", x->path) : ERR_OK;
}

/* ERR_EXISTS, ERR_NOT_FOUND: not this one; nothing was done. */
static enum err_code harm_one(
	struct harming *x, const char *to, enum harm how, struct buf *content, struct err *err)
{
	const char *older;
	enum err_code rc;

	buf_printf(&x->what, "%s: %s", x->f->path, harm_names[how]);
	switch (how) {
	case HARM_REMOVE:
		return remove_path(x->path, err);
	case HARM_RENAME:
		return rename_it(x, err);
	case HARM_SWAP:
	case HARM_OTHER:
		if (!x->other)
			return ERR_NOT_FOUND;
		buf_printf(&x->what, " %s", x->other->path);
		return how == HARM_SWAP ? swap(x, path_in(x, to, x->other), err) :
								  replace(x, path_in(x, to, x->other), err);
	case HARM_FOREIGN: /* from the undamaged directory: it may be below what it replaces */
		if (!x->foreign)
			return ERR_NOT_FOUND;
		buf_printf(&x->what, " %s", x->foreign->path);
		return replace(x, arena_printf(&x->a, "%s/now/%s", x->h->dir, x->foreign->path), err);
	case HARM_OLDER:
		older = arena_printf(
			&x->a, "%s/older-%d/%s", x->h->dir, (int)draw(x->d, DATA_OLDER), x->f->path);
		buf_printf(&x->what, " %s", older + strlen(x->h->dir));
		return fs_exists(older) ? replace(x, older, err) : ERR_NOT_FOUND;
	default:
		break;
	}
	if (x->f->is_dir || (!x->f->size && how != HARM_APPEND))
		return ERR_NOT_FOUND;
	if ((rc = fs_read_file(x->path, FILE_MAX, content, err)))
		return rc;
	harm_bytes(how, content, x->d, &x->what);
	return put(x->path, buf_str(content), err);
}

static size_t nth_of_kind(const struct harms *h, const char *kind, size_t nth)
{
	for (size_t i = 0;; i++)
		if (!strcmp(h->tree.v[i].kind, kind) && nth-- == 0)
			return i;
}

static size_t count_of_kind(const struct harms *h, const char *kind)
{
	size_t n = 0;

	for (size_t i = 0; i < h->tree.n; i++)
		n += !strcmp(h->tree.v[i].kind, kind);
	return n;
}

static const struct tree_file *any_of_kind(const struct harms *h, size_t kind, struct draw *d)
{
	const char *name = h->kinds[kind];

	return &h->tree.v[nth_of_kind(h, name, draw(d, (uint32_t)count_of_kind(h, name)))];
}

static size_t choose_kind(const struct harms *h, const char *only, struct draw *d)
{
	size_t kind;

	do
		kind = draw(d, (uint32_t)h->kinds_n);
	while (only && !strstr(h->kinds[kind], only));
	return kind;
}

/* How many bytes two paths share. */
static size_t same_bytes(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/* Half of the time that of f's own block or window: both say they are its. */
static const struct tree_file *foreign_of_kind(
	const struct harms *h, size_t kind, const struct tree_file *f, struct draw *d)
{
	const struct tree_file *best = any_of_kind(h, kind, d);

	if (draw(d, 2))
		return best;
	for (size_t i = 0; i < h->tree.n; i++)
		if (!strcmp(h->tree.v[i].kind, best->kind) &&
			same_bytes(h->tree.v[i].path, f->path) > same_bytes(best->path, f->path))
			best = &h->tree.v[i];
	return best;
}

static bool fits_as_foreign(const struct tree_file *f, const struct tree_file *in_place_of)
{
	return strcmp(f->kind, in_place_of->kind) != 0 && f->is_dir == in_place_of->is_dir;
}

/* ERR_NOT_FOUND: a file does not take a directory's place. */
enum err_code harm_pair(const struct harms *h, const char *to, size_t pair, struct draw *d,
	struct harm_done *out, struct err *err)
{
	size_t kind = pair / h->kinds_n;
	struct harming x = { .h = h, .d = d, .f = any_of_kind(h, kind, d) };
	enum err_code rc = ERR_NOT_FOUND;

	x.foreign = foreign_of_kind(h, pair % h->kinds_n, x.f, d);
	arena_init(&x.a, 0);
	out->kind = kind;
	out->how = HARM_FOREIGN;
	x.path = path_in(&x, to, x.f);
	if (fits_as_foreign(x.foreign, x.f))
		rc = harm_one(&x, to, HARM_FOREIGN, NULL, err);
	snprintf(out->what, sizeof(out->what), STR_FMT, STR_ARG(buf_str(&x.what)));
	buf_release(&x.what);
	arena_release(&x.a);
	return rc;
}

enum err_code harm_do(const struct harms *h, const char *to, const char *only, struct draw *d,
	struct harm_done *out, struct err *err)
{
	size_t kind = choose_kind(h, only, d);
	struct harming x = { .h = h, .d = d, .f = any_of_kind(h, kind, d) };
	struct buf content = { 0 };
	enum err_code rc = ERR_NOT_FOUND;

	arena_init(&x.a, 0);
	x.other = any_of_kind(h, kind, d);
	if (x.other == x.f)
		x.other = NULL;
	x.foreign = foreign_of_kind(h, choose_kind(h, NULL, d), x.f, d);
	if (!fits_as_foreign(x.foreign, x.f))
		x.foreign = NULL;
	x.path = path_in(&x, to, x.f);
	out->kind = kind;
	for (int i = 0; i < TRIES && (rc == ERR_NOT_FOUND || rc == ERR_EXISTS); i++) {
		buf_clear(&x.what);
		buf_clear(&content);
		out->how = draw(d, HARM_KINDS);
		rc = harm_one(&x, to, out->how, &content, err);
	}
	snprintf(out->what, sizeof(out->what), STR_FMT, STR_ARG(buf_str(&x.what)));
	buf_release(&x.what);
	buf_release(&content);
	arena_release(&x.a);
	return rc;
}
