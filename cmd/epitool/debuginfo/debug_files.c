#include "cmd/epitool/debuginfo/debug_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/fs.h"
#include "tsdb/debuginfo/dwarf/split_names.h"

#define DEBUG_SUFFIX ".debug"

struct debug_split {
	struct dwarf_split names; /* point into the binary */
	bool found;
};

struct debug_split_key {
	uint64_t id;
	size_t at; /* in splits */
};

struct debug_finder {
	const struct native_file *file;
	const struct debug_files_places *places;
	struct debug_files *out;
	struct str paths[2], folders[2]; /* of the binary: as it was named; where links lead, or "" */
	const char *real; /* without links */
	struct debug_split *splits; /* as the binary has them */
	struct debug_split_key *keys; /* the same, by id */
	size_t splits_n, splits_cap;
	struct debuginfo_id alt; /* of the common file */
	struct buf path, first; /* the place that is looked at, and the first of this file; with NUL */
	bool marked; /* the file has a unit that was not found before */
	const char *why; /* the file was not taken; NULL: there was none */
	bool nomem;
};

/* ---- a file ---- */

static int debug_split_key_compare(const void *left, const void *right)
{
	const struct debug_split_key *l = left, *r = right;

	return l->id != r->id ? (l->id < r->id ? -1 : 1) : (l->at > r->at) - (l->at < r->at);
}

/* Units with the same id are found together, so that each is looked at once. */
static enum err_code debug_finder_mark(void *ctx, uint64_t id, struct err *err)
{
	struct debug_finder *f = ctx;
	size_t from = 0, to = f->splits_n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (f->keys[mid].id < id)
			from = mid + 1;
		else
			to = mid;
	}
	for (; from < f->splits_n && f->keys[from].id == id; from++) {
		struct debug_split *s = &f->splits[f->keys[from].at];

		if (s->found)
			break;
		s->found = f->marked = true;
	}
	return ERR_OK;
}

static bool debug_finder_is_wanted(
	struct debug_finder *f, enum bundle_kind kind, struct native_file *candidate)
{
	struct err err;

	if (kind == BUNDLE_ALT)
		return debuginfo_id_eq(&candidate->ids[DEBUGINFO_GNU], &f->alt);
	f->marked = false;
	/* Units before one that is damaged are there. */
	(void)!dwarf_each_split_id(candidate->elf, debug_finder_mark, f, &err);
	return f->marked;
}

static bool debug_finder_add(
	struct debug_finder *f, enum bundle_kind kind, const struct native_file *candidate)
{
	struct debug_files *d = f->out;
	struct debug_file file = { .kind = kind };

	if (fstat(candidate->fd, &file.stat) || !array_room(&d->v, d->n, 1, &d->cap) ||
		!(file.path = strdup(f->path.ptr))) {
		f->nomem = true;
		return false;
	}
	d->v[d->n++] = file;
	d->bytes += (uint64_t)file.stat.st_size;
	return true;
}

/* Takes the file at f->path if it is of this build. True: it was taken. */
static bool debug_finder_take(struct debug_finder *f, enum bundle_kind kind)
{
	struct native_file candidate;
	struct stat st;
	struct err err;
	bool taken = false;

	buf_add_char(&f->path, '\0');
	if (!f->first.len)
		buf_add_str(&f->first, buf_str(&f->path));
	f->nomem |= buf_failed(&f->path) || buf_failed(&f->first);
	/* To open another than a regular file may wait, or do something to a device. */
	if (f->nomem || stat(f->path.ptr, &st) || !S_ISREG(st.st_mode))
		return false;
	if (f->out->n == BUNDLE_FILES_MAX) {
		f->why = "one file too many";
		return false;
	}
	if (native_file_open_part(f->path.ptr, &candidate, &err)) {
		f->why = "cannot be read";
		return false;
	}
	if (debug_finder_is_wanted(f, kind, &candidate))
		taken = debug_finder_add(f, kind, &candidate);
	else
		f->why = "of another build";
	native_file_close(&candidate);
	return taken;
}

static void debug_finder_begin(struct debug_finder *f)
{
	buf_clear(&f->first);
	f->why = NULL;
}

