/* What a search finds, beside `go tool pprof -focus` and beside the tree that is built whole. */
#include <ctype.h>

#include "tests/draw.h"
#include "tests/oracle.h"
#include "tests/values.h"
#include "web/render/frame_tree.h"
#include "web/render/search.h"

#define SEEDS (check_is_short() ? 10u : 40u)

/* ---- a profile of a few stacks ---- */

/*
 *	main                 self 1
 *	  Work               self 2
 *	    leaf             self 4
 *	      Work           self 8, recursion
 *	  leaf [inlined in Work]     self 16
 *	[no stack]           self 32
 */
static uint32_t function(struct pprof_builder *b, const char *name)
{
	struct pprof_function f = { .name = pprof_builder_string(b, str_of(name)) };

	return pprof_builder_function(b, &f);
}

static struct profile_value *make(struct values *values)
{
	struct pprof_location at = { .mapping = PPROF_NONE };
	uint32_t main, work, leaf, both;
	struct pprof_line lines[2] = { { 0 } };
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;

	if (!values_init(values, "job") || pprof_builder_open(&values->arena, &b, &err))
		return NULL;
	pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
	lines[0] = (struct pprof_line){ function(b, "main"), 1, 0 };
	main = pprof_builder_location(b, at, lines, 1);
	lines[0] = lines[1] = (struct pprof_line){ function(b, "pkg.Work"), 2, 0 };
	work = pprof_builder_location(b, at, lines, 1);
	lines[0] = (struct pprof_line){ function(b, "leaf"), 3, 0 };
	leaf = pprof_builder_location(b, at, lines, 1);
	both = pprof_builder_location(b, at, lines, 2);
	pprof_builder_sample(b, (uint32_t[]){ main }, 1, NULL, 0, (int64_t[]){ 1 });
	pprof_builder_sample(b, (uint32_t[]){ work, main }, 2, NULL, 0, (int64_t[]){ 2 });
	pprof_builder_sample(b, (uint32_t[]){ leaf, work, main }, 3, NULL, 0, (int64_t[]){ 4 });
	pprof_builder_sample(b, (uint32_t[]){ work, leaf, work, main }, 4, NULL, 0, (int64_t[]){ 8 });
	pprof_builder_sample(b, (uint32_t[]){ both, main }, 2, NULL, 0, (int64_t[]){ 16 });
	pprof_builder_sample(b, NULL, 0, NULL, 0, (int64_t[]){ 32 });
	return pprof_builder_finish(b, &p, &err) ? NULL : values_add(values, p, 0, true);
}

static void print_found(struct buf *out, const struct search_found *found)
{
	buf_printf(out, "%lld in %zu", (long long)found->total[0], found->stacks);
	for (size_t i = 0; i < found->paths_n; i++) {
		buf_printf(out, ", %lld ", (long long)found->paths[i].total[0]);
		for (size_t k = 0; k < found->paths[i].n; k++)
			buf_printf(
				out, "%s" STR_FMT, k ? ";" : "", STR_ARG(found->names[found->paths[i].frames[k]]));
	}
}

static void search(
	const struct profile_value *p, struct str text, struct arena *a, struct search_found *out)
{
	struct regex *re = NULL;
	struct err err;

	*out = (struct search_found){ 0 };
	CHECK_OK(search_compile(text, &re, &err), &err);
	if (re)
		CHECK_OK(search_profile(p, re, NULL, a, out, &err), &err);
	regex_free(re);
}

TEST(found_in_a_few_stacks)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		/* The heaviest place first; each stack counts once. */
		{ "leaf", "28 in 3, 28 main;pkg.Work;leaf" },
		{ "Work", "30 in 4, 30 main;pkg.Work, 8 main;pkg.Work;leaf;pkg.Work" },
		{ "^main$", "31 in 5, 31 main" },
		{ "leaf|pkg",
			"30 in 4, 30 main;pkg.Work, 28 main;pkg.Work;leaf, 8 main;pkg.Work;leaf;pkg.Work" },
		/* Case counts where an upper case letter is typed, and not behind a backslash. */
		{ "WORK", "0 in 0" },
		{ "work", "30 in 4, 30 main;pkg.Work, 8 main;pkg.Work;leaf;pkg.Work" },
		{ "\\Qleaf", "28 in 3, 28 main;pkg.Work;leaf" },
		{ "\\DORK|LEAF", "0 in 0" },
		{ "MAIN|leaf", "28 in 3, 28 main;pkg.Work;leaf" },
		{ "no stack", "32 in 1, 32 [no stack]" },
		{ "nothing", "0 in 0" },
	};
	struct values values;
	struct profile_value *v = make(&values);
	struct search_found found;

	REQUIRE(v);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf got = { 0 };

		search(v, str_of(rows[i].text), &values.arena, &found);
		print_found(&got, &found);
		CHECK_STR(buf_str(&got), rows[i].want);
		buf_release(&got);
	}
	values_release(&values);
}

