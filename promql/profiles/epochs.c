/*
 * A stack that is in several epochs of a job, or in several members of a union, has an id in each.
 * Before rounding its costs must become one cell, or an answer would depend on where epochs begin.
 * The same holds before magnitudes are added up, if some costs are negative. So stacks are compared
 * by content: everything that tells stacks of one epoch apart. Hashes of 128 bits are compared
 * instead of the content itself.
 */
#include "base/map.h"
#include "promql/profiles/profiles.h"

struct digest {
	uint64_t v[2];
};

static struct digest profiles_epochs_add_bytes(struct digest d, const void *bytes, size_t n)
{
	return (struct digest){ { hash_bytes(bytes, n, d.v[0]), hash_bytes(bytes, n, ~d.v[1]) } };
}

static struct digest profiles_epochs_add_number(struct digest d, uint64_t value)
{
	return profiles_epochs_add_bytes(d, &value, sizeof(value));
}

static struct digest profiles_epochs_add_str(
	struct digest d, const struct partition *p, uint32_t string)
{
	struct str s = sym_string(p, string);

	return profiles_epochs_add_bytes(profiles_epochs_add_number(d, s.len), s.ptr, s.len);
}

static bool digest_is_known(const struct digest *d)
{
	return d->v[0] || d->v[1];
}

/* ---- the meaning of a part's ids ---- */

struct profiles_epochs_reading {
	const struct partition *p;
	struct digest *locations, *label_sets; /* 0: not known yet */
	uint32_t *at; /* per node: index into nodes; 0: no cell is on it */
	struct digest *nodes;
};

static struct digest profiles_epochs_of_mapping(
	const struct partition *p, const struct sym_mapping *m)
{
	struct digest d = profiles_epochs_add_number((struct digest){ 0 }, m->size);

	d = profiles_epochs_add_number(profiles_epochs_add_number(d, m->offset), m->ordinal);
	d = profiles_epochs_add_str(profiles_epochs_add_str(d, p, m->filename), p, m->build_id);
	return profiles_epochs_add_number(d,
		(uint64_t)m->has_functions | (uint64_t)m->has_filenames << 1 |
			(uint64_t)m->has_line_numbers << 2 | (uint64_t)m->has_inline_frames << 3);
}

static struct digest profiles_epochs_of_location(struct profiles_epochs_reading *r, uint32_t id)
{
	const struct sym_location l = sym_location(r->p, id);
	struct digest d = { { 1, 1 } };

	if (digest_is_known(&r->locations[id]))
		return r->locations[id];
	if (l.mapping != SYM_NONE)
		d = profiles_epochs_of_mapping(r->p, sym_mapping(r->p, l.mapping));
	d = profiles_epochs_add_number(
		profiles_epochs_add_number(d, l.address), (uint64_t)l.lines_n << 1 | l.is_folded);
	for (uint32_t i = 0; i < l.lines_n; i++) {
		const struct sym_function *f = sym_function(r->p, l.lines[i].function);

		d = profiles_epochs_add_str(
			profiles_epochs_add_str(d, r->p, f->name), r->p, f->system_name);
		d = profiles_epochs_add_number(
			profiles_epochs_add_str(d, r->p, f->filename), (uint64_t)f->start_line);
		d = profiles_epochs_add_number(
			profiles_epochs_add_number(d, (uint64_t)l.lines[i].line), (uint64_t)l.lines[i].column);
	}
	return r->locations[id] = d;
}

/* Labels are in the order of an epoch's ids, so their digests are added up. */
static struct digest profiles_epochs_of_label_set(struct profiles_epochs_reading *r, uint32_t id)
{
	struct sym_label_set set = sym_label_set(r->p, id);
	struct digest d = { { set.n + 1, set.n + 1 } };

	if (digest_is_known(&r->label_sets[id]))
		return r->label_sets[id];
	for (uint32_t i = 0; i < set.n; i++) {
		struct digest label = profiles_epochs_add_number(
			(struct digest){ 0 }, (uint64_t)set.v[i].num);

		label = profiles_epochs_add_str(
			profiles_epochs_add_str(label, r->p, set.v[i].key), r->p, set.v[i].str);
		label = profiles_epochs_add_str(label, r->p, set.v[i].num_unit);
		d.v[0] += label.v[0];
		d.v[1] += label.v[1];
	}
	return r->label_sets[id] = d;
}

static enum err_code profiles_epochs_read_part(
	struct work *work, const struct part *part, struct profiles_epochs_reading *r, struct err *err)
{
	uint32_t nodes = part->n ? part->cells[part->n - 1].stack + 1 : 1, used = 1;
	struct arena *a = work->arena;

