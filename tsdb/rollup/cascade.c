#include "tsdb/rollup/cascade.h"

#include <stdlib.h>

struct rung {
	struct rollup_builder *builder;
	bool open;
	int64_t step_ns;
	struct buf single, functions; /* the only record so far, not in the builder */
	struct buf record; /* encoded; closing it may close the next one, which has its own */
	bool is_single;
};

struct ladder {
	struct rung rung[ROLLUP_LEVELS];
	unsigned levels;
	bool functions;
	ladder_emit_fn emit;
	void *ctx;
	struct rollup_view *view;
	struct buf totals;
};

int64_t step_of(unsigned level, int64_t ts_ns)
{
	return (ts_ns - 1) / rollup_step_ns[level] * rollup_step_ns[level];
}

enum err_code ladder_open(struct partition *p, unsigned levels, bool functions, ladder_emit_fn emit,
	void *ctx, struct ladder **out, struct err *err)
{
	struct ladder *l = calloc(1, sizeof(*l));
	enum err_code rc = ERR_OK;

	if (!l || !(l->view = rollup_view_open())) {
		free(l);
		return err_set(err, ERR_NOMEM, "rollups: out of memory");
	}
	l->levels = levels;
	l->functions = functions;
	l->emit = emit;
	l->ctx = ctx;
	for (unsigned i = 0; i < ROLLUP_LEVELS && !rc; i++)
		if (levels >> i & 1)
			rc = rollup_builder_open(p, &l->rung[i].builder, err);
	if (rc)
		ladder_close(l);
	else
		*out = l;
	return rc;
}

void ladder_close(struct ladder *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < ROLLUP_LEVELS; i++) {
		rollup_builder_close(l->rung[i].builder);
		buf_release(&l->rung[i].single);
		buf_release(&l->rung[i].functions);
		buf_release(&l->rung[i].record);
	}
	rollup_view_close(l->view);
	buf_release(&l->totals);
	free(l);
}

static enum err_code add_bytes(struct ladder *l, struct rung *r, struct str bytes, struct err *err)
{
	enum err_code rc = rollup_parse(l->view, bytes, err);

	return rc ? rc : rollup_builder_add(r->builder, l->view, err);
}

/* What was alone so far gets company: into the builder with it. */
static enum err_code add_single(struct ladder *l, struct rung *r, struct err *err)
{
	if (!r->is_single)
		return ERR_OK;
	r->is_single = false;
	return add_bytes(l, r, buf_str(&r->single), err);
}

static enum err_code emit_functions(
	struct ladder *l, unsigned level, struct rung *r, bool was_single, struct err *err)
{
	enum err_code rc;
	bool any;

	if (was_single && r->functions.len)
		return l->emit(l->ctx, true, level, r->step_ns, buf_str(&r->functions), err);
	if (was_single && (rc = add_bytes(l, r, buf_str(&r->single), err)))
		return rc;
	buf_clear(&l->totals);
	if ((rc = rollup_builder_encode_functions(r->builder, &l->totals, &any, err)))
		return rc;
	return any ? l->emit(l->ctx, true, level, r->step_ns, buf_str(&l->totals), err) : ERR_OK;
}

static enum err_code move(struct ladder *l, unsigned level, int64_t step_ns, struct err *err);

/* The open step is done: out with it, and into the next level. */
static enum err_code close_rung(struct ladder *l, unsigned level, struct err *err)
{
	struct rung *r = &l->rung[level];
	bool single = r->is_single;
	struct str bytes;
	unsigned up = level + 1;
	enum err_code rc;

	if (!r->open)
		return ERR_OK;
	r->open = false;
	if (single) {
		bytes = buf_str(&r->single);
	} else {
		buf_clear(&r->record);
		if ((rc = rollup_builder_encode(r->builder, &r->record, err)))
			return rc;
		bytes = buf_str(&r->record);
	}
	if ((rc = l->emit(l->ctx, false, level, r->step_ns, bytes, err)) ||
		(l->functions && (rc = emit_functions(l, level, r, single, err))))
		return rc;
	while (up < ROLLUP_LEVELS && !(l->levels >> up & 1))
		up++;
	if (up < ROLLUP_LEVELS) {
		if ((rc = move(l, up, step_of(up, r->step_ns + 1), err)) ||
			(rc = add_bytes(l, &l->rung[up], bytes, err)))
			return rc;
	}
	rollup_builder_clear(r->builder);
	r->is_single = false;
	return ERR_OK;
}

static enum err_code move(struct ladder *l, unsigned level, int64_t step_ns, struct err *err)
{
	struct rung *r = &l->rung[level];
	enum err_code rc;

	if (r->open && r->step_ns == step_ns)
		return ERR_OK;
	if ((rc = close_rung(l, level, err)))
		return rc;
	r->open = true;
	r->step_ns = step_ns;
	return ERR_OK;
}

enum err_code ladder_chunk(struct ladder *l, int64_t step_ns, struct chunk *c, struct err *err)
{
	struct rung *r = &l->rung[0];
	enum err_code rc;

	if ((rc = move(l, 0, step_ns, err)) || (rc = add_single(l, r, err)))
		return rc;
	return rollup_builder_add_chunk(r->builder, c, 0, chunk_rows_n(c), err);
}

enum err_code ladder_record(
	struct ladder *l, int64_t step_ns, struct str bytes, struct str functions, struct err *err)
{
	struct rung *r = &l->rung[0];
	enum err_code rc;

	if ((rc = move(l, 0, step_ns, err)))
		return rc;
	if (r->is_single || !rollup_builder_empty(r->builder)) {
		rc = add_single(l, r, err);
		return rc ? rc : add_bytes(l, r, bytes, err);
	}
	buf_clear(&r->single);
	buf_clear(&r->functions);
	buf_add_str(&r->single, bytes);
	buf_add_str(&r->functions, functions);
	r->is_single = true;
	return buf_failed(&r->single) || buf_failed(&r->functions) ?
		err_set(err, ERR_NOMEM, "rollups: out of memory") :
		ERR_OK;
}

enum err_code ladder_end(struct ladder *l, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (unsigned i = 0; i < ROLLUP_LEVELS && !rc; i++)
		if (l->levels >> i & 1)
			rc = close_rung(l, i, err);
	return rc;
}
