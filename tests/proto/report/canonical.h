/*
 * Reports of `go tool pprof` in one order: the tool leaves rows in any order that share the cost
 * they are sorted by and their names.
 */
#ifndef TESTS_PROTO_REPORT_CANONICAL_H
#define TESTS_PROTO_REPORT_CANONICAL_H

#include <stdlib.h>

#include "base/str.h"

/* The cost in front and the name of a row; the tool leaves rows in any order that share both. */
struct row_key {
	struct str cost, name;
};

static inline struct row_key row_key_of(struct str line, bool by_cum)
{
	struct row_key key = { 0 };
	struct str rest = line;
	size_t column = 0;

	while (rest.len > 0 && column < 5) {
		size_t n;

		while (rest.len > 0 && rest.ptr[0] == ' ')
			rest = (struct str){ rest.ptr + 1, rest.len - 1 };
		for (n = 0; n < rest.len && rest.ptr[n] != ' '; n++)
			;
		if (column == (by_cum ? 3 : 0))
			key.cost = (struct str){ rest.ptr, n };
		rest = (struct str){ rest.ptr + n, rest.len - n };
		column++;
	}
	key.name = str_trim(rest);
	if (str_has_suffix(key.name, STR(" (inline)")))
		key.name.len -= 9;
	if (str_has_suffix(key.name, STR(" (partial-inline)")))
		key.name.len -= 17;
	return key;
}

static inline int line_cmp(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* The line without its third column, the sum so far, which depends on the rows before. */
static inline struct str without_sum(struct arena *a, struct str line)
{
	size_t from = 0, to = 0;

	for (int column = 0; column < 3; column++) {
		from = to;
		while (to < line.len && line.ptr[to] == ' ')
			to++;
		while (to < line.len && line.ptr[to] != ' ')
			to++;
	}
	return str_of(
		arena_printf(a, "%.*s ...%.*s", (int)from, line.ptr, (int)(line.len - to), line.ptr + to));
}

/* Sorts rows that share cost and name; leaves out the time, which versions print differently. */
static inline void canonical(struct buf *out, struct str text, bool by_cum)
{
	static struct str lines[65536];
	size_t n = 0, first = 0;
	struct arena a;

	arena_init(&a, 0);
	buf_clear(out);
	while (text.len > 0 && n < sizeof(lines) / sizeof(lines[0])) {
		ptrdiff_t end = str_find(text, STR("\n"));
		size_t len = end < 0 ? text.len : (size_t)end;

		lines[n] = (struct str){ text.ptr, len };
		n += !str_has_prefix(lines[n], STR("Time: "));
		len += end >= 0;
		text = (struct str){ text.ptr + len, text.len - len };
	}
	for (size_t i = 1; i <= n; i++) {
		struct row_key row = row_key_of(lines[first], by_cum), next;

		if (i < n) {
			next = row_key_of(lines[i], by_cum);
			if (row.name.len && str_eq(row.name, next.name) && str_eq(row.cost, next.cost))
				continue;
		}
		for (size_t k = first; i - first > 1 && k < i; k++)
			lines[k] = without_sum(&a, lines[k]);
		qsort(lines + first, i - first, sizeof(*lines), line_cmp);
		first = i;
	}
	for (size_t i = 0; i < n; i++)
		buf_printf(out, STR_FMT "\n", STR_ARG(lines[i]));
	arena_release(&a);
}

#endif
