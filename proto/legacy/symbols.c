/* The symbol protocol: wanted addresses, requests, answers, and a profile with names. */
#include "proto/legacy/symbols.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"

static bool legacy_is_kernel_file(struct str file)
{
	struct str name = file;

	for (const char *slash; (slash = name.len ? memchr(name.ptr, '/', name.len) : NULL);)
		name = (struct str){ slash + 1, name.len - (size_t)(slash + 1 - name.ptr) };
	return str_has_prefix(name, STR("[")) || str_has_prefix(name, STR("linux-vdso"));
}

static bool legacy_is_wanted(const struct pprof *p, const struct pprof_location *l)
{
	/* The call before address 0 is Go's empty frame. */
	if (!l->address || l->address == UINT64_MAX || l->line_n)
		return false;
	return l->mapping == PPROF_NONE ||
		!legacy_is_kernel_file(p->strings[p->mappings[l->mapping].filename]);
}

static int legacy_by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

enum err_code symbols_wanted(
	struct arena *a, const struct pprof *p, uint64_t **addresses, uint32_t *n, struct err *err)
{
	uint64_t *v = arena_array(a, uint64_t, (size_t)p->locations_n + 1);
	uint32_t found = 0, to = 0;

	if (!v)
		return arena_fail(a, "addresses", err);
	for (uint32_t i = 0; i < p->locations_n; i++)
		if (legacy_is_wanted(p, &p->locations[i]))
			v[found++] = p->locations[i].address;
	qsort(v, found, sizeof(*v), legacy_by_value);
	for (uint32_t i = 0; i < found; i++)
		if (!i || v[i] != v[i - 1])
			v[to++] = v[i];
	*addresses = v;
	*n = to;
	return ERR_OK;
}

void symbols_request(const uint64_t *addresses, uint32_t n, struct buf *out)
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = 0; i < n; i++) {
		char text[20];
		size_t at = sizeof(text);
		uint64_t v = addresses[i];

		do
			text[--at] = digits[v & 15];
		while (v >>= 4);
		text[--at] = 'x';
		text[--at] = '0';
		if (i)
			buf_add_char(out, '+');
		buf_add(out, text + at, sizeof(text) - at);
	}
}

static int legacy_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Hex digits at s.ptr + i, at least one. Returns where they end; 0: too many. */
static size_t legacy_read_hex(struct str s, size_t i, uint64_t *out)
{
	uint64_t v = 0;

	for (; i < s.len && legacy_hex_digit(s.ptr[i]) >= 0; i++) {
		if (v >> 60)
			return 0;
		v = v << 4 | (uint64_t)legacy_hex_digit(s.ptr[i]);
	}
	*out = v;
	return i;
}

static struct str legacy_after(struct str s, size_t n)
{
	return (struct str){ s.ptr + n, s.len - n };
}

/* The line's address; *rest is what follows it. False: there is none. */
static enum err_code legacy_read_address(
	struct str line, uint64_t *address, struct str *rest, bool *is, struct err *err)
{
	size_t i = 0;

	*is = false;
	while (i + 2 < line.len &&
		!(line.ptr[i] == '0' && line.ptr[i + 1] == 'x' && legacy_hex_digit(line.ptr[i + 2]) >= 0))
		i++;
	if (i + 2 >= line.len)
		return ERR_OK;
	if (!(i = legacy_read_hex(line, i + 2, address)))
		return err_set(err, ERR_INVALID, "symbols: an address has more than 64 bits");
	*rest = legacy_after(line, i);
	*is = i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t');
	return ERR_OK;
}

/* "0x401000<white space>name". *is: the line is one. */
static enum err_code legacy_read_answer(
	struct str line, struct symbol *out, bool *is, struct err *err)
{
	struct str rest;
	enum err_code rc = legacy_read_address(line, &out->address, &rest, is, err);

	if (rc || !*is)
		return rc;
	out->name = str_trim(rest);
	*is = out->name.len > 0 && !str_is(out->name, "??");
	return ERR_OK;
}

/* Cuts off what is before the next tabs. */
static struct str legacy_next_column(struct str *rest)
{
	size_t begin = 0, end;

	while (begin < rest->len && rest->ptr[begin] == '\t')
		begin++;
	for (end = begin; end < rest->len && rest->ptr[end] != '\t';)
		end++;
	*rest = (struct str){ rest->ptr, end };
	return legacy_after(*rest, begin);
}

