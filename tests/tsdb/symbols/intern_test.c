#include <stdlib.h>

#include "tests/check.h"
#include "tsdb/symbols/partition.h"

/*
 * Profiles at random into one partition, compared with the simple way: each stack as a text, root
 * first, of all that its locations say. Equal texts have one id, each beginning of a text one node,
 * and the nodes of an id read back as its text. Several builds of a program have other functions at
 * the same addresses, so that candidates are wrong, too.
 */
#define BUILDS 3u
#define PLACES 90u
#define DEPTH_MAX 24u
#define SAMPLES_MAX 150u
#define ROUNDS (80u / CHECK_STEP)

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = map_hash_u64(*state + UINT64_C(0x9e3779b97f4a7c15));
	return *state % below;
}

/* Names of a third of the places are the same in each build. */
static uint32_t add_function(struct pprof_builder *b, uint64_t build, uint64_t n)
{
	struct buf text = { 0 };
	uint32_t name, file;

	buf_printf(&text, "pkg%u.f%u", (unsigned)(n % 3 ? build : 0), (unsigned)n);
	name = pprof_builder_string(b, buf_str(&text));
	buf_clear(&text);
	buf_printf(&text, "%u.go", (unsigned)(n % 5));
	file = pprof_builder_string(b, buf_str(&text));
	buf_release(&text);
	return pprof_builder_function(
		b, &(struct pprof_function){ .name = name, .system_name = name, .filename = file });
}

/* Place n has its own address; every fourth has inlined functions, now and then the same twice. */
static uint32_t add_location(struct pprof_builder *b, uint64_t build, uint64_t n)
{
	struct pprof_line lines[3];
	uint32_t lines_n = n % 4 ? 1 : 1 + (uint32_t)(n / 4 % 3);

	for (uint32_t i = 0; i < lines_n; i++)
		lines[i] = (struct pprof_line){ .function = add_function(
											b, build, (n + i * (n % 8 ? 7 : 0)) % (PLACES / 2)),
			.line = (int64_t)(n % 10 + i) };
	return pprof_builder_location(b,
		(struct pprof_location){ .address = 4096 + n / 2 * 16, .mapping = PPROF_NONE },
		n % 17 ? lines : NULL, n % 17 ? lines_n : 0);
}

static struct pprof *make(struct arena *a, uint64_t seed)
{
	uint64_t state = seed, build = draw(&state, BUILDS), n = draw(&state, SAMPLES_MAX);
	uint32_t at[PLACES], stack[DEPTH_MAX], depth = 0;
	struct pprof_builder *b = NULL;
	struct pprof *p = NULL;
	struct err err;

	CHECK_OK(pprof_builder_open(a, &b, &err), &err);
	pprof_builder_type(b, STR("samples"), STR("count"));
	/* In another order each time. */
	for (uint64_t i = 0, first = draw(&state, PLACES); i < PLACES; i++)
		at[(first + i) % PLACES] = add_location(b, build, (first + i) % PLACES);
	for (uint64_t i = 0; i < n; i++) {
		int64_t value = draw(&state, 9) ? 1 : 0;
		struct pprof_label label = { .key = pprof_builder_string(b, STR("k")),
										 .num = (int64_t)draw(&state, 4) };
		uint32_t kept = (uint32_t)draw(&state, depth + 1);

		/* The stack before, but for some inner frames; the leaf is first. */
		memmove(stack, stack + (depth - kept), kept * sizeof(*stack));
		depth = kept + (uint32_t)draw(&state, DEPTH_MAX - kept + 1);
		memmove(stack + (depth - kept), stack, kept * sizeof(*stack));
		for (uint32_t k = 0; k < depth - kept; k++)
			stack[k] = at[draw(&state, draw(&state, 2) ? 6 : PLACES)];
		pprof_builder_sample(b, stack, depth, &label, (uint32_t)draw(&state, 2), &value);
	}
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	return p;
}

static void print_profile_location(struct buf *out, const struct pprof *f, uint32_t at)
{
	const struct pprof_location *l = &f->locations[at];

	buf_printf(out, "%llx", (unsigned long long)l->address);
	for (uint32_t i = 0; i < l->line_n; i++) {
		const struct pprof_line *line = &f->lines[l->line_first + i];

		buf_add_char(out, ',');
		buf_add_str(out, f->strings[f->functions[line->function].name]);
		buf_add_char(out, ':');
		buf_add_i64(out, line->line);
	}
	buf_add_char(out, ';');
}

