#include "tsdb/lists/losses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/thread.h"
#include "tsdb/lists/versions.h"

/*
 * The list is small and seldom changes: it is in memory, and each change replaces both files,
 * `losses` and then `losses.copy`, each as a whole. Each has the number of the change, so after a
 * crash between the two the newer one counts.
 */
#define FILE_BYTES_MAX (16u << 20)
#define WHERE_MAX 255u
#define TEXT_MAX 1000u

struct losses_entry {
	struct loss loss;
	char *text; /* where, then text; the strings of `loss` point into it */
};

struct losses {
	struct fs *fs;
	bool read_only;
	char *paths[2];
	struct mutex files; /* taken before lock: held while the files are written */
	struct mutex lock; /* guards the rest */
	struct losses_entry *v; /* ascending by number */
	size_t n, cap;
	uint64_t next_number, generation;
	bool dirty; /* changed since it was written */
};

/* clang-format off */
static const struct {
	const char *name, *sentence;
} kinds[LOSS_KINDS] = {
	[LOSS_WINDOW] = { "window", "all profiles of a window are lost" },
	[LOSS_BLOCK] = { "block", "all profiles of a block are lost" },
	[LOSS_PROFILES] = { "profiles", "profiles are lost" },
	[LOSS_NUMBERS] = { "numbers", "values of numeric series are lost" },
	[LOSS_SERIES] = { "series", "series are lost" },
	[LOSS_SYMBOLS] = { "symbols", "names of frames are lost, and the profiles that use them" },
	[LOSS_SUMS] = { "sums", "stored sums are lost" },
	[LOSS_DELETED] = { "deleted", "deleted profiles may appear again" },
	[LOSS_LEDGER] = { "losses", "earlier losses are unknown" },
	[LOSS_MORE] = { "more", "more losses than the list can hold" },
};
/* clang-format on */

const char *loss_name(enum loss_what what)
{
	return what < LOSS_KINDS ? kinds[what].name : "other";
}

void loss_print(const struct loss *l, struct buf *out)
{
	buf_printf(out, "loss %" PRIu64 ": %s", l->number, kinds[l->what].sentence);
	if (l->min_ns > 0) {
		buf_add_cstr(out, l->max_ns < LOSS_END ? " between " : " after ");
		time_print_rfc3339(out, l->min_ns);
	}
	if (l->max_ns < LOSS_END) {
		buf_add_cstr(out, l->min_ns > 0 ? " and " : " before ");
		time_print_rfc3339(out, l->max_ns);
	}
	buf_printf(out, " (" STR_FMT, STR_ARG(l->where));
	if (l->count)
		buf_printf(out, ", %" PRIu64, l->count);
	buf_printf(out, "): " STR_FMT, STR_ARG(l->text));
}

/* ---- the list ---- */

static struct str losses_cut(struct str s, size_t max)
{
	return (struct str){ s.ptr, s.len < max ? s.len : max };
}

static void losses_release(struct losses *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].text);
	free(l->v);
	l->v = NULL;
	l->n = l->cap = 0;
}

/* Copies where and text; frees the entry's old text. */
static bool losses_entry_set_text(struct losses_entry *e, struct str where, struct str text)
{
	struct buf b = { 0 };

	where = losses_cut(where, WHERE_MAX);
	text = losses_cut(text, TEXT_MAX);
	buf_add_str(&b, where);
	buf_add_str(&b, text);
	buf_add_char(&b, '\0');
	if (buf_failed(&b)) {
		buf_release(&b);
		return false;
	}
	free(e->text);
	e->text = b.ptr;
	e->loss.where = (struct str){ b.ptr, where.len };
	e->loss.text = (struct str){ b.ptr + where.len, text.len };
	return true;
}

static struct losses_entry *losses_append(struct losses *l, const struct loss *from)
{
	struct losses_entry *e;

	if (!array_room(&l->v, l->n, 1, &l->cap))
		return NULL;
	e = &l->v[l->n];
	*e = (struct losses_entry){ .loss = *from };
	if (!losses_entry_set_text(e, from->where, from->text))
		return NULL;
	l->n++;
	return e;
}

static struct losses_entry *losses_find(struct losses *l, enum loss_what what, struct str where)
{
	where = losses_cut(where, WHERE_MAX);
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].loss.what == what && str_eq(l->v[i].loss.where, where))
			return &l->v[i];
	return NULL;
}

/* ---- the files ---- */

