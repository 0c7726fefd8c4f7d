#include <stdlib.h>

#include "tsdb/read/sum_internal.h"
#include "tsdb/rollup/rollup_table.h"
#include "tsdb/symbols/partition.h"
#include "tsdb/symbols/shown.h"

/*
 * Adds function totals to a sum by name: those of blocks, and those of stacks (sum_names.c). As
 * with records of cells, a block's totals are used only if all their names exist.
 */

/* What is known of a name in a record of function totals. */
struct alike {
	uint64_t hash; /* of the names alike so far */
	uint32_t n; /* number of them; 0: this name is not the first of those alike */
	bool known; /* the names' cost together is known */
};

struct function_sums {
	struct rollup_table table; /* (string, unnamed) -> flat, cum */
	int128 total;
	/* For each name of the current record: the representative of its function (shown.h), and the
	 * names alike. */
	uint32_t *functions;
	struct alike *alike;
	size_t cap;
	uint32_t *first; /* by function: index of its first name + 1; all 0 between records */
	size_t first_cap;
};

enum err_code function_sums_open(struct function_sums **out, struct err *err)
{
	struct function_sums *f = calloc(1, sizeof(*f));

	if (!f || !rollup_table_column(&f->table) || !rollup_table_column(&f->table)) {
		function_sums_close(f);
		return err_nomem(err, "sum");
	}
	*out = f;
	return ERR_OK;
}

void function_sums_close(struct function_sums *f)
{
	if (!f)
		return;
	rollup_table_release(&f->table);
	free(f->functions);
	free(f->alike);
	free(f->first);
	free(f);
}

size_t function_sums_bytes(const struct function_sums *f)
{
	return f->table.cap * (sizeof(*f->table.keys) + 2 * sizeof(int128)) +
		f->table.slots_n * sizeof(*f->table.slots) + f->first_cap * sizeof(*f->first) +
		f->cap * (sizeof(*f->functions) + sizeof(*f->alike));
}

bool function_sums_any(const struct function_sums *f)
{
	return f->table.n > 0;
}

enum err_code function_sums_merge(
	struct function_sums *into, const struct function_sums *from, struct err *err)
{
	const struct rollup_table *t = &from->table;
	bool bad = false;
	uint32_t at;

	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t name = (uint32_t)(t->keys[i] >> 32), unnamed = (uint32_t)t->keys[i];

		if (!rollup_table_find(&into->table, &name, &unnamed, 1, &at))
			return err_nomem(err, "sum");
		for (int c = 0; c < 2; c++)
			bad |= __builtin_add_overflow(
				into->table.columns[c][at], t->columns[c][i], &into->table.columns[c][at]);
	}
	bad |= __builtin_add_overflow(into->total, from->total, &into->total);
	return bad ? err_set(err, ERR_LIMIT, "sum exceeds 128 bits") : ERR_OK;
}

/* ---- adding ---- */

enum err_code function_sums_add(struct function_sums *f, const struct rollup_function *r, size_t n,
	__int128 total, struct err *err)
{
	int128 *flat, *cum;
	bool bad = false;
	uint32_t at;

	for (size_t i = 0; i < n; i++) {
		if (r[i].alike) /* a sum of names that are shown as one: now each has a name of its own */
			continue;
		if (!rollup_table_find(&f->table, &r[i].name, &(uint32_t){ r[i].unnamed }, 1, &at))
			return err_nomem(err, "sum");
		flat = &f->table.columns[0][at];
		cum = &f->table.columns[1][at];
		bad |= __builtin_add_overflow(*flat, r[i].flat, flat);
		bad |= __builtin_add_overflow(*cum, r[i].cum, cum);
	}
	f->total += total;
	return bad ? err_set(err, ERR_LIMIT, "sum exceeds 128 bits") : ERR_OK;
}

/* ---- names that are shown as one ---- */