	r->p = part->partition;
	r->locations = arena_array(a, struct digest, sym_locations_n(r->p) + 1);
	r->label_sets = arena_array(a, struct digest, sym_label_sets_n(r->p) + 1);
	if (!(r->at = arena_array(a, uint32_t, nodes)))
		return work_nomem(work, err);
	for (size_t i = 0; i < part->n; i++)
		r->at[part->cells[i].stack] = 1;
	for (uint32_t i = nodes; i-- > 1;)
		if (r->at[i]) {
			r->at[sym_node(r->p, i).parent] = 1;
			used++;
		}
	r->nodes = arena_array(a, struct digest, used);
	if (!r->locations || !r->label_sets || !r->nodes)
		return work_nomem(work, err);
	r->at[0] = 0;
	used = 1;
	for (uint32_t i = 1; i < nodes; i++) {
		struct sym_node node;
		struct digest l;

		if (!r->at[i])
			continue;
		node = sym_node(r->p, i);
		l = profiles_epochs_of_location(r, node.location);
		r->at[i] = used;
		r->nodes[used++] = profiles_epochs_add_bytes(r->nodes[r->at[node.parent]], &l, sizeof(l));
	}
	return work_check(work, err);
}

/* ---- cells ---- */

struct known_cell {
	struct digest digest;
	struct part *part;
	size_t at;
};

struct profiles_epochs_joining {
	struct work *work;
	struct map map;
	struct known_cell *cells;
	size_t n;
};

static bool cell_eq(const void *ctx, const void *key, uint32_t id)
{
	return !memcmp(key, &((const struct profiles_epochs_joining *)ctx)->cells[id].digest,
		sizeof(struct digest));
}

static enum err_code known_cell_add(
	const struct known_cell *to, struct part *part, size_t i, struct err *err)
{
	struct cell *into = &to->part->cells[to->at], *c = &part->cells[i];

	if (part->wide) {
		to->part->wide[to->at] += part->wide[i];
		part->wide[i] = 0;
		return ERR_OK;
	}
	if (__builtin_add_overflow(into->value, c->value, &into->value) ||
		__builtin_add_overflow(into->base, c->base, &into->base))
		return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	c->value = c->base = 0;
	return ERR_OK;
}

/* Adds the part's cells to equal cells that are there already, and sets the part's own to 0. */
static enum err_code profiles_epochs_join_cells(
	struct profiles_epochs_joining *p, struct part *part, struct err *err)
{
	struct profiles_epochs_reading r = { 0 };
	enum err_code rc;
	uint32_t id;

	if ((rc = profiles_epochs_read_part(p->work, part, &r, err)))
		return rc;
	for (size_t i = 0; i < part->n; i++) {
		struct digest d = r.nodes[r.at[part->cells[i].stack]],
					  set = profiles_epochs_of_label_set(&r, part->cells[i].label_set);

		d = profiles_epochs_add_bytes(d, &set, sizeof(set));
		id = map_find(&p->map, d.v[0], cell_eq, p, &d);
		if (id != MAP_NONE) {
			if ((rc = known_cell_add(&p->cells[id], part, i, err)))
				return rc;
			continue;
		}
		if (!map_add(&p->map, d.v[0], (uint32_t)p->n))
			return work_nomem(p->work, err);
		p->cells[p->n++] = (struct known_cell){ d, part, i };
	}
	return ERR_OK;
}

/* ---- jobs ---- */

/* Parts of equal jobs: next[i] is the next one of i's job, + 1; 0: it is the last. */
struct job_lists {
	uint32_t *next;
	bool *is_later; /* another part of the job comes before */
	bool any; /* some job has several */
};

static bool profiles_epochs_job_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct profile_value *p = ctx;

	return str_eq(partition_name(p->parts[id].partition), *(const struct str *)key);
}

static enum err_code profiles_epochs_list_jobs(
	struct work *work, const struct profile_value *p, struct job_lists *out, struct err *err)
{
	enum err_code rc = ERR_OK;
	uint32_t *last;
	struct map map;