static void losses_encode(const struct losses *l, struct buf *b)
{
	buf_add_char(b, LOSSES_VERSION);
	buf_add_u64be(b, l->generation);
	buf_add_varint(b, l->next_number);
	buf_add_varint(b, l->n);
	for (size_t i = 0; i < l->n; i++) {
		const struct loss *e = &l->v[i].loss;

		buf_add_varint(b, e->number);
		buf_add_char(b, (char)e->what);
		buf_add_char(b, e->accepted);
		buf_add_u64be(b, (uint64_t)e->min_ns);
		buf_add_u64be(b, (uint64_t)e->max_ns);
		buf_add_u64be(b, (uint64_t)e->found_ns);
		buf_add_varint(b, e->count);
		buf_add_lenstr(b, e->where);
		buf_add_lenstr(b, e->text);
	}
	buf_add_u64be(b, hash_bytes(b->ptr, b->len, 0));
}

static bool losses_read_entry(struct cursor *in, uint64_t after, struct loss *l)
{
	struct str what, accepted;

	l->number = cursor_varint(in);
	what = cursor_bytes(in, 1);
	accepted = cursor_bytes(in, 1);
	l->min_ns = (int64_t)cursor_u64be(in);
	l->max_ns = (int64_t)cursor_u64be(in);
	l->found_ns = (int64_t)cursor_u64be(in);
	l->count = cursor_varint(in);
	l->where = cursor_lenstr(in);
	l->text = cursor_lenstr(in);
	if (in->bad || (unsigned char)what.ptr[0] >= LOSS_KINDS || l->number <= after)
		return false;
	l->what = (enum loss_what)what.ptr[0];
	l->accepted = accepted.ptr[0] != 0;
	return l->min_ns >= 0 && l->max_ns >= l->min_ns && l->where.len <= WHERE_MAX &&
		l->text.len <= TEXT_MAX;
}

enum err_code losses_decode(struct str bytes, const char *path, struct arena *a,
	uint64_t *generation, uint64_t *next_number, struct loss **entries, size_t *n, struct err *err)
{
	struct cursor in, sum;
	uint64_t last = 0, count;

	if (bytes.len < 19)
		return err_set(err, ERR_CORRUPT, "%s: cut short", path);
	sum = cursor_of((struct str){ bytes.ptr + bytes.len - 8, 8 });
	if (cursor_u64be(&sum) != hash_bytes(bytes.ptr, bytes.len - 8, 0))
		return err_set(err, ERR_CORRUPT, "%s: bad checksum", path);
	if ((unsigned char)bytes.ptr[0] > LOSSES_VERSION)
		return versions_refuse(path, (unsigned char)bytes.ptr[0], LOSSES_VERSION, err);
	if (bytes.ptr[0] != LOSSES_VERSION)
		return err_set(err, ERR_CORRUPT, "%s: bad version", path);
	in = cursor_of((struct str){ bytes.ptr + 1, bytes.len - 9 });
	*generation = cursor_u64be(&in);
	*next_number = cursor_varint(&in);
	count = cursor_varint(&in);
	if (in.bad || count > LOSSES_MAX)
		return err_set(err, ERR_CORRUPT, "%s: bad list", path);
	if (!(*entries = arena_array(a, struct loss, count + 1)))
		return arena_fail(a, "losses", err);
	for (*n = 0; *n < count; last = (*entries)[(*n)++].number)
		if (!losses_read_entry(&in, last, &(*entries)[*n]))
			return err_set(err, ERR_CORRUPT, "%s: bad entry", path);
	if (in.at != in.end || *next_number <= last)
		return err_set(err, ERR_CORRUPT, "%s: bad list", path);
	return ERR_OK;
}

/* Both files get what is in memory now. */
static enum err_code catalog_losses_save(struct losses *l, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;
	bool dirty;

	if (l->read_only)
		return ERR_OK;
	mutex_lock(&l->files);
	mutex_lock(&l->lock);
	if ((dirty = l->dirty)) {
		l->generation++;
		l->dirty = false;
		losses_encode(l, &b);
	}
	mutex_unlock(&l->lock);
	if (buf_failed(&b))
		rc = err_nomem(err, "losses");
	for (size_t i = 0; i < 2 && dirty && !rc; i++)
		rc = fs_write_file(l->fs, l->paths[i], buf_str(&b), err);
	if (rc) {
		mutex_lock(&l->lock);
		l->dirty = true;
		mutex_unlock(&l->lock);
	}
	mutex_unlock(&l->files);
	buf_release(&b);
	return rc;
}

enum err_code losses_save(struct losses *l, struct err *err)
{
	return catalog_losses_save(l, err);
}

/* ---- opening ---- */

struct losses_copy {
	enum err_code rc;
	struct err why;
	struct buf bytes;
	uint64_t generation, next_number;
	struct loss *v;
	size_t n;
};

static enum err_code losses_take_over(
	struct losses *l, const struct losses_copy *c, struct err *err)
{
	l->generation = c->generation;
	l->next_number = c->next_number;
	for (size_t i = 0; i < c->n; i++)
		if (!losses_append(l, &c->v[i]))
			return err_nomem(err, "losses");
	return ERR_OK;
}