TEST(expressions_that_cannot_be)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "a(b", "error parsing regexp: missing ): a(b" },
		{ "(?!a)", "error parsing regexp: invalid perl operator: (?!" },
	};
	struct regex *re = NULL;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_INT(search_compile(str_of(rows[i].text), &re, &err), ERR_INVALID);
		CHECK_STR(str_of(err.msg), rows[i].want);
		CHECK(!re);
	}
}

/* ---- beside the whole tree ---- */

static int64_t weight(const struct tree_node *n)
{
	return n->total[0] + n->total[1];
}

/* The node at the end of a path; 0: there is none. */
static uint32_t node_at(
	const struct frame_tree *t, const struct search_found *found, const struct search_path *path)
{
	uint32_t at = 0;

	for (size_t i = 0; i < path->n; i++) {
		uint32_t child = at + 1;

		while (child < t->n &&
			(t->nodes[child].parent != at ||
				!str_eq(t->names[t->nodes[child].name], found->names[path->frames[i]])))
			child++;
		if (child == t->n)
			return 0;
		at = child;
	}
	return at;
}

static int heavier_first(const void *a, const void *b)
{
	int64_t l = *(const int64_t *)a, r = *(const int64_t *)b;

	return l > r ? -1 : l < r;
}

static void check_paths(
	const struct frame_tree *t, const struct search_found *found, int64_t *weights, size_t n)
{
	qsort(weights, n, sizeof(*weights), heavier_first);
	CHECK_INT(found->paths_n, n < SEARCH_PATHS_MAX ? n : SEARCH_PATHS_MAX);
	for (size_t i = 0; i < found->paths_n && i < n; i++) {
		const struct search_path *path = &found->paths[i];
		uint32_t at = node_at(t, found, path);

		CHECK_INT(path->total[0] + path->total[1], weights[i]);
		CHECK(at != 0);
		CHECK_INT(t->nodes[at].total[0], path->total[0]);
		CHECK_INT(t->nodes[at].total[1], path->total[1]);
	}
}

static void check_beside_tree(const struct profile_value *p, const char *text, struct arena *a)
{
	struct search_found found;
	struct frame_tree t;
	int64_t *weights, total[2] = { 0 };
	char *covered;
	struct regex *re = NULL;
	size_t n = 0;
	struct err err;

	REQUIRE_OK(search_compile(str_of(text), &re, &err), &err);
	REQUIRE_OK(frame_tree_init(&t, a, &err), &err);
	CHECK_OK(frame_tree_add(&t, 0, p, &err), &err);
	frame_tree_total(&t);
	weights = arena_array(a, int64_t, t.n);
	covered = arena_array(a, char, t.n);
	for (uint32_t i = 1; i < t.n; i++) {
		const struct tree_node *node = &t.nodes[i];
		bool hit = regex_match(re, t.names[node->name]);

		covered[i] = covered[node->parent] || hit;
		for (int side = 0; side < 2; side++)
			total[side] += covered[i] ? node->self[side] : 0;
		if (hit && weight(node) > 0)
			weights[n++] = weight(node);
	}
	search(p, str_of(text), a, &found);
	CHECK_INT(found.total[0], total[0]);
	CHECK_INT(found.total[1], total[1]);
	check_paths(&t, &found, weights, n);
	frame_tree_release(&t);
	regex_free(re);
}

static void no_negative_costs(struct profile_value *p, struct draw *d)
{
	for (size_t i = 0; i < p->parts_n; i++)
		for (size_t k = 0; k < p->parts[i].n; k++) {
			struct cell *c = &p->parts[i].cells[k];

			c->value = c->value < 0 ? -c->value : c->value;
			c->base = p->is_diff ? draw(d, 1000) : 0;
		}
}

/* Of one job and of two, and as a difference; with frames that are dropped and without names. */
TEST(drawn_profiles_beside_the_whole_tree)
{
	static const char *const texts[] = { "main", "^main[.][a-c]", "rt", "[.]", "0x", "b", "^x" };

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct draw d = { seed * UINT64_C(0x9e3779b97f4a7c15) };
		struct profile_value *v[2], both;
		struct values values[2];
		struct part parts[2];
		struct pprof *p;
		struct err err;

		for (int i = 0; i < 2; i++) {
			REQUIRE(values_init(&values[i], i ? "second" : "first"));
			REQUIRE((p = draw_profile(&values[i].arena, &d, &err)) != NULL);
			REQUIRE((v[i] = values_add(&values[i], p, 0, true)) != NULL);
			no_negative_costs(v[i], &d);
			parts[i] = v[i]->parts[0];
		}
		both = *v[0];
		both.parts = parts;
		both.parts_n = 2;
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
			check_beside_tree(v[0], texts[k], &values[0].arena);
			check_beside_tree(&both, texts[k], &values[0].arena);
		}
		both.is_diff = true;
		no_negative_costs(&both, &d);
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
			check_beside_tree(&both, texts[k], &values[0].arena);
		values_release(&values[1]);
		values_release(&values[0]);
	}
}