/* Where the last `c` of s is, or s.len. */
static size_t legacy_last_of(struct str s, char c)
{
	size_t i = s.len;

	while (i > 0 && s.ptr[i - 1] != c)
		i--;
	return i ? i - 1 : s.len;
}

/* "#<tab>0x401000<tabs>main.f+0x20<tabs>/src/main.go:12" */
static enum err_code legacy_read_comment(
	struct str line, struct symbol *out, bool *is, struct err *err)
{
	struct str rest, place;
	enum err_code rc;
	size_t i;

	*is = str_has_prefix(line, STR("#\t0x"));
	if (!*is || (rc = legacy_read_address(line, &out->address, &rest, is, err)) || !*is)
		return *is ? rc : ERR_OK;
	place = rest;
	out->name = legacy_next_column(&place);
	place = legacy_after(rest, place.len);
	place = str_trim(place);
	i = legacy_last_of(out->name, '+');
	if (str_has_prefix(legacy_after(out->name, i), STR("+0x")))
		out->name.len = i;
	i = legacy_last_of(place, ':');
	out->file = (struct str){ place.ptr, i };
	if (i == place.len || !str_to_i64(legacy_after(place, i + 1), &out->line)) {
		out->file = STR("");
		out->line = 0;
	}
	*is = out->name.len > 0;
	return ERR_OK;
}

static enum err_code legacy_add_symbol(
	struct arena *a, struct symbol symbol, struct symbols *s, struct err *err)
{
	size_t bytes = symbol.name.len > symbol.file.len ? symbol.name.len : symbol.file.len;

	if (bytes > SYMBOL_NAME_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "symbols: a name of %zu bytes, limit %u", bytes, SYMBOL_NAME_BYTES_MAX);
	if (s->n >= SYMBOLS_MAX)
		return err_set(err, ERR_LIMIT, "symbols: more than %u, the limit", SYMBOLS_MAX);
	symbol.name = str_dup(a, symbol.name);
	symbol.file = str_dup(a, symbol.file);
	symbol.order = s->n;
	if (!symbol.name.ptr || !symbol.file.ptr || !arena_array_room(a, &s->v, s->n, 1, &s->cap))
		return arena_fail(a, "symbols", err);
	s->v[s->n++] = symbol;
	return ERR_OK;
}

static enum err_code legacy_read_lines(struct arena *a, struct str text, struct symbols *s,
	enum err_code (*read)(struct str line, struct symbol *out, bool *is, struct err *err),
	struct err *err)
{
	const char *end;

	for (; text.len && (end = memchr(text.ptr, '\n', text.len));
		 text = legacy_after(text, (size_t)(end + 1 - text.ptr))) {
		struct symbol symbol = { .file = STR("") };
		enum err_code rc;
		bool is;

		rc = read((struct str){ text.ptr, (size_t)(end - text.ptr) }, &symbol, &is, err);
		if (rc || (is && (rc = legacy_add_symbol(a, symbol, s, err))))
			return rc;
	}
	return ERR_OK;
}

enum err_code symbols_read(struct arena *a, struct str answer, struct symbols *s, struct err *err)
{
	return legacy_read_lines(a, answer, s, legacy_read_answer, err);
}

enum err_code symbols_read_comments(
	struct arena *a, struct str text, struct symbols *s, struct err *err)
{
	return legacy_read_lines(a, text, s, legacy_read_comment, err);
}

static int legacy_by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address > y->address ? 1 : -1;
	return (x->order > y->order) - (x->order < y->order);
}

void symbols_sort(struct symbols *s)
{
	uint32_t to = 0;

	if (!s->n)
		return;
	qsort(s->v, s->n, sizeof(*s->v), legacy_by_address);
	for (uint32_t i = 0; i < s->n; i++)
		if (i + 1 == s->n || s->v[i].address != s->v[i + 1].address)
			s->v[to++] = s->v[i];
	s->n = to;
}

