#include "web/router/strings.h"

#include <stdlib.h>

enum err_code strings_add(
	struct strings *s, struct arena *a, const struct str *v, size_t n, struct err *err)
{
	struct str *grown;

	if (s->n + n > s->cap) {
		s->cap = (s->n + n) * 2;
		grown = arena_array(a, struct str, s->cap);
		if (!grown)
			return arena_fail(a, "names", err);
		if (s->n)
			memcpy(grown, s->v, s->n * sizeof(*grown));
		s->v = grown;
	}
	if (n)
		memcpy(s->v + s->n, v, n * sizeof(*v));
	s->n += n;
	return ERR_OK;
}

static int cmp_str(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

void strings_unique(struct strings *s)
{
	size_t k = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), cmp_str);
	for (size_t i = 0; i < s->n; i++)
		if (!k || !str_eq(s->v[k - 1], s->v[i]))
			s->v[k++] = s->v[i];
	s->n = k;
}
