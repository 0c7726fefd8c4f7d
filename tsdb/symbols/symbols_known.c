#include "tsdb/symbols/intern.h"

/*
 * Most of a profile is known already. Then comparing it with candidates is quicker than looking up
 * each name by its hash: a location's hint (symbols_table.c) gives a candidate without any name,
 * its lines give candidates of functions, and those of strings. Each is compared once, whole.
 *
 * One location after the other would wait for memory six times: for map, location, lines, function,
 * string, text. So each step prefetches for all what the next step reads. A candidate that is
 * wrong, or the second one of a string, only costs time: known_location tries it again.
 */
struct known {
	struct intern *in;
	uint32_t *function, *string; /* candidates by index, SYM_NONE: none yet */
	uint32_t *functions, *strings; /* indexes that have one */
	uint32_t functions_n, strings_n;
};

static const struct sym_function *symbols_known_function_at(const struct partition *p, uint32_t id)
{
	return segvec_at_of(&p->vec[SYM_FUNCTION], id, sizeof(struct sym_function));
}

static const void *symbols_known_text_at(const struct partition *p, uint32_t id)
{
	return *(const void *const *)segvec_at_of(&p->vec[SYM_STRING], id, sizeof(const char *));
}

static bool symbols_known_same_text(const struct partition *p, uint32_t id, struct str s)
{
	const void *text = symbols_known_text_at(p, id);

	return str_eq(text ? sym_text(text) : STR(""), s);
}

/* ---- one after the other ---- */

static bool symbols_known_same_string(struct intern *in, uint32_t at, uint32_t id)
{
	if (in->strings[at] == SYM_NONE && symbols_known_same_text(in->p, id, in->f->strings[at]))
		in->strings[at] = id;
	return in->strings[at] == id;
}

static bool symbols_known_same_function(struct intern *in, uint32_t at, uint32_t id)
{
	const struct pprof_function *from = &in->f->functions[at];
	const struct sym_function *f = symbols_known_function_at(in->p, id);

	if (in->functions[at] == SYM_NONE && f->start_line == from->start_line &&
		symbols_known_same_string(in, from->name, f->name) &&
		symbols_known_same_string(in, from->system_name, f->system_name) &&
		symbols_known_same_string(in, from->filename, f->filename))
		in->functions[at] = id;
	return in->functions[at] == id;
}

struct sym_location intern_location_key(
	const struct intern *in, const struct pprof_location *from, const struct sym_line *first)
{
	struct sym_location l = { .address = from->address,
		.mapping = SYM_NONE,
		.is_folded = from->is_folded,
		.lines_n = from->line_n,
		.lines = first };

	if (from->mapping != PPROF_NONE) {
		const struct pprof_mapping *m = &in->f->mappings[from->mapping];

		l.mapping = in->mappings[from->mapping];
		/* Without a place the mapping's first byte is no address either: 0 says so. */
		l.address = from->address || !(m->start || m->limit || m->offset) ?
			from->address - m->start :
			SYM_NO_ADDRESS;
	}
	return l;
}

/* All but the lines. */
static bool symbols_known_same_place(
	const struct intern *in, const struct pprof_location *from, const struct sym_location *known)
{
	struct sym_location l = intern_location_key(in, from, NULL);

	return known->address == l.address && known->mapping == l.mapping &&
		known->lines_n == l.lines_n && known->is_folded == l.is_folded;
}

static bool symbols_known_same_lines(
	struct intern *in, const struct pprof_location *from, const struct sym_location *known)
{
	const struct pprof_line *lines = in->f->lines + from->line_first;

	for (uint32_t i = 0; i < from->line_n; i++)
		if (known->lines[i].line != lines[i].line || known->lines[i].column != lines[i].column ||
			!symbols_known_same_function(in, lines[i].function, known->lines[i].function))
			return false;
	return true;
}

uint32_t known_location(struct intern *in, uint32_t at)
{
	const struct pprof_location *from = &in->f->locations[at];
	uint32_t id = in->guess[at];

	struct sym_location l;

	if (id == SYM_NONE)
		return SYM_NONE;
	l = partition_location(in->p, id);
	return symbols_known_same_lines(in, from, &l) ? in->locations[at] = id : SYM_NONE;
}

/* ---- all at once ---- */

