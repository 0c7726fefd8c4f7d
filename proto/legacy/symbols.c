/* The symbol protocol: wanted addresses, requests, answers, and a profile with names. */
#include "proto/legacy/symbols.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"

static bool is_kernel_file(struct str file)
{
	struct str name = file;

	for (const char *slash; (slash = name.len ? memchr(name.ptr, '/', name.len) : NULL);)
		name = (struct str){ slash + 1, name.len - (size_t)(slash + 1 - name.ptr) };
	return str_has_prefix(name, STR("[")) || str_has_prefix(name, STR("linux-vdso"));
}

static bool is_wanted(const struct pprof *p, const struct pprof_location *l)
{
	if (!l->address || l->line_n)
		return false;
	return l->mapping == PPROF_NONE ||
		!is_kernel_file(p->strings[p->mappings[l->mapping].filename]);
}

static int by_value(const void *a, const void *b)
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
		if (is_wanted(p, &p->locations[i]))
			v[found++] = p->locations[i].address;
	qsort(v, found, sizeof(*v), by_value);
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

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "0x401000<white space>name". *is: the line is one. */
static enum err_code read_line(struct str line, struct symbol *out, bool *is, struct err *err)
{
	ptrdiff_t begin = -1;
	size_t i;

	*is = false;
	out->address = 0;
	for (i = 0; i + 2 < line.len && begin < 0; i++)
		if (line.ptr[i] == '0' && line.ptr[i + 1] == 'x' && hex_digit(line.ptr[i + 2]) >= 0)
			begin = (ptrdiff_t)i;
	if (begin < 0)
		return ERR_OK;
	for (i = (size_t)begin + 2; i < line.len && hex_digit(line.ptr[i]) >= 0; i++) {
		if (out->address >> 60)
			return err_set(err, ERR_INVALID, "symbols: an address has more than 64 bits");
		out->address = out->address << 4 | (uint64_t)hex_digit(line.ptr[i]);
	}
	if (i == line.len || (line.ptr[i] != ' ' && line.ptr[i] != '\t'))
		return ERR_OK;
	out->name = str_trim((struct str){ line.ptr + i, line.len - i });
	*is = out->name.len > 0 && !str_is(out->name, "??");
	if (out->name.len > SYMBOL_NAME_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "symbols: a name of %zu bytes, limit %u", out->name.len,
			SYMBOL_NAME_BYTES_MAX);
	return ERR_OK;
}

enum err_code symbols_read(struct arena *a, struct str answer, struct symbols *s, struct err *err)
{
	const char *end;

	for (; answer.len && (end = memchr(answer.ptr, '\n', answer.len));
		 answer = (struct str){ end + 1, answer.len - (size_t)(end + 1 - answer.ptr) }) {
		struct symbol symbol;
		enum err_code rc;
		bool is;

		if ((rc = read_line(
				 (struct str){ answer.ptr, (size_t)(end - answer.ptr) }, &symbol, &is, err)))
			return rc;
		if (!is)
			continue;
		if (s->n >= SYMBOLS_MAX)
			return err_set(err, ERR_LIMIT, "symbols: more than %u, the limit", SYMBOLS_MAX);
		symbol.name = str_dup(a, symbol.name);
		if (!symbol.name.ptr || !arena_array_room(a, &s->v, s->n, 1, &s->cap))
			return arena_fail(a, "symbols", err);
		symbol.order = s->n;
		s->v[s->n++] = symbol;
	}
	return ERR_OK;
}

static int by_address(const void *a, const void *b)
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
	qsort(s->v, s->n, sizeof(*s->v), by_address);
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

static bool function_eq(const void *profile, const void *key, uint32_t id)
{
	const struct pprof *p = profile;
	const struct str *name = key;

	return str_eq(p->strings[p->functions[id].name], *name);
}

/* The new function of that name; a name is one function. q's arrays have room. */
static bool function_of(
	struct pprof *q, struct map *by_name, uint64_t seed, struct str name, uint32_t *out)
{
	uint64_t hash = hash_bytes(name.ptr, name.len, seed);

	*out = map_find(by_name, hash, function_eq, q, &name);
	if (*out != MAP_NONE)
		return true;
	*out = q->functions_n;
	q->strings[q->strings_n] = name;
	q->functions[q->functions_n++] = (struct pprof_function){ .name = q->strings_n,
		.system_name = q->strings_n };
	q->strings_n++;
	return map_add(by_name, hash, *out);
}

#define COPY(a, type, from, n, more) \
	({ \
		type *copy_ = arena_alloc_raw((a), (size_t)(n) + (more) + 1, sizeof(type)); \
		if (copy_ && (n)) \
			memcpy(copy_, (from), (size_t)(n) * sizeof(type)); \
		copy_; \
	})

static enum err_code copy_with_room(
	struct arena *a, const struct pprof *p, uint32_t more, struct pprof **out, struct err *err)
{
	struct pprof *q = arena_new(a, struct pprof);

	if (!q)
		return arena_fail(a, "symbols", err);
	*q = *p;
	q->strings = COPY(a, struct str, p->strings, p->strings_n, more);
	q->functions = COPY(a, struct pprof_function, p->functions, p->functions_n, more);
	q->lines = COPY(a, struct pprof_line, p->lines, p->lines_n, more);
	q->locations = COPY(a, struct pprof_location, p->locations, p->locations_n, 0);
	q->mappings = COPY(a, struct pprof_mapping, p->mappings, p->mappings_n, 0);
	if (!q->strings || !q->functions || !q->lines || !q->locations || !q->mappings)
		return arena_fail(a, "symbols", err);
	*out = q;
	return ERR_OK;
}

static enum err_code name_locations(struct pprof *q, const struct symbols *s, struct err *err)
{
	uint64_t seed = hash_seed();
	struct map by_name;
	bool ok = true;

	map_init(&by_name);
	for (uint32_t i = 0; ok && i < q->locations_n; i++) {
		struct pprof_location *l = &q->locations[i];
		const struct symbol *symbol = is_wanted(q, l) ? symbols_find(s, l->address) : NULL;
		uint32_t function;

		if (!symbol)
			continue;
		ok = function_of(q, &by_name, seed, symbol->name, &function);
		l->line_first = q->lines_n;
		l->line_n = 1;
		q->lines[q->lines_n++] = (struct pprof_line){ .function = function };
		if (l->mapping != PPROF_NONE)
			q->mappings[l->mapping].has_functions = true;
	}
	map_release(&by_name);
	return ok ? ERR_OK : err_nomem(err, "symbols");
}

enum err_code symbols_apply(struct arena *a, const struct pprof *p, const struct symbols *s,
	const struct pprof **out, struct err *err)
{
	struct pprof *q = NULL;
	uint32_t found = 0;
	enum err_code rc;

	for (uint32_t i = 0; i < p->locations_n; i++)
		found += is_wanted(p, &p->locations[i]) && symbols_find(s, p->locations[i].address);
	if (found > UINT32_MAX - p->strings_n || found > UINT32_MAX - p->functions_n ||
		found > UINT32_MAX - p->lines_n)
		return err_set(err, ERR_LIMIT, "symbols: more than 2^32 strings or functions");
	if (!found) {
		*out = p;
		return ERR_OK;
	}
	if ((rc = copy_with_room(a, p, found, &q, err)) || (rc = name_locations(q, s, err)))
		return rc;
	*out = q;
	return ERR_OK;
}