/* Neither copy can be read. */
static enum err_code losses_start_anew(struct losses *l, const struct err *why, struct err *err)
{
	struct loss loss = { .what = LOSS_LEDGER,
		.number = l->next_number++,
		.where = STR("losses"), .text = str_of(why->msg), .max_ns = LOSS_END,
			.found_ns = clock_now_ns() };

	l->dirty = true;
	log_error("tsdb", "damaged list of losses", LOG_E(why));
	return losses_append(l, &loss) ? ERR_OK : err_nomem(err, "losses");
}

/* A missing copy is ERR_NOT_FOUND in c->rc. */
static void losses_read_copy(const char *path, struct arena *a, struct losses_copy *c)
{
	c->rc = fs_read_file(path, FILE_BYTES_MAX, &c->bytes, &c->why);
	if (!c->rc)
		c->rc = losses_decode(
			buf_str(&c->bytes), path, a, &c->generation, &c->next_number, &c->v, &c->n, &c->why);
	else if (c->rc == ERR_LIMIT)
		c->rc = ERR_CORRUPT;
}

static enum err_code losses_read_both(struct losses *l, struct err *err)
{
	struct losses_copy c[2] = { 0 }, *best = NULL;
	enum err_code rc = ERR_OK;
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < 2; i++) {
		losses_read_copy(l->paths[i], &a, &c[i]);
		if (!c[i].rc && (!best || c[i].generation > best->generation))
			best = &c[i];
		else if (c[i].rc == ERR_UNSUPPORTED || c[i].rc == ERR_NOMEM || c[i].rc == ERR_IO)
			rc = c[i].rc;
		if (rc) {
			err_copy(err, &c[i].why);
			goto out;
		}
	}
	if (best) {
		rc = losses_take_over(l, best, err);
		l->dirty = !str_eq(buf_str(&c[0].bytes), buf_str(&c[1].bytes));
	} else if (c[0].rc == ERR_CORRUPT || c[1].rc == ERR_CORRUPT) {
		rc = losses_start_anew(l, c[0].rc == ERR_CORRUPT ? &c[0].why : &c[1].why, err);
	}
	for (size_t i = 0; i < 2 && best; i++)
		if (c[i].rc)
			log_warn("tsdb", "a copy of the list of losses cannot be read",
				LOG_S("path", l->paths[i]), LOG_E(&c[i].why));
out:
	for (size_t i = 0; i < 2; i++)
		buf_release(&c[i].bytes);
	arena_release(&a);
	return rc;
}

enum err_code losses_open(
	struct fs *fs, const char *dir, bool read_only, struct losses **out, struct err *err)
{
	struct losses *l = calloc(1, sizeof(*l));
	enum err_code rc;
	struct err why;

	if (!l)
		return err_nomem(err, "losses");
	l->fs = fs;
	l->read_only = read_only;
	l->next_number = 1;
	mutex_init(&l->files);
	mutex_init(&l->lock);
	if (asprintf(&l->paths[0], "%s/losses", dir) < 0)
		l->paths[0] = NULL;
	if (asprintf(&l->paths[1], "%s/losses.copy", dir) < 0)
		l->paths[1] = NULL;
	if (!l->paths[0] || !l->paths[1]) {
		losses_close(l);
		return err_nomem(err, "losses");
	}
	if ((rc = losses_read_both(l, err))) {
		losses_close(l);
		return rc;
	}
	/* The losses are reported all the same: a full disk must not keep the directory closed. */
	if (catalog_losses_save(l, &why))
		log_error("tsdb", "list of losses not written", LOG_E(&why));
	*out = l;
	return ERR_OK;
}

void losses_close(struct losses *l)
{
	if (!l)
		return;
	losses_release(l);
	free(l->paths[0]);
	free(l->paths[1]);
	mutex_destroy(&l->lock);
	mutex_destroy(&l->files);
	free(l);
}

/* ---- changes ---- */

/* Joins a loss into an existing entry; false: the entry did not change. */
static bool losses_entry_widen(struct losses_entry *e, const struct loss *found)
{
	struct loss *l = &e->loss;

	if (found->min_ns >= l->min_ns && found->max_ns <= l->max_ns && found->count <= l->count)
		return false;
	l->min_ns = found->min_ns < l->min_ns ? found->min_ns : l->min_ns;
	l->max_ns = found->max_ns > l->max_ns ? found->max_ns : l->max_ns;
	l->count = found->count > l->count ? found->count : l->count;
	if (l->accepted)
		l->found_ns = clock_now_ns();
	l->accepted = false;
	(void)!losses_entry_set_text(e, l->where, found->text); /* the old one is right too */
	return true;
}