/* Costs below 0 count as they are. */
TEST(negative_costs)
{
	struct values values;
	struct profile_value *v = make(&values);
	struct buf got = { 0 };
	struct search_found found;

	REQUIRE(v);
	for (size_t i = 0; i < v->parts[0].n; i++)
		if (v->parts[0].cells[i].value == 4)
			v->parts[0].cells[i].value = -4;
	search(v, STR("leaf"), &values.arena, &found);
	print_found(&got, &found);
	CHECK_STR(buf_str(&got), "20 in 3, 20 main;pkg.Work;leaf");
	buf_release(&got);
	values_release(&values);
}

/* ---- beside go tool pprof ---- */

/* The sum of what `-focus` leaves. */
static int64_t focused(const char *file, const struct profile_type *type, const char *expression)
{
	static struct oracle_rows rows;
	struct buf text = { 0 };
	char flags[2048];
	int64_t sum = 0;

	snprintf(flags, sizeof(flags),
		"-top -nodefraction=0 -unit=" STR_FMT " -sample_index=" STR_FMT " '-focus=%s'",
		STR_ARG(type->sample_unit), STR_ARG(type->sample_type), expression);
	CHECK(oracle_pprof(&text, flags, oracle_dir(), file));
	if (str_find(buf_str(&text), STR("flat%")) >= 0)
		CHECK(oracle_read_top(buf_str(&text), &rows));
	else
		rows.n = 0;
	for (size_t i = 0; i < rows.n; i++)
		sum += rows.v[i].flat;
	buf_release(&text);
	return sum;
}

/* What a program was doing when it was recorded is chance. One name is found in any case: that of
 * the costliest stack's innermost function. */
static void check_heaviest(const char *file, struct profile_value *v, struct arena *a)
{
	const struct part *part = &v->parts[0];
	const struct cell *max = &part->cells[0];
	struct buf text = { 0 }, expression = { 0 };
	struct search_found found;
	struct sym_location l;
	struct str name;

	REQUIRE(part->n);
	for (size_t i = 1; i < part->n; i++)
		if (part->cells[i].value > max->value)
			max = &part->cells[i];
	l = sym_location(part->partition, sym_node(part->partition, max->stack).location);
	REQUIRE(l.lines_n);
	name = sym_function_name(part->partition, sym_function(part->partition, l.lines[0].function));
	buf_add_char(&text, '^');
	for (size_t i = 0; i < name.len; i++) {
		if (ispunct((unsigned char)name.ptr[i]))
			buf_add_char(&text, '\\');
		buf_add_char(&text, name.ptr[i]);
	}
	buf_add_char(&text, '$');
	buf_printf(&expression, "(?i)" STR_FMT, STR_ARG(buf_str(&text)));
	for (size_t i = 0; i < text.len; i++) /* capitals would be minded */
		text.ptr[i] = (char)tolower((unsigned char)text.ptr[i]);
	search(v, buf_str(&text), a, &found);
	CHECK(found.total[0] > 0);
	CHECK_INT(found.total[0], focused(file, &v->type, expression.ptr));
	buf_release(&text);
	buf_release(&expression);
}

TEST(real_profiles_beside_focus)
{
	static const char *const files[] = { "cpu.pb.gz", "heap.pb.gz", "mutex.pb.gz" };
	/* No file is called so: focus looks at their names too. */
	static const char *const texts[] = { "^encoding/json[.]", "^main[.]", "recurse$", "^sort[.]",
		"^runtime[.][a-z]+$", "^no such function$" };

	REQUIRE(oracle_profiles());
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct buf body = { 0 };
		struct profile_value *v;
		struct values values;
		struct pprof *p;

		REQUIRE(values_init(&values, "test"));
		CHECK(oracle_read(&body, oracle_dir(), files[i]));
		p = values_decode(&values, buf_str(&body));
		REQUIRE(p && (v = values_add(&values, p, p->types_n - 1, true)));
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
			char expression[256];
			struct search_found found;

			/* focus minds case, a search of small letters does not. */
			snprintf(expression, sizeof(expression), "(?i)%s", texts[k]);
			search(v, str_of(texts[k]), &values.arena, &found);
			CHECK_INT(found.total[0], focused(files[i], &v->type, expression));
		}
		check_heaviest(files[i], v, &values.arena);
		values_release(&values);
		buf_release(&body);
	}
}
