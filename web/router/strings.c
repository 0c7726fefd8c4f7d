#include "web/router/strings.h"

#include <stdlib.h>

#include "base/array.h"

enum err_code strings_add(
	struct router_strings *s, struct arena *a, const struct str *str, size_t n, struct err *err)
{
	if (!arena_array_room(a, &s->v, s->n, n, &s->cap))
		return arena_fail(a, "names", err);
	if (n)
		memcpy(s->v + s->n, str, n * sizeof(*str));
	s->n += n;
	return ERR_OK;
}

static int router_strings_cmp_str(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

void strings_unique(struct router_strings *s)
{
	size_t k = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), router_strings_cmp_str);
	for (size_t i = 0; i < s->n; i++)
		if (!k || !str_eq(s->v[k - 1], s->v[i]))
			s->v[k++] = s->v[i];
	s->n = k;
}