static void print_location(struct buf *out, const struct partition *p, uint32_t id)
{
	const struct sym_location l = sym_location(p, id);

	buf_printf(out, "%llx", (unsigned long long)l.address);
	for (uint32_t i = 0; i < l.lines_n; i++) {
		buf_add_char(out, ',');
		buf_add_str(out, sym_string(p, sym_function(p, l.lines[i].function)->name));
		buf_add_char(out, ':');
		buf_add_i64(out, l.lines[i].line);
	}
	buf_add_char(out, ';');
}

static void print_node(struct buf *out, const struct partition *p, uint32_t id)
{
	if (!id)
		return;
	print_node(out, p, sym_node(p, id).parent);
	print_location(out, p, sym_node(p, id).location);
}

/* The simple way: each of its functions against all above, and against its others. */
static bool recurs(const struct partition *p, uint32_t node)
{
	struct sym_location l = sym_location(p, sym_node(p, node).location), m;

	for (uint32_t i = 0; i < l.lines_n; i++) {
		for (uint32_t j = 0; j < i; j++)
			if (l.lines[i].function == l.lines[j].function)
				return true;
		for (uint32_t at = sym_node(p, node).parent; at; at = sym_node(p, at).parent) {
			m = sym_location(p, sym_node(p, at).location);
			for (uint32_t j = 0; j < m.lines_n; j++)
				if (l.lines[i].function == m.lines[j].function)
					return true;
		}
	}
	return false;
}

/* Distinct beginnings of all stacks, as the hashes of their texts. */
struct beginnings {
	uint64_t *v;
	size_t n;
};

static int hash_cmp(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static size_t distinct(struct beginnings *b)
{
	size_t n = 0;

	qsort(b->v, b->n, sizeof(*b->v), hash_cmp);
	for (size_t i = 0; i < b->n; i++)
		n += i == 0 || b->v[i] != b->v[i - 1];
	return n;
}

static void check_profile(const struct partition *p, const struct pprof *f,
	const struct interned *in, struct beginnings *seen)
{
	struct buf want = { 0 }, got = { 0 };
	uint32_t with_value = 0;

	for (uint32_t i = 0; i < f->samples_n; i++)
		with_value += f->values[i] != 0;
	CHECK_INT(in->n, with_value);
	for (uint32_t i = 0; i < in->n; i++) {
		const struct pprof_sample *s = &f->samples[in->samples[i]];
		uint32_t stack = (uint32_t)(in->keys[i] >> 32);

		CHECK(i == 0 || in->keys[i] > in->keys[i - 1] ||
			(in->keys[i] == in->keys[i - 1] && in->samples[i] > in->samples[i - 1]));
		CHECK_INT((uint32_t)in->keys[i] != 0, s->label_n && f->labels[s->label_first].key);
		buf_clear(&want);
		for (uint32_t k = 0; k < s->location_n; k++) {
			print_profile_location(
				&want, f, f->location_ids[s->location_first + s->location_n - 1 - k]);
			seen->v[seen->n++] = hash_bytes(want.ptr, want.len, 0);
		}
		buf_clear(&got);
		print_node(&got, p, stack);
		CHECK(str_eq(buf_str(&got), buf_str(&want)));
	}
	buf_release(&want);
	buf_release(&got);
}

TEST(random_profiles_are_interned_as_the_simple_way)
{
	const struct symbol_limits limits = { 1u << 20, 1u << 20, 1000, 256u << 20 };
	const enum value_kind kinds[] = { KIND_DELTA };
	struct partition *p = NULL;
	struct beginnings seen = { 0 };
	struct interned in;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(partition_open(STR("api"), 7, 0, &limits, &p, &err), &err);
	seen.v = malloc((size_t)ROUNDS * SAMPLES_MAX * DEPTH_MAX * sizeof(*seen.v));
	REQUIRE(seen.v);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct pprof *f = make(&a, round / 2); /* each twice */

		REQUIRE(f);
		REQUIRE_OK(sym_intern_profile(p, f, kinds, &a, &in, &err), &err);
		check_profile(p, f, &in, &seen);
		arena_reset(&a);
	}
	/* And the empty stack. */
	CHECK_INT(sym_nodes_n(p), distinct(&seen) + 1);
	for (uint32_t id = 1; id < sym_nodes_n(p); id++)
		CHECK_INT(sym_node_recursive(p, id), recurs(p, id));
	free(seen.v);
	partition_close(p);
	arena_release(&a);
}