static enum err_code catalog_losses_add(
	struct losses *l, const struct loss *found, bool *fresh, struct err *err)
{
	struct loss loss = *found;
	struct losses_entry *e = losses_find(l, loss.what, loss.where);

	mutex_assert_held(&l->lock);
	if (!e && l->n >= LOSSES_MAX - 1) {
		loss.what = LOSS_MORE;
		loss.where = STR("losses");
		loss.text = STR("the list is full");
		loss.count = 0;
		e = losses_find(l, loss.what, loss.where);
	}
	if (e) {
		*fresh = losses_entry_widen(e, &loss);
	} else {
		loss.number = l->next_number;
		loss.found_ns = clock_now_ns();
		loss.accepted = false;
		if (!losses_append(l, &loss))
			return err_nomem(err, "losses");
		l->next_number++;
		*fresh = true;
	}
	l->dirty |= *fresh;
	return ERR_OK;
}

enum err_code losses_add(struct losses *l, const struct loss *found, bool *fresh, struct err *err)
{
	enum err_code rc;
	bool is_fresh = false;

	mutex_lock(&l->lock);
	rc = catalog_losses_add(l, found, &is_fresh, err);
	mutex_unlock(&l->lock);
	if (fresh)
		*fresh = is_fresh;
	return rc ? rc : catalog_losses_save(l, err);
}

static struct losses_entry *losses_by_number(struct losses *l, uint64_t number)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].loss.number == number)
			return &l->v[i];
	return NULL;
}

static enum err_code catalog_losses_accept(
	struct losses *l, const uint64_t *numbers, size_t n, size_t *accepted, struct err *err)
{
	mutex_assert_held(&l->lock);
	*accepted = 0;
	for (size_t i = 0; i < n; i++)
		if (!losses_by_number(l, numbers[i]))
			return err_set(err, ERR_NOT_FOUND, "no loss %" PRIu64, numbers[i]);
	for (size_t i = 0; i < (n ? n : l->n); i++) {
		struct losses_entry *e = n ? losses_by_number(l, numbers[i]) : &l->v[i];

		*accepted += !e->loss.accepted;
		l->dirty |= !e->loss.accepted;
		e->loss.accepted = true;
	}
	return ERR_OK;
}

enum err_code losses_accept(
	struct losses *l, const uint64_t *numbers, size_t n, size_t *accepted, struct err *err)
{
	enum err_code rc;

	if (l->read_only)
		return err_set(err, ERR_UNAVAILABLE, "the database is open for reading only");
	mutex_lock(&l->lock);
	rc = catalog_losses_accept(l, numbers, n, accepted, err);
	mutex_unlock(&l->lock);
	return rc ? rc : catalog_losses_save(l, err);
}

static bool losses_is_among(const uint64_t *numbers, size_t n, uint64_t number)
{
	for (size_t i = 0; i < n; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

enum err_code losses_settle(struct losses *l, const uint64_t *numbers, size_t n, struct err *err)
{
	size_t kept = 0;

	mutex_lock(&l->lock);
	for (size_t i = 0; i < l->n; i++)
		if (losses_is_among(numbers, n, l->v[i].loss.number))
			free(l->v[i].text);
		else
			l->v[kept++] = l->v[i];
	l->dirty |= kept < l->n;
	l->n = kept;
	mutex_unlock(&l->lock);
	return catalog_losses_save(l, err);
}

enum err_code losses_forget(struct losses *l, int64_t before_ns, struct err *err)
{
	size_t kept = 0;

	mutex_lock(&l->lock);
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].loss.max_ns <= before_ns)
			free(l->v[i].text);
		else
			l->v[kept++] = l->v[i];
	l->dirty |= kept < l->n;
	l->n = kept;
	mutex_unlock(&l->lock);
	return catalog_losses_save(l, err);
}

/* ---- reading ---- */

void losses_each(struct losses *l, int64_t min_ns, int64_t max_ns, loss_fn fn, void *ctx)
{
	mutex_lock(&l->lock);
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].loss.min_ns < max_ns && l->v[i].loss.max_ns > min_ns && !fn(ctx, &l->v[i].loss))
			break;
	mutex_unlock(&l->lock);
}

size_t losses_open_n(struct losses *l)
{
	size_t n = 0;

	mutex_lock(&l->lock);
	for (size_t i = 0; i < l->n; i++)
		n += !l->v[i].loss.accepted;
	mutex_unlock(&l->lock);
	return n;
}

bool losses_has(struct losses *l, struct str path)
{
	bool has = false;

	mutex_lock(&l->lock);
	for (size_t i = 0; i < l->n && !has; i++) {
		struct str where = l->v[i].loss.where;

		has = str_has_prefix(where, path) &&
			(where.len == path.len || where.ptr[path.len] == ' ' || where.ptr[path.len] == '/');
	}
	mutex_unlock(&l->lock);
	return has;
}
