#include "tests/tsdb/debuginfo/oracle/compare.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#define FRAMES_MAX 64u

static enum err_code map_file(const char *path, struct str *out, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_errno(err, errno, "%s", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return err_errno(err, errno, "%s", path);
	*out = (struct str){ p, (size_t)st.st_size };
	return ERR_OK;
}

enum err_code oracle_index_bytes(struct str bytes, struct str alt_bytes, struct dwarf_stats *stats,
	struct buf *index, struct err *err)
{
	struct symindex_builder *b = NULL;
	struct elf *e = NULL, *alt = NULL;
	struct bundle bundle;
	enum err_code rc;

	*stats = (struct dwarf_stats){ 0 };
	if ((rc = bundle_open(bytes, &bundle, err)) || (rc = elf_open(bundle.binary, &e, err)) ||
		(rc = alt_bytes.len ? elf_open(alt_bytes, &alt, err) : ERR_OK) ||
		(rc = symindex_builder_open(&symindex_limits_default, &b, err)) ||
		(rc = dwarf_add(e, alt, &bundle, b, stats, err)) ||
		(rc = symindex_finish(b, (struct str){ 0 }, index, err)))
		goto done;
done:
	symindex_builder_close(b);
	elf_close(alt);
	elf_close(e);
	return rc;
}

enum err_code oracle_index(const char *path, const char *alt_path, struct dwarf_stats *stats,
	struct buf *index, struct err *err)
{
	struct str bytes, alt = { 0 };
	enum err_code rc;

	if ((rc = map_file(path, &bytes, err)))
		return rc;
	rc = alt_path ? map_file(alt_path, &alt, err) : ERR_OK;
	if (!rc)
		rc = oracle_index_bytes(bytes, alt, stats, index, err);
	munmap((void *)(uintptr_t)bytes.ptr, bytes.len);
	if (alt.len)
		munmap((void *)(uintptr_t)alt.ptr, alt.len);
	return rc;
}

/* ---- the addresses ---- */

/* BOLT leaves .bolt.org.text, with what it did not move, and adds .text and .text.cold. */
#define RANGES_MAX 8u

struct ranges {
	struct range {
		uint64_t from, to;
	} v[RANGES_MAX];
	size_t n;
	uint64_t bytes; /* of all */
};

/* The code of a file: the sections whose names have ".text" in them. */
static struct ranges text_of(struct str f)
{
	const Elf64_Ehdr *h = (const void *)f.ptr;
	const Elf64_Shdr *s = (const void *)(f.ptr + h->e_shoff);
	const char *names = f.ptr + s[h->e_shstrndx].sh_offset;
	struct ranges r = { 0 };

	for (unsigned i = 0; i < h->e_shnum && r.n < RANGES_MAX; i++) {
		if (!(s[i].sh_flags & SHF_EXECINSTR) || !strstr(names + s[i].sh_name, ".text") ||
			!s[i].sh_size)
			continue;
		r.v[r.n++] = (struct range){ s[i].sh_addr, s[i].sh_addr + s[i].sh_size };
		r.bytes += s[i].sh_size;
	}
	return r;
}

struct addresses {
	uint64_t *v;
	size_t n, cap;
};

static bool addresses_add(struct addresses *a, uint64_t address)
{
	if (!array_room(&a->v, a->n, 1, &a->cap))
		return false;
	a->v[a->n++] = address;
	return true;
}

static uint64_t shape_of(const struct symindex *x, uint64_t address)
{
	struct symindex_location v[FRAMES_MAX];
	size_t n = symindex_find(x, address, v, FRAMES_MAX);
	uint64_t h = n;

	for (size_t i = 0; i < n && i < FRAMES_MAX; i++)
		h = (h ^ (uintptr_t)v[i].raw.ptr ^ (uintptr_t)v[i].file.ptr << 20 ^ v[i].line) *
			UINT64_C(0x9e3779b97f4a7c15);
	return h;
}

/* Every nth start of a segment and the byte before it; *starts counts all of them. */
static bool addresses_add_starts(struct addresses *a, const struct symindex *x,
	const struct ranges *r, uint64_t nth, uint64_t *starts)
{
	/* A large binary is looked at in pieces all over it. */
	uint64_t step = 1 + r->bytes / (UINT64_C(1) << 23);

	*starts = 0;
	for (size_t i = 0; i < r->n; i++) {
		uint64_t before = 0;

		for (uint64_t at = r->v[i].from; at < r->v[i].to; at += step) {
			uint64_t h = shape_of(x, at);

			if (h != before && (*starts)++ % nth == 0 && a &&
				(!addresses_add(a, at) || (at > r->v[i].from && !addresses_add(a, at - 1))))
				return false;
			before = h;
		}
	}
	return true;
}

/* From the first byte of the code to the last one, at equal distances. */
static bool addresses_add_between(struct addresses *a, const struct ranges *r, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)((unsigned __int128)r->bytes * i / count);
		size_t k = 0;

		while (at >= r->v[k].to - r->v[k].from) {
			at -= r->v[k].to - r->v[k].from;
			k++;
		}
		if (!addresses_add(a, r->v[k].from + at))
			return false;
	}
	return true;
}