static bool debug_finder_try(
	struct debug_finder *f, enum bundle_kind kind, struct str dir, struct str name)
{
	buf_clear(&f->path);
	if (dir.len) {
		buf_add_str(&f->path, dir);
		buf_add_char(&f->path, '/');
	}
	buf_add_str(&f->path, name);
	return debug_finder_take(f, kind);
}

static void debug_finder_miss(struct debug_finder *f, enum bundle_kind kind)
{
	struct debug_files *d = f->out;
	struct debug_file_missing m = { kind, NULL, f->why ? f->why : "not found" };

	if (f->nomem || !f->first.len)
		return;
	if (!array_room(&d->missing, d->missing_n, 1, &d->missing_cap) ||
		!(m.path = strdup(f->first.ptr)))
		f->nomem = true;
	else
		d->missing[d->missing_n++] = m;
}

/* ---- split DWARF ---- */

static enum err_code debug_finder_add_split(
	void *ctx, const struct dwarf_split *split, struct err *err)
{
	struct debug_finder *f = ctx;

	if (!array_room(&f->splits, f->splits_n, 1, &f->splits_cap))
		return err_nomem(err, "debug files");
	f->splits[f->splits_n++] = (struct debug_split){ *split, false };
	return ERR_OK;
}

/* PATH.dwp, then that of PATH without .debug; below dir if there is one. */
static bool debug_finder_try_package(struct debug_finder *f, struct str dir, struct str path)
{
	const struct str suffix = STR(DEBUG_SUFFIX);
	int names = str_has_suffix(path, suffix) ? 2 : 1;

	if (dir.len)
		path = str_base_name(path);
	for (int i = 0; i < names; i++) {
		debug_finder_begin(f);
		buf_clear(&f->path);
		if (dir.len)
			buf_printf(&f->path, STR_FMT "/", STR_ARG(dir));
		buf_printf(&f->path, STR_FMT ".dwp", STR_ARG(path));
		if (debug_finder_take(f, BUNDLE_DWP))
			return true;
		if (f->why)
			debug_finder_miss(f, BUNDLE_DWP);
		path.len -= suffix.len;
	}
	return false;
}

static void debug_finder_find_package(struct debug_finder *f)
{
	const struct debug_files_places *p = f->places;

	for (size_t i = 0; i < 2; i++)
		if (f->paths[i].len && debug_finder_try_package(f, STR(""), f->paths[i]))
			return;
	for (size_t i = 0; i < p->dwo_dirs_n; i++)
		for (size_t k = 0; k < 2; k++)
			if (f->paths[k].len && debug_finder_try_package(f, str_of(p->dwo_dirs[i]), f->paths[k]))
				return;
}

/* Below a folder with the name's own folders, then without. */
static bool debug_finder_try_folder(struct debug_finder *f, struct str dir, struct str name)
{
	struct str base = str_base_name(name);

	if (name.ptr[0] != '/' && debug_finder_try(f, BUNDLE_DWO, dir, name))
		return true;
	return base.len && !str_eq(base, name) && debug_finder_try(f, BUNDLE_DWO, dir, base);
}

static void debug_finder_find_split(struct debug_finder *f, const struct dwarf_split *s)
{
	const struct debug_files_places *p = f->places;
	bool absolute = s->name.ptr[0] == '/', found = false;

	debug_finder_begin(f);
	if (absolute || (s->folder.len && s->folder.ptr[0] == '/'))
		found = debug_finder_try(f, BUNDLE_DWO, absolute ? STR("") : s->folder, s->name);
	for (size_t i = 0; i < 2 && !found; i++)
		found = f->folders[i].len && debug_finder_try_folder(f, f->folders[i], s->name);
	for (size_t i = 0; i < p->dwo_dirs_n && !found; i++)
		found = debug_finder_try_folder(f, str_of(p->dwo_dirs[i]), s->name);
}

static enum err_code debug_finder_find_splits(struct debug_finder *f, struct err *err)
{
	enum err_code rc = dwarf_each_split(f->file->elf, debug_finder_add_split, f, err);