static void known_guess_string(struct known *k, uint32_t at, uint32_t id)
{
	if (k->string[at] != SYM_NONE || k->in->strings[at] != SYM_NONE)
		return;
	k->string[at] = id;
	k->strings[k->strings_n++] = at;
	__builtin_prefetch(segvec_at(&k->in->p->vec[SYM_STRING], id));
}

static void known_guess_functions(
	struct known *k, const struct pprof_location *from, const struct sym_location *known)
{
	const struct pprof_line *lines = k->in->f->lines + from->line_first;

	for (uint32_t i = 0; i < from->line_n; i++) {
		uint32_t at = lines[i].function, id = known->lines[i].function;

		if (k->function[at] != SYM_NONE)
			continue;
		k->function[at] = id;
		k->functions[k->functions_n++] = at;
		__builtin_prefetch(symbols_known_function_at(k->in->p, id));
	}
}

static enum err_code known_guess_locations(struct known *k)
{
	struct intern *in = k->in;
	const struct pprof *f = in->f;
	const struct partition *p = in->p;
	uint32_t n = f->locations_n;
	uint64_t *hashes = arena_alloc_raw(in->arena, (size_t)n + 1, sizeof(*hashes));
	struct sym_location l;

	if (!hashes)
		return intern_nomem(in);
	for (uint32_t i = 0; i < n; i++) {
		const struct pprof_location *from = &f->locations[i];
		struct sym_line first = { 0 };
		struct sym_location key = intern_location_key(in, from, &first);

		if (from->line_n)
			first.line = f->lines[from->line_first].line;
		hashes[i] = sym_hint_hash(&key);
		sym_hint_prefetch(p, hashes[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		if ((in->guess[i] = sym_hint_guess(p, hashes[i])) != SYM_NONE)
			__builtin_prefetch(partition_packed_location(p, in->guess[i]));
	for (uint32_t i = 0; i < n; i++) {
		if (in->guess[i] == SYM_NONE)
			continue;
		l = partition_location(p, in->guess[i]);
		if (symbols_known_same_place(in, &f->locations[i], &l))
			__builtin_prefetch(l.lines);
		else
			in->guess[i] = SYM_NONE;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (in->guess[i] == SYM_NONE)
			continue;
		l = partition_location(p, in->guess[i]);
		known_guess_functions(k, &f->locations[i], &l);
	}
	return ERR_OK;
}

static void known_guess_names(struct known *k)
{
	const struct pprof *f = k->in->f;
	const struct partition *p = k->in->p;

	for (uint32_t i = 0; i < k->functions_n; i++) {
		const struct pprof_function *from = &f->functions[k->functions[i]];
		const struct sym_function *known = symbols_known_function_at(
			p, k->function[k->functions[i]]);

		known_guess_string(k, from->name, known->name);
		known_guess_string(k, from->system_name, known->system_name);
		known_guess_string(k, from->filename, known->filename);
	}
	for (uint32_t i = 0; i < k->strings_n; i++) {
		uint32_t at = k->strings[i];
		const char *text = symbols_known_text_at(p, k->string[at]);

		__builtin_prefetch(text);
		__builtin_prefetch(text + f->strings[at].len);
	}
}

static void known_compare_all(struct known *k)
{
	struct intern *in = k->in;

	for (uint32_t i = 0; i < k->strings_n; i++)
		symbols_known_same_string(in, k->strings[i], k->string[k->strings[i]]);
	for (uint32_t i = 0; i < k->functions_n; i++)
		symbols_known_same_function(in, k->functions[i], k->function[k->functions[i]]);
	for (uint32_t i = 0; i < in->f->locations_n; i++)
		known_location(in, i);
}

enum err_code known_find(struct intern *in)
{
	const struct pprof *f = in->f;
	struct known k = { .in = in };
	enum err_code rc;

	in->guess = arena_alloc_raw(in->arena, (size_t)f->locations_n + 1, sizeof(*in->guess));
	k.function = intern_ids(in->arena, f->functions_n);
	k.functions = arena_alloc_raw(in->arena, (size_t)f->functions_n + 1, sizeof(*k.functions));
	k.string = intern_ids(in->arena, f->strings_n);
	k.strings = arena_alloc_raw(in->arena, (size_t)f->strings_n + 1, sizeof(*k.strings));
	if (!in->guess || !k.function || !k.functions || !k.string || !k.strings)
		return intern_nomem(in);
	if ((rc = known_guess_locations(&k)))
		return rc;
	known_guess_names(&k);
	known_compare_all(&k);
	return ERR_OK;
}