static int addresses_compare(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* Starts of segments, the byte before each, and others: `most` at most, each once. */
static bool addresses_choose(
	struct addresses *a, const struct symindex *x, const struct ranges *r, uint32_t most)
{
	uint64_t starts;
	size_t n = 0;

	if (!addresses_add_starts(NULL, x, r, 1, &starts) ||
		!addresses_add_starts(a, x, r, 1 + starts / (most / 3 + 1), &starts) ||
		!addresses_add_between(a, r, a->n < most ? most - a->n : 0))
		return false;
	qsort(a->v, a->n, sizeof(*a->v), addresses_compare);
	for (size_t i = 0; i < a->n; i++)
		if (!n || a->v[n - 1] != a->v[i])
			a->v[n++] = a->v[i];
	a->n = n;
	return true;
}

/* ---- what the other tool says ---- */

struct frame {
	char function[8192], file[8192]; /* as long as a line */
	uint32_t line;
};

static void cut_line_end(char *s)
{
	s[strcspn(s, "\n")] = '\0';
}

/* "file:line" of addr2line, perhaps with a discriminator, "file:line:column" of llvm-symbolizer. */
static void parse_place(char *s, enum oracle tool, struct frame *f)
{
	char *at = strstr(s, " (discriminator");
	char *colon;

	if (at)
		*at = '\0';
	if (tool != ORACLE_ADDR2LINE && (colon = strrchr(s, ':')))
		*colon = '\0';
	colon = strrchr(s, ':');
	f->line = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
	if (colon)
		*colon = '\0';
	snprintf(f->file, sizeof(f->file), "%s", strcmp(s, "??") ? s : "");
}

/* The frames of the next address; addr2line's next address is left in `line`. */
static size_t read_frames(FILE *in, enum oracle tool, char *line, size_t line_max, struct frame *v)
{
	size_t n = 0;

	if (tool == ORACLE_ADDR2LINE && line[0] == '\0' && !fgets(line, (int)line_max, in))
		return 0;
	while (fgets(line, (int)line_max, in)) {
		struct frame *f = &v[n < FRAMES_MAX ? n : FRAMES_MAX - 1];

		if (tool == ORACLE_ADDR2LINE ? !strncmp(line, "0x", 2) : line[0] == '\n')
			break;
		cut_line_end(line);
		snprintf(f->function, sizeof(f->function), "%s", line);
		if (!fgets(line, (int)line_max, in))
			break;
		cut_line_end(line);
		parse_place(line, tool, f);
		n++;
	}
	return n;
}

/* A clone's symbol is the function and a suffix (.cold, .constprop.0). */
static bool same_function(struct str ours, const char *theirs)
{
	size_t n = strlen(theirs);

	if (n > ours.len && theirs[ours.len] == '.')
		n = ours.len;
	if (n != ours.len)
		return false;
	/* Two constructors or destructors with the same code: C1 and C2, D1 and D2. */
	for (size_t i = 0; i < n; i++)
		if (theirs[i] != ours.ptr[i] &&
			!(i && strchr("CD", theirs[i - 1]) && strchr("12", theirs[i]) &&
				strchr("12", ours.ptr[i])))
			return false;
	return true;
}

/*
 * GCC gives functions that other files cannot call no linkage name, so that the debug data has
 * "sort<int>" or "operator()" alone. The other tools then take the outermost function's symbol.
 */
static bool is_its_symbol(struct str ours, const char *theirs)
{
	char name[256];
	size_t n = 0;

	while (n < ours.len && n < sizeof(name) - 1 && ours.ptr[n] != '<')
		n++;
	snprintf(name, sizeof(name), "%.*s", (int)n, ours.ptr);
	return !strncmp(theirs, "_Z", 2) && strncmp(ours.ptr, "_Z", 2) != 0 &&
		(str_has_prefix(ours, STR("operator")) || ours.ptr[0] == '~' || strstr(theirs, name));
}

/* Without "." and what ".." takes back: llvm-symbolizer leaves some of them out. */
static void plain_path(struct str s, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len;) {
		size_t end = i, from = n;

		while (end < s.len && s.ptr[end] != '/')
			end++;
		if (end - i == 2 && !memcmp(s.ptr + i, "..", 2) && n) {
			while (n && out[--n] != '/')
				;
		} else if (end > i && !(end - i == 1 && s.ptr[i] == '.')) {
			out[n++] = '/';
			memcpy(out + n, s.ptr + i, end - i);
			n += end - i;
		}
		if (n > 4000)
			n = from;
		i = end + 1;
	}
	out[n] = '\0';
}