const struct symbol *symbols_find(const struct symbols *s, uint64_t address)
{
	uint32_t low = 0, high = s->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->v[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->n && s->v[low].address == address ? &s->v[low] : NULL;
}

/* ------------------------------------------------------------------------------------------------
 * A profile with names. */

static bool legacy_function_eq(const void *profile, const void *key, uint32_t id)
{
	const struct pprof *p = profile;
	const struct pprof_function *f = &p->functions[id];
	const struct symbol *symbol = key;

	return str_eq(p->strings[f->name], symbol->name) &&
		str_eq(p->strings[f->filename], symbol->file);
}

static uint32_t legacy_add_string(struct pprof *p, struct str s)
{
	if (!s.len)
		return 0;
	p->strings[p->strings_n] = s;
	return p->strings_n++;
}

/* The new function of a symbol: one for each name and file. p's arrays have room. */
static bool legacy_function_of(struct pprof *p, struct map *functions, uint64_t seed,
	const struct symbol *symbol, uint32_t *out)
{
	uint64_t hash = hash_bytes(symbol->name.ptr, symbol->name.len, seed);
	struct pprof_function f = { 0 };

	hash = hash_bytes(symbol->file.ptr, symbol->file.len, hash);
	*out = map_find(functions, hash, legacy_function_eq, p, symbol);
	if (*out != MAP_NONE)
		return true;
	f.name = f.system_name = legacy_add_string(p, symbol->name);
	f.filename = legacy_add_string(p, symbol->file);
	*out = p->functions_n;
	p->functions[p->functions_n++] = f;
	return map_add(functions, hash, *out);
}

#define COPY(a, type, from, n, more) \
	({ \
		type *copy_ = arena_alloc_raw((a), (size_t)(n) + (more) + 1, sizeof(type)); \
		if (copy_ && (n)) \
			memcpy(copy_, (from), (size_t)(n) * sizeof(type)); \
		copy_; \
	})

static enum err_code legacy_copy_with_room(
	struct arena *a, const struct pprof *p, uint32_t more, struct pprof **out, struct err *err)
{
	struct pprof *q = arena_new(a, struct pprof);

	if (!q)
		return arena_fail(a, "symbols", err);
	*q = *p;
	q->strings = COPY(a, struct str, p->strings, p->strings_n, 2 * (size_t)more);
	q->functions = COPY(a, struct pprof_function, p->functions, p->functions_n, more);
	q->lines = COPY(a, struct pprof_line, p->lines, p->lines_n, more);
	q->locations = COPY(a, struct pprof_location, p->locations, p->locations_n, 0);
	q->mappings = COPY(a, struct pprof_mapping, p->mappings, p->mappings_n, 0);
	if (!q->strings || !q->functions || !q->lines || !q->locations || !q->mappings)
		return arena_fail(a, "symbols", err);
	*out = q;
	return ERR_OK;
}

static enum err_code legacy_name_locations(
	struct pprof *p, const struct symbols *s, struct err *err)
{
	uint64_t seed = hash_seed();
	struct map functions;
	bool ok = true;

	map_init(&functions);
	for (uint32_t i = 0; ok && i < p->locations_n; i++) {
		struct pprof_location *l = &p->locations[i];
		const struct symbol *symbol = legacy_is_wanted(p, l) ? symbols_find(s, l->address) : NULL;
		uint32_t function;

		if (!symbol)
			continue;
		ok = legacy_function_of(p, &functions, seed, symbol, &function);
		l->line_first = p->lines_n;
		l->line_n = 1;
		p->lines[p->lines_n++] = (struct pprof_line){ .function = function, .line = symbol->line };
		if (l->mapping == PPROF_NONE)
			continue;
		p->mappings[l->mapping].has_functions = true;
		if (symbol->line)
			p->mappings[l->mapping].has_filenames = p->mappings[l->mapping].has_line_numbers = true;
	}
	map_release(&functions);
	return ok ? ERR_OK : err_nomem(err, "symbols");
}

enum err_code symbols_apply(struct arena *a, const struct pprof *p, const struct symbols *s,
	const struct pprof **out, struct err *err)
{
	struct pprof *q = NULL;
	uint32_t found = 0;
	enum err_code rc;

	for (uint32_t i = 0; i < p->locations_n; i++)
		found += legacy_is_wanted(p, &p->locations[i]) && symbols_find(s, p->locations[i].address);
	if (2 * (uint64_t)found > UINT32_MAX - p->strings_n || found > UINT32_MAX - p->functions_n ||
		found > UINT32_MAX - p->lines_n)
		return err_set(err, ERR_LIMIT, "symbols: more than 2^32 strings or functions");
	if (!found) {
		*out = p;
		return ERR_OK;
	}
	if ((rc = legacy_copy_with_room(a, p, found, &q, err)) ||
		(rc = legacy_name_locations(q, s, err)))
		return rc;
	*out = q;
	return ERR_OK;
}