	*out = (struct job_lists){ 0 };
	if (p->parts_n < 2)
		return ERR_OK;
	out->next = arena_array(work->arena, uint32_t, p->parts_n);
	out->is_later = arena_array(work->arena, bool, p->parts_n);
	if (!out->next || !out->is_later || !(last = arena_array(work->arena, uint32_t, p->parts_n)))
		return work_nomem(work, err);
	map_init(&map);
	for (uint32_t i = 0; i < p->parts_n && !rc; i++) {
		struct str job = partition_name(p->parts[i].partition);
		uint64_t hash = hash_bytes(job.ptr, job.len, 0);
		uint32_t first = map_find(&map, hash, profiles_epochs_job_eq, p, &job);

		if (first == MAP_NONE) {
			last[i] = i;
			rc = map_add(&map, hash, i) ? ERR_OK : work_nomem(work, err);
			continue;
		}
		out->next[last[first]] = i + 1;
		out->is_later[i] = out->any = true;
		last[first] = i;
	}
	map_release(&map);
	return rc;
}

/* ---- joining ---- */

/* Parts of one job, from its first on. */
static enum err_code profiles_epochs_join_job(struct work *work, struct profile_value *p,
	const struct job_lists *jobs, uint32_t first, struct err *err)
{
	struct profiles_epochs_joining x = { .work = work };
	enum err_code rc = ERR_OK;
	size_t cells = 0;

	if (!jobs->next[first])
		return ERR_OK;
	for (uint32_t i = first + 1; i; i = jobs->next[i - 1])
		cells += p->parts[i - 1].n;
	if (cells >= UINT32_MAX)
		return err_set(err, ERR_LIMIT, "a profile has more than 2^32 cells");
	if (!(x.cells = arena_alloc_raw(work->arena, cells + 1, sizeof(*x.cells))))
		return work_nomem(work, err);
	map_init(&x.map);
	for (uint32_t i = first + 1; i && !rc; i = jobs->next[i - 1])
		rc = profiles_epochs_join_cells(&x, &p->parts[i - 1], err);
	map_release(&x.map);
	return rc;
}

static enum err_code profiles_epochs_join_jobs(
	struct work *work, struct profile_value *p, const struct job_lists *jobs, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < p->parts_n && jobs->any && !rc; i++)
		if (!jobs->is_later[i])
			rc = profiles_epochs_join_job(work, p, jobs, i, err);
	return rc;
}

enum err_code profile_join_epochs(struct work *work, struct profile_value *p, struct err *err)
{
	struct job_lists jobs;
	enum err_code rc = profiles_epochs_list_jobs(work, p, &jobs, err);

	return rc ? rc : profiles_epochs_join_jobs(work, p, &jobs, err);
}

enum err_code profile_joined(
	struct work *work, const struct profile_value *in, struct profile_value *out, struct err *err)
{
	struct job_lists jobs;
	enum err_code rc = profiles_epochs_list_jobs(work, in, &jobs, err);

	*out = *in;
	if (rc || !jobs.any)
		return rc;
	if (!(out->parts = arena_array(work->arena, struct part, in->parts_n)))
		return work_nomem(work, err);
	for (size_t i = 0; i < in->parts_n; i++) {
		struct part *part = &out->parts[i];

		*part = in->parts[i];
		part->cells = arena_alloc_raw(work->arena, part->n + 1, sizeof(*part->cells));
		if (!part->cells)
			return work_nomem(work, err);
		if (part->n)
			memcpy(part->cells, in->parts[i].cells, part->n * sizeof(*part->cells));
	}
	return profiles_epochs_join_jobs(work, out, &jobs, err);
}

/* ---- magnitudes ---- */

static bool profiles_epochs_has_negative(const struct part *part)
{
	for (size_t i = 0; i < part->n; i++)
		if (part->wide ? part->wide[i] < 0 : part->cells[i].value < 0 || part->cells[i].base < 0)
			return true;
	return false;
}

static void profiles_epochs_drop_zeros(struct part *part)
{
	size_t k = 0;

	for (size_t i = 0; i < part->n; i++) {
		if (part->wide ? !part->wide[i] : !part->cells[i].value && !part->cells[i].base)
			continue;
		if (part->wide)
			part->wide[k] = part->wide[i];
		part->cells[k++] = part->cells[i];
	}
	part->n = k;
}

enum err_code profile_join_signs(struct work *work, struct profile_value *p, struct err *err)
{
	struct job_lists jobs;
	enum err_code rc = profiles_epochs_list_jobs(work, p, &jobs, err);
	bool any = false;

	for (size_t i = 0; i < p->parts_n && jobs.any && !any; i++)
		any = profiles_epochs_has_negative(&p->parts[i]);
	if (rc || !any || (rc = profiles_epochs_join_jobs(work, p, &jobs, err)))
		return rc;
	for (size_t i = 0; i < p->parts_n; i++)
		profiles_epochs_drop_zeros(&p->parts[i]);
	return ERR_OK;
}