/*
 * Several stored names may be shown as one name. A record has the costs of each stored name, and
 * the cost of such names together. Records of older versions lack the latter, and a later version
 * may group names differently. Then the record is not usable, and cells are read.
 */

/* True if the text looks like the one that is shown for a frame without a name. */
static bool function_sums_looks_unnamed(struct str text)
{
	return str_is(text, "<unknown>") ||
		(text.len > 1 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']');
}

/* *out: frames without a name may be mixed up with named ones: a function without a stored name is
 * shown with a name, or a named one is shown like a frame without a name. */
static enum err_code function_sums_is_unclear(struct summing *s, struct shown_names *shown,
	const struct rollup_function *names, size_t n, bool *out, struct err *err)
{
	const uint32_t *functions = s->functions->functions, none = 0;
	const struct sym_function *f;
	uint32_t nameless;
	enum err_code rc = shown_functions_named(s->p, shown, &none, 0, 1, &nameless, err);

	*out = !rc && nameless != SYM_NONE &&
		(nameless == SHOWN_SEVERAL || sym_function_name(s->p, sym_function(s->p, nameless)).len);
	for (size_t i = 0; i < n && !rc && !*out; i++) {
		if (names[i].unnamed || functions[i] == SYM_NONE)
			continue;
		f = sym_function(s->p, functions[i]);
		*out = f->shown && function_sums_looks_unnamed(sym_function_name(s->p, f));
	}
	return rc;
}

/* Takes one entry of the record: a name, or the cost of names alike together. False: a sum
 * overflows. */
static bool function_sums_join_one(struct function_sums *f, struct rollup_function *names, size_t i)
{
	uint32_t at = f->first[f->functions[i]];
	struct alike *first = at ? &f->alike[at - 1] : &f->alike[i];

	if (names[i].alike) {
		if (at && names[at - 1].name == names[i].name &&
			rollup_alike(first->hash) == names[i].alike) {
			names[at - 1].cum = names[i].cum;
			first->known = true;
		}
		return true;
	}
	first->known = !first->n++;
	first->hash = rollup_alike_add(first->hash, names[i].name);
	if (at)
		return !__builtin_add_overflow(names[at - 1].flat, names[i].flat, &names[at - 1].flat);
	f->first[f->functions[i]] = (uint32_t)i + 1;
	return true;
}

/*
 * Adds the flat costs of names alike to the first of them, and gives it their cum cost together.
 * False: the record does not have that cost.
 */
static bool function_sums_join_alike(
	struct function_sums *f, struct rollup_function *names, size_t n)
{
	bool known = true;

	for (size_t i = 0; i < n; i++) {
		bool alone = names[i].unnamed || f->functions[i] == SYM_NONE;

		f->alike[i] = (struct alike){ .n = alone && !names[i].alike, .known = true };
		if (!alone)
			known &= function_sums_join_one(f, names, i);
	}
	for (size_t i = 0; i < n; i++) {
		if (!names[i].unnamed && f->functions[i] != SYM_NONE)
			f->first[f->functions[i]] = 0;
		known &= !f->alike[i].n || f->alike[i].known;
	}
	return known;
}

/* Makes room for n names, of functions below functions_n. */
static bool function_sums_room(struct function_sums *f, size_t n, uint32_t functions_n)
{
	size_t cap = n + n / 2, first_cap = functions_n + functions_n / 4;

	if (n > f->cap) {
		free(f->functions);
		free(f->alike);
		f->cap = 0;
		f->functions = malloc(cap * sizeof(*f->functions));
		f->alike = malloc(cap * sizeof(*f->alike));
		if (!f->functions || !f->alike)
			return false;
		f->cap = cap;
	}
	if (functions_n > f->first_cap) {
		free(f->first);
		f->first_cap = 0;
		if (!(f->first = calloc(first_cap, sizeof(*f->first))))
			return false;
		f->first_cap = first_cap;
	}
	return true;
}

/* Turns the record's stored names into shown ones. *usable false: the record does not say
 * enough. */
