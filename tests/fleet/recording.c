#include <inttypes.h>
#include <stdlib.h>

#include "base/fs.h"
#include "tests/fleet/internal.h"
#include "tests/fleet/recording.h"

#define FILE_MAX (64u << 20)

static const struct symbol_limits limits = { 4u << 20, 1u << 20, 65536, UINT64_C(1) << 30 };

/* "dir/demo.pod0.cpu.000001.pb.gz" is process "demo.pod0.cpu". */
static struct str process_of(const char *file)
{
	const char *slash = strrchr(file, '/');
	struct str s = str_of(slash ? slash + 1 : file);

	if (str_has_suffix(s, STR(".gz")))
		s.len -= 3;
	if (str_has_suffix(s, STR(".pb")))
		s.len -= 3;
	while (s.len && s.ptr[s.len - 1] != '.')
		s.len--;
	s.len -= s.len > 0;
	return s;
}

static struct str kind_of(const char *file)
{
	struct str s = process_of(file);

	for (size_t i = s.len; i > 0; i--)
		if (s.ptr[i - 1] == '.')
			return (struct str){ s.ptr + i, s.len - i };
	return s;
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int by_process = str_cmp(process_of(x), process_of(y));

	return by_process ? by_process : strcmp(x, y);
}

struct reading {
	struct recording *r;
	struct arena *a;
	struct arena work;
	uint64_t **keys; /* of each file */
	uint64_t *all; /* distinct keys, ascending */
};

static enum err_code read_one(
	struct reading *g, const char *file, struct scrape *out, uint64_t **keys, struct err *err)
{
	struct recording *r = g->r;
	struct str kind = kind_of(file), raw;
	struct buf body = { 0 };
	struct interned in;
	struct pprof *p;
	int64_t *values;
	enum err_code rc;

	arena_reset(&g->work);
	if ((rc = fs_read_file(file, FILE_MAX, &body, err)) ||
		(rc = pprof_inflate(&g->work, buf_str(&body), &pprof_limits_default, &raw, err)) ||
		(rc = pprof_decode(&g->work, raw, &pprof_limits_default, &p, err)))
		goto done;
	if (p->types_n > FLEET_COLUMNS_MAX || (r->columns_n && r->columns_n != p->types_n)) {
		rc = err_set(err, ERR_INVALID, "%" PRIu32 " sample types", p->types_n);
		goto done;
	}
	r->columns_n = p->types_n;
	pprof_kinds(p, str_is(kind, "heap") ? STR("memory") : kind, NULL, r->kinds);
	for (uint32_t c = 0; c < p->types_n; c++)
		r->types[c] = str_dup(g->a, p->strings[p->types[c].type]);
	if ((rc = sym_intern_profile(r->partition, p, r->kinds, &g->work, &in, err)))
		goto done;
	values = arena_array(g->a, int64_t, (size_t)in.n * p->types_n + 1);
	*keys = arena_array(g->a, uint64_t, in.n + 1);
	if (!values || !*keys) {
		rc = arena_fail(g->a, "a recording", err);
		goto done;
	}
	out->n = 0;
	for (uint32_t i = 0; i < in.n; i++) /* equal keys: the first has the sum */
		if (!i || in.keys[i] != in.keys[i - 1])
			(*keys)[out->n++] = in.keys[i];
	for (uint32_t i = 0, at = 0; i < in.n; i++) {
		at += i && in.keys[i] != in.keys[i - 1];
		for (uint32_t c = 0; c < p->types_n; c++)
			values[(size_t)c * out->n + at] += p->values[(size_t)in.samples[i] * p->types_n + c];
	}
	out->values = values;
	r->locations += p->locations_n;
	r->functions += p->functions_n;
done:
	buf_release(&body);
	return rc ? err_wrap(err, rc, "%s", file) : ERR_OK;
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Keys to dense items; stacks and label sets to dense numbers in their order. */
static enum err_code number(struct reading *g, size_t n, struct err *err)
{
	struct recording *r = g->r;
	size_t total = 0, distinct = 0;
	uint64_t *all;