static bool same_file(struct str ours, const char *theirs, enum oracle tool)
{
	char a[8192], b[8192];

	if (tool == ORACLE_ADDR2LINE)
		return str_is(ours, theirs);
	if (ours.len > 4000 || strlen(theirs) > 4000)
		return false;
	plain_path(ours, a);
	plain_path(str_of(theirs), b);
	return !strcmp(a, b);
}

/* The count that goes up; &counts->equal where all is the same. */
static uint64_t *judge(struct oracle_counts *c, enum oracle tool,
	const struct symindex_location *ours, size_t ours_n, const struct frame *v, size_t n)
{
	bool by_symbol = false;

	if (!ours_n) {
		/* addr2line names the bytes between functions after the one before them. */
		if (tool == ORACLE_ADDR2LINE)
			return &c->outside;
		return !n || !strcmp(v[0].function, "??") || (tool == ORACLE_LLVM && !v[0].line) ?
			&c->equal :
			&c->missing;
	}
	if (ours_n != n)
		return &c->depth;
	for (size_t i = 0; i < n && i < FRAMES_MAX; i++) {
		/* addr2line gives the symbol to an inlined call that begins where the function does. */
		if (!same_function(ours[i].raw, v[i].function)) {
			if (!(i + 1 == n && is_its_symbol(ours[i].raw, v[i].function)) &&
				!(tool == ORACLE_ADDR2LINE &&
					(same_function(ours[n - 1].raw, v[i].function) ||
						is_its_symbol(ours[n - 1].raw, v[i].function))))
				return &c->function;
			by_symbol = true;
		}
		if (ours[i].line != v[i].line)
			return &c->line;
		if (ours[i].line && !same_file(ours[i].file, v[i].file, tool))
			return &c->file;
	}
	return by_symbol ? &c->by_symbol : &c->equal;
}