	if (rc || !f->splits_n)
		return rc;
	if (!(f->keys = calloc(f->splits_n, sizeof(*f->keys))))
		return err_nomem(err, "debug files");
	for (size_t i = 0; i < f->splits_n; i++)
		f->keys[i] = (struct debug_split_key){ f->splits[i].names.id, i };
	qsort(f->keys, f->splits_n, sizeof(*f->keys), debug_split_key_compare);
	debug_finder_find_package(f);
	for (size_t i = 0; i < f->splits_n && !f->nomem; i++) {
		if (f->splits[i].found)
			continue;
		debug_finder_find_split(f, &f->splits[i].names);
		if (!f->splits[i].found)
			debug_finder_miss(f, BUNDLE_DWO);
	}
	return ERR_OK;
}

/* ---- dwz's common file ---- */

/* Where packages are unpacked, and /usr/lib/debug is not the machine's own. */
static bool debug_finder_try_unpacked(struct debug_finder *f, struct str name)
{
	const char *at = strstr(f->real, DEBUG_FILES_DIR "/");

	if (!at || at == f->real)
		return false;
	name.ptr++; /* the slash */
	name.len--;
	return debug_finder_try(f, BUNDLE_ALT, (struct str){ f->real, (size_t)(at - f->real) }, name);
}

static bool debug_finder_try_build_id(struct debug_finder *f)
{
	const char *dir = f->places->debug_dir ? f->places->debug_dir : DEBUG_FILES_DIR;
	struct str id = debuginfo_id_text(&f->alt);

	if (id.len < 4)
		return false;
	buf_clear(&f->path);
	buf_printf(&f->path, "%s/.build-id/%.2s/%.*s.debug", dir, id.ptr, (int)id.len - 2, id.ptr + 2);
	return debug_finder_take(f, BUNDLE_ALT);
}

static void debug_finder_find_common(struct debug_finder *f)
{
	struct elf_link link;
	bool found = false;

	if (!elf_alternative_link(f->file->elf, &link) ||
		!debuginfo_id_of_bytes(&f->alt, DEBUGINFO_GNU, link.build_id))
		return;
	debug_finder_begin(f);
	if (link.name.ptr[0] == '/')
		found = debug_finder_try(f, BUNDLE_ALT, STR(""), link.name) ||
			debug_finder_try_unpacked(f, link.name);
	for (size_t i = 0; i < 2 && !found && link.name.ptr[0] != '/'; i++)
		found = f->folders[i].len && debug_finder_try(f, BUNDLE_ALT, f->folders[i], link.name);
	if (!found && !debug_finder_try_build_id(f))
		debug_finder_miss(f, BUNDLE_ALT);
}

/* ---- all of them ---- */

/* A relative path and the whole one are the same place; what is behind a link is another. */
static bool debug_files_same_place(const char *path, const char *real)
{
	struct str dirs[2] = { path_dir(str_of(path)), path_dir(str_of(real)) };
	struct stat st[2];
	char dir[PATH_MAX];

	if (!str_eq(str_base_name(str_of(path)), str_base_name(str_of(real))))
		return false;
	for (int i = 0; i < 2; i++) {
		snprintf(dir, sizeof(dir), STR_FMT, STR_ARG(dirs[i]));
		if (stat(dir, &st[i]))
			return false;
	}
	return st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
}

enum err_code debug_files_find(const char *path, const struct native_file *f,
	const struct debug_files_places *places, struct debug_files *out, struct err *err)
{
	char *real = realpath(path, NULL);
	struct debug_finder finder = { .file = f,
		.places = places,
		.out = out,
		.paths = { str_of(path), STR("") }, .real = real ? real : path };
	enum err_code rc;

	*out = (struct debug_files){ 0 };
	if (!debug_files_same_place(path, finder.real))
		finder.paths[1] = str_of(finder.real);
	for (size_t i = 0; i < 2; i++)
		finder.folders[i] = finder.paths[i].len ? path_dir(finder.paths[i]) : STR("");
	if (!(rc = debug_finder_find_splits(&finder, err)))
		debug_finder_find_common(&finder);
	if (!rc && finder.nomem)
		rc = err_nomem(err, "debug files");
	if (rc)
		debug_files_release(out);
	free(real);
	free(finder.splits);
	free(finder.keys);
	buf_release(&finder.path);
	buf_release(&finder.first);
	return rc;
}

void debug_files_release(struct debug_files *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->v[i].path);
	for (size_t i = 0; i < d->missing_n; i++)
		free(d->missing[i].path);
	free(d->v);
	free(d->missing);
	*d = (struct debug_files){ 0 };
}