	for (uint32_t p = 0, at = 0; p < r->processes_n; p++)
		for (uint32_t k = 0; k < r->processes[p].scrapes_n; k++, at++)
			total += r->processes[p].scrapes[k].n;
	all = arena_array(g->a, uint64_t, total + 1);
	r->item_stack = arena_array(g->a, uint32_t, total + 1);
	r->item_labels = arena_array(g->a, uint32_t, total + 1);
	r->stack_node = arena_array(g->a, uint32_t, total + 1);
	if (!all || !r->item_stack || !r->item_labels || !r->stack_node)
		return arena_fail(g->a, "a recording", err);
	total = 0;
	for (uint32_t p = 0, at = 0; p < r->processes_n; p++)
		for (uint32_t k = 0; k < r->processes[p].scrapes_n; k++, at++) {
			memcpy(all + total, g->keys[at], r->processes[p].scrapes[k].n * sizeof(*all));
			total += r->processes[p].scrapes[k].n;
		}
	qsort(all, total, sizeof(*all), by_key);
	for (size_t i = 0; i < total; i++) {
		if (i && all[i] == all[distinct - 1])
			continue;
		if (!distinct || all[i] >> 32 != all[distinct - 1] >> 32)
			r->stack_node[r->stacks_n++] = (uint32_t)(all[i] >> 32);
		all[distinct] = all[i];
		r->item_stack[distinct] = r->stacks_n - 1;
		r->item_labels[distinct++] = (uint32_t)all[i];
	}
	r->items_n = (uint32_t)distinct;
	r->label_sets_n = sym_label_sets_n(r->partition);
	for (uint32_t p = 0, at = 0; p < r->processes_n; p++)
		for (uint32_t k = 0; k < r->processes[p].scrapes_n; k++, at++) {
			struct scrape *s = &r->processes[p].scrapes[k];
			uint32_t *items = arena_array(g->a, uint32_t, s->n + 1);

			if (!items)
				return arena_fail(g->a, "a recording", err);
			for (uint32_t i = 0; i < s->n; i++)
				items[i] = (uint32_t)((uint64_t *)bsearch(
										  &g->keys[at][i], all, distinct, sizeof(*all), by_key) -
					all);
			s->items = items;
		}
	r->locations /= (double)n;
	r->functions /= (double)n;
	return ERR_OK;
}

enum err_code recording_read(const char **files, size_t n, size_t *taken, struct arena *a,
	struct recording *out, struct err *err)
{
	struct reading g = { .r = out, .a = a };
	struct str kind = kind_of(files[0]);
	struct process *p = NULL;
	size_t k = 0;
	enum err_code rc;

	for (size_t i = 0; i < n; i++) {
		const char *swap = files[i];

		if (!str_eq(kind_of(swap), kind))
			continue;
		files[i] = files[k];
		files[k++] = swap;
	}
	*taken = k;
	qsort(files, k, sizeof(*files), by_name);
	*out = (struct recording){ .kind = kind };
	arena_init(&g.work, 0);
	out->processes = arena_array(a, struct process, k);
	g.keys = arena_calloc(a, k, sizeof(*g.keys));
	if (!out->processes || !g.keys)
		rc = arena_fail(a, "a recording", err);
	else
		rc = partition_open(kind, 0, 0, &limits, &out->partition, err);
	for (size_t i = 0; i < k && !rc; i++) {
		if (!p || !str_eq(p->name, process_of(files[i]))) {
			p = &out->processes[out->processes_n++];
			p->name = process_of(files[i]);
			if (!(p->scrapes = arena_array(a, struct scrape, k)))
				rc = arena_fail(a, "a recording", err);
		}
		if (!rc)
			rc = read_one(&g, files[i], &p->scrapes[p->scrapes_n++], &g.keys[i], err);
	}
	if (!rc)
		rc = number(&g, k, err);
	arena_release(&g.work);
	return rc;
}

enum err_code recording_make(const struct fleet *f, uint32_t services, uint32_t pods,
	uint64_t first, uint64_t scrapes, struct arena *a, struct recording *out, struct err *err)
{
	static const char *const kinds[] = { "cpu", "heap", "goroutine", "mutex", "block" };
	struct fleet_scratch *s;
	const uint32_t *items;
	const int64_t *values;
	uint32_t n = fleet_items_n(f);
	enum err_code rc;

	*out = (struct recording){ .kind = str_of(kinds[fleet_params(f)->kind]),
		.items_n = n,
		.stacks_n = fleet_stacks_n(f),
		.label_sets_n = fleet_params(f)->label_sets + 1,
		.processes_n = services * pods };
	out->columns_n = fleet_kinds(f, out->kinds);
	for (uint32_t c = 0; c < out->columns_n; c++)
		out->types[c] = str_of(fleet_type_name(f, c));
	out->processes = arena_array(a, struct process, out->processes_n);
	out->item_stack = arena_array(a, uint32_t, n);
	out->item_labels = arena_array(a, uint32_t, n);
	if (!out->processes || !out->item_stack || !out->item_labels)
		return arena_fail(a, "a recording", err);
	for (uint32_t i = 0; i < n; i++) {
		out->item_stack[i] = f->item_stack[i];
		out->item_labels[i] = f->item_set[i];
	}
	if ((rc = fleet_scratch_open(f, &s, err)))
		return rc;
	for (uint32_t p = 0; p < out->processes_n; p++) {
		struct process *to = &out->processes[p];

		to->name = str_of(arena_printf(a, "svc%" PRIu32 ".pod%" PRIu32, p / pods, p % pods));
		to->scrapes = arena_array(a, struct scrape, scrapes);
		for (uint64_t k = 0; k < scrapes && to->scrapes; k++) {
			struct scrape *at = &to->scrapes[to->scrapes_n];
			uint32_t *copy;
			int64_t *v;

			at->n = fleet_items(f, s, p / pods, p % pods, first + k, false, &items, &values);
			copy = arena_array(a, uint32_t, at->n + 1);
			v = arena_array(a, int64_t, (size_t)at->n * out->columns_n + 1);
			if (!copy || !v)
				break;
			memcpy(copy, items, at->n * sizeof(*copy));
			memcpy(v, values, (size_t)at->n * out->columns_n * sizeof(*v));
			at->items = copy;
			at->values = v;
			to->scrapes_n++;
		}
		if (to->scrapes_n < scrapes)
			rc = arena_fail(a, "a recording", err);
	}
	fleet_scratch_close(s);
	return rc;
}

void recording_release(struct recording *r)
{
	partition_close(r->partition);
	r->partition = NULL;
}
