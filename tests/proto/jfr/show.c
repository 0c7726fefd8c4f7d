#include "tests/proto/jfr/show.h"

#include <stdio.h>
#include <stdlib.h>

struct line {
	struct buf stack;
	int64_t values[16];
};

static void print_title(struct buf *out, const struct jfr_profile *f)
{
	const struct pprof *p = f->pprof;

	buf_add_cstr(out, f->name);
	for (uint32_t i = 0; i < p->types_n; i++)
		buf_printf(out, " " STR_FMT, STR_ARG(p->strings[p->types[i].type]));
	buf_printf(out, ": %llu events, %llu truncated, %llu without stack\n",
		(unsigned long long)f->events, (unsigned long long)f->truncated,
		(unsigned long long)f->without_stack);
}

static void print_stack(struct buf *out, const struct pprof *p, const struct pprof_sample *s)
{
	for (uint32_t i = 0; i < s->location_n; i++) {
		const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + i]];
		const struct pprof_line *line = &p->lines[l->line_first];
		struct str name = p->strings[p->functions[line->function].name];

		buf_add_cstr(out, i ? " " : "");
		for (size_t k = 0; k < name.len; k++)
			buf_add_char(out, (char)(name.ptr[k] == ' ' ? '_' : name.ptr[k]));
		buf_printf(out, ":%lld", (long long)line->line);
		if (l->mapping != PPROF_NONE)
			buf_printf(out, "@" STR_FMT, STR_ARG(p->strings[p->mappings[l->mapping].filename]));
	}
}

static void print_values(struct buf *out, const int64_t *values, uint32_t n)
{
	buf_add_char(out, ' ');
	for (uint32_t i = 0; i < n; i++)
		buf_printf(out, " %lld", (long long)values[i]);
	buf_add_char(out, ' ');
}

void show_file(struct buf *out, const struct jfr_file *f)
{
	for (uint32_t k = 0; k < f->profiles_n; k++) {
		const struct pprof *p = f->profiles[k].pprof;

		print_title(out, &f->profiles[k]);
		for (uint32_t i = 0; i < p->samples_n; i++) {
			const struct pprof_sample *s = &p->samples[i];

			print_values(out, p->values + i * p->types_n, p->types_n);
			for (uint32_t j = 0; j < s->label_n; j++) {
				const struct pprof_label *l = &p->labels[s->label_first + j];

				buf_printf(out, "%s" STR_FMT "=" STR_FMT "%s", j ? "," : "{",
					STR_ARG(p->strings[l->key]), STR_ARG(p->strings[l->str]),
					j + 1 == s->label_n ? "} " : "");
			}
			print_stack(out, p, s);
			buf_add_char(out, '\n');
		}
	}
}

static int by_stack(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return str_cmp(buf_str(&x->stack), buf_str(&y->stack));
}

static void print_sorted(struct buf *out, const struct jfr_profile *f)
{
	const struct pprof *p = f->pprof;
	struct line *lines = calloc(p->samples_n + 1, sizeof(*lines));

	print_title(out, f);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		print_stack(&lines[i].stack, p, &p->samples[i]);
		memcpy(lines[i].values, p->values + i * p->types_n, p->types_n * sizeof(int64_t));
	}
	qsort(lines, p->samples_n, sizeof(*lines), by_stack);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		if (i + 1 < p->samples_n && !by_stack(&lines[i], &lines[i + 1])) {
			for (uint32_t k = 0; k < p->types_n; k++)
				lines[i + 1].values[k] += lines[i].values[k];
		} else {
			print_values(out, lines[i].values, p->types_n);
			buf_add_str(out, buf_str(&lines[i].stack));
			buf_add_char(out, '\n');
		}
		buf_release(&lines[i].stack);
	}
	free(lines);
}

static int by_title(const void *a, const void *b)
{
	const struct jfr_profile *const *x = a, *const *y = b;
	struct buf s = { 0 }, t = { 0 };
	int order;

	print_title(&s, *x);
	print_title(&t, *y);
	order = str_cmp(buf_str(&s), buf_str(&t));
	buf_release(&s);
	buf_release(&t);
	return order;
}

void show_sorted(struct buf *out, const struct jfr_file *f)
{
	const struct jfr_profile *profiles[16];

	for (uint32_t i = 0; i < f->profiles_n; i++)
		profiles[i] = &f->profiles[i];
	qsort(profiles, f->profiles_n, sizeof(*profiles), by_title);
	for (uint32_t i = 0; i < f->profiles_n; i++)
		print_sorted(out, profiles[i]);
}

struct str recording(struct arena *a, const char *name)
{
	char path[200];
	struct buf body = { 0 };
	struct str out = { 0 };
	struct err err;
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "tests/proto/jfr/recordings/%s.gz", name);
	f = fopen(path, "rb");
	while (f && (c = getc(f)) != EOF)
		buf_add_char(&body, (char)c);
	if (f)
		fclose(f);
	if (!f || pprof_inflate(a, str_dup(a, buf_str(&body)), &pprof_limits_default, &out, &err)) {
		fprintf(stderr, "%s: cannot be read\n", path);
		abort();
	}
	buf_release(&body);
	return out;
}

void show_difference(struct buf *out, struct str got, struct str want)
{
	size_t i = 0, begin = 0;

	if (str_eq(got, want))
		return;
	while (i < got.len && i < want.len && got.ptr[i] == want.ptr[i])
		if (got.ptr[i++] == '\n')
			begin = i;
	for (int k = 0; k < 2; k++) {
		struct str s = k ? want : got, line = { s.ptr + begin, 0 };

		while (begin + line.len < s.len && line.ptr[line.len] != '\n')
			line.len++;
		buf_printf(out, "%s \"" STR_FMT "\"", k ? ", want" : "got", STR_ARG(line));
	}
}