static enum err_code function_sums_show(
	struct summing *s, struct rollup_function *names, size_t *n, bool *usable, struct err *err)
{
	struct function_sums *f = s->functions;
	bool unclear = false, unnamed = false;
	struct shown_names *shown;
	enum err_code rc;
	size_t kept = 0;

	if ((rc = shown_of(s->p, &shown, err)))
		return rc;
	if (!function_sums_room(f, *n, sym_functions_n(s->p)))
		return err_nomem(err, "sum");
	if ((rc = shown_functions_named(
			 s->p, shown, &names->name, sizeof(*names), *n, f->functions, err)))
		return rc;
	for (size_t i = 0; i < *n; i++) {
		unnamed |= names[i].unnamed;
		*usable &= names[i].unnamed || f->functions[i] == SYM_NONE ||
			f->functions[i] < f->first_cap;
	}
	if (*usable && unnamed && (rc = function_sums_is_unclear(s, shown, names, *n, &unclear, err)))
		return rc;
	if (!*usable || unclear || !function_sums_join_alike(f, names, *n)) {
		*usable = false;
		return ERR_OK;
	}
	for (size_t i = 0; i < *n; i++)
		if (f->alike[i].n)
			names[kept++] = names[i];
	*n = kept;
	return ERR_OK;
}

/* ---- records ---- */

enum err_code sum_function_record(
	struct summing *s, struct str bytes, bool *usable, struct err *err)
{
	const struct rollup_column *c;
	struct rollup_function *v = NULL;
	uint32_t column;
	enum err_code rc;
	size_t n = 0, read;

	*usable = true;
	if (!s->x->rollup && !(s->x->rollup = rollup_view_open()))
		return err_nomem(err, "sum");
	if ((rc = rollup_functions_parse(s->x->rollup, bytes, err)) ||
		(rc = sum_find_column(s, s->x->rollup, &c, &column, err)))
		return rc;
	if (!c || !c->rows)
		return ERR_OK;
	if ((rc = rollup_functions(s->x->rollup, column, &v, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++)
		if (!sym_exists(s->p, SYM_STRING, v[i].name))
			return err_set(err, ERR_CORRUPT,
				"a function's total of job \"" STR_FMT "\" uses a name that is missing",
				STR_ARG(s->p->name));
	read = n;
	if (n && sym_has_shown(s->p) && ((rc = function_sums_show(s, v, &n, usable, err)) || !*usable))
		return rc;
	if ((rc = function_sums_add(s->functions, v, n, c->total, err)))
		return rc;
	s->stats->read += read;
	return sum_note_record(s, c, 0, err);
}

/* ---- the sums ---- */

enum err_code function_sums_list(struct function_sums *f, struct arena *a,
	const struct function_sum **out, size_t *n, int64_t *total, struct err *err)
{
	struct function_sum *v;
	uint64_t *keys = NULL;
	uint32_t *order = NULL, kept;
	enum err_code rc = ERR_OK;

	if (!rollup_table_sort(&f->table, &keys, &order, &kept)) {
		rc = err_nomem(err, "sum");
		goto out;
	}
	if (!(v = arena_alloc_raw(a, (size_t)kept + 1, sizeof(*v)))) {
		rc = arena_fail(a, "sum", err);
		goto out;
	}
	*total = (int64_t)f->total;
	if (*total != f->total)
		rc = err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	for (uint32_t i = 0; i < kept && !rc; i++) {
		int128 flat = f->table.columns[0][order[i]], cum = f->table.columns[1][order[i]];

		v[i] = (struct function_sum){ (uint32_t)(keys[i] >> 32), (uint32_t)keys[i] != 0,
			(int64_t)flat, (int64_t)cum };
		if (v[i].flat != flat || v[i].cum != cum)
			rc = err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	}
	*out = v;
	*n = kept;
out:
	free(keys);
	free(order);
	return rc;
}