static void print_difference(uint64_t address, const struct symindex_location *ours, size_t ours_n,
	const struct frame *v, size_t n)
{
	printf("  0x%llx\n", (unsigned long long)address);
	for (size_t i = 0; i < ours_n; i++)
		printf("    ours   " STR_FMT " " STR_FMT ":%u\n", STR_ARG(ours[i].raw),
			STR_ARG(ours[i].file), ours[i].line);
	for (size_t i = 0; i < n; i++)
		printf("    theirs %s %s:%u\n", v[i].function, v[i].file, v[i].line);
}

static FILE *ask(const char *path, enum oracle tool, const struct addresses *a, const char *list)
{
	char command[9000];
	FILE *f = fopen(list, "we");

	if (!f)
		return NULL;
	for (size_t i = 0; i < a->n; i++)
		fprintf(f, "0x%llx\n", (unsigned long long)a->v[i]);
	fclose(f);
	snprintf(command, sizeof(command),
		tool != ORACLE_ADDR2LINE ? "DEBUGINFOD_URLS= llvm-symbolizer-16 --inlines --no-demangle "
								   "--functions=linkage -e '%s' <%s" :
								   "DEBUGINFOD_URLS= addr2line -i -f -a -e '%s' <%s",
		path, list);
	return popen(command, "re");
}

static enum err_code compare_all(const char *path, enum oracle tool, const struct symindex *x,
	const struct addresses *a, unsigned show, struct oracle_counts *c, struct err *err)
{
	char list[] = "/tmp/epimetheus-oracle-XXXXXX", line[8192] = "";
	struct frame *v = calloc(FRAMES_MAX, sizeof(*v));
	int fd = mkstemp(list);
	FILE *in = fd >= 0 && v ? ask(path, tool, a, list) : NULL;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; in && i < a->n; i++) {
		struct symindex_location ours[FRAMES_MAX];
		size_t ours_n = symindex_find(x, a->v[i], ours, FRAMES_MAX);
		size_t n = read_frames(in, tool, line, sizeof(line), v);
		uint64_t *count = judge(c, tool, ours, ours_n, v, n);

		c->addresses += count != &c->outside;
		c->named += ours_n > 0;
		++*count;
		if (count != &c->equal && count != &c->outside && count != &c->by_symbol && show) {
			show--;
			print_difference(a->v[i], ours, ours_n, v, n);
		}
	}
	if (!in || pclose(in) != 0)
		rc = err_set(err, ERR_IO, "the other tool fails on %s", path);
	if (fd >= 0) {
		close(fd);
		unlink(list);
	}
	free(v);
	return rc;
}

enum err_code oracle_compare(const char *path, enum oracle tool, uint32_t most, unsigned show,
	struct oracle_counts *counts, struct err *err)
{
	struct buf index = { 0 };
	struct dwarf_stats stats;
	enum err_code rc;

	rc = oracle_index(path, NULL, &stats, &index, err);
	if (!rc && stats.units_damaged)
		rc = err_set(err, ERR_INVALID, "%s", stats.first_error.msg);
	if (!rc)
		rc = oracle_compare_index(buf_str(&index), path, tool, most, show, counts, err);
	buf_release(&index);
	return rc;
}

enum err_code oracle_compare_index(struct str index, const char *path, enum oracle tool,
	uint32_t most, unsigned show, struct oracle_counts *counts, struct err *err)
{
	struct addresses a = { 0 };
	struct symindex *x = NULL;
	struct ranges text;
	struct str bytes;
	enum err_code rc;

	if ((rc = map_file(path, &bytes, err)))
		return rc;
	if ((rc = symindex_open(index, &x, err)))
		goto done;
	text = text_of(bytes);
	if (!text.n || !addresses_choose(&a, x, &text, most)) {
		rc = err_set(err, ERR_INVALID, "%s: no .text", path);
		goto done;
	}
	rc = compare_all(path, tool, x, &a, show, counts, err);
done:
	symindex_close(x);
	free(a.v);
	munmap((void *)(uintptr_t)bytes.ptr, bytes.len);
	return rc;
}
