#include "tsdb/rollup/cascade.h"

#include <assert.h>
#include <stdlib.h>

/* One level: the step that is open there. */
struct stage {
	struct rollup_builder *builder;
	bool open;
	int64_t step_ns;
	struct buf single, functions; /* the only record so far, not in the builder */
	struct buf record; /* encoded; closing it may close the next level, which has another */
	bool is_single;
};

struct cascade {
	struct stage stages[ROLLUP_LEVELS];
	unsigned levels;
	bool functions;
	cascade_emit_fn emit;
	void *ctx;
	struct rollup_view *view;
	struct buf totals;
};

int64_t cascade_step_of(unsigned level, int64_t ts_ns)
{
	return (ts_ns - 1) / rollup_step_ns[level] * rollup_step_ns[level];
}

enum err_code cascade_open(struct partition *p, unsigned levels, bool functions,
	cascade_emit_fn emit, void *ctx, struct cascade **out, struct err *err)
{
	struct cascade *c = calloc(1, sizeof(*c));
	enum err_code rc = ERR_OK;

	assert(levels & 1 && levels >> ROLLUP_LEVELS == 0);
	if (!c || !(c->view = rollup_view_open())) {
		free(c);
		return err_nomem(err, "rollups");
	}
	c->levels = levels;
	c->functions = functions;
	c->emit = emit;
	c->ctx = ctx;
	for (unsigned i = 0; i < ROLLUP_LEVELS && !rc; i++)
		if (levels >> i & 1)
			rc = rollup_builder_open(p, &c->stages[i].builder, err);
	if (rc)
		cascade_close(c);
	else
		*out = c;
	return rc;
}

void cascade_close(struct cascade *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < ROLLUP_LEVELS; i++) {
		rollup_builder_close(c->stages[i].builder);
		buf_release(&c->stages[i].single);
		buf_release(&c->stages[i].functions);
		buf_release(&c->stages[i].record);
	}
	rollup_view_close(c->view);
	buf_release(&c->totals);
	free(c);
}

static enum err_code cascade_add_bytes(
	struct cascade *c, struct stage *s, struct str bytes, struct err *err)
{
	enum err_code rc = rollup_parse(c->view, bytes, err);

	return rc ? rc : rollup_builder_add(s->builder, c->view, err);
}

/* At the second record of the step the first goes into the builder too. */
static enum err_code cascade_add_single(struct cascade *c, struct stage *s, struct err *err)
{
	if (!s->is_single)
		return ERR_OK;
	s->is_single = false;
	return cascade_add_bytes(c, s, buf_str(&s->single), err);
}

static enum err_code cascade_emit_functions(
	struct cascade *c, unsigned level, struct stage *s, bool was_single, struct err *err)
{
	enum err_code rc;
	bool any;

	if (was_single && s->functions.len)
		return c->emit(c->ctx, true, level, s->step_ns, buf_str(&s->functions), err);
	if (was_single && (rc = cascade_add_bytes(c, s, buf_str(&s->single), err)))
		return rc;
	buf_clear(&c->totals);
	if ((rc = rollup_builder_encode_functions(s->builder, &c->totals, &any, err)))
		return rc;
	return any ? c->emit(c->ctx, true, level, s->step_ns, buf_str(&c->totals), err) : ERR_OK;
}

static enum err_code cascade_open_step(
	struct cascade *c, unsigned level, int64_t step_ns, struct err *err);

/* Emits the open step and adds it to the next level. */
static enum err_code cascade_close_stage(struct cascade *c, unsigned level, struct err *err)
{
	struct stage *s = &c->stages[level];
	bool single = s->is_single;
	struct str bytes;
	unsigned up = level + 1;
	enum err_code rc;

	if (!s->open)
		return ERR_OK;
	s->open = false;
	if (single) {
		bytes = buf_str(&s->single);
	} else {
		buf_clear(&s->record);
		if ((rc = rollup_builder_encode(s->builder, &s->record, err)))
			return rc;
		bytes = buf_str(&s->record);
	}
	if ((rc = c->emit(c->ctx, false, level, s->step_ns, bytes, err)) ||
		(c->functions && (rc = cascade_emit_functions(c, level, s, single, err))))
		return rc;
	while (up < ROLLUP_LEVELS && !(c->levels >> up & 1))
		up++;
	if (up < ROLLUP_LEVELS) {
		if ((rc = cascade_open_step(c, up, cascade_step_of(up, s->step_ns + 1), err)) ||
			(rc = cascade_add_bytes(c, &c->stages[up], bytes, err)))
			return rc;
	}
	rollup_builder_clear(s->builder);
	s->is_single = false;
	return ERR_OK;
}

static enum err_code cascade_open_step(
	struct cascade *c, unsigned level, int64_t step_ns, struct err *err)
{
	struct stage *s = &c->stages[level];
	enum err_code rc;

	if (s->open && s->step_ns == step_ns)
		return ERR_OK;
	if ((rc = cascade_close_stage(c, level, err)))
		return rc;
	s->open = true;
	s->step_ns = step_ns;
	return ERR_OK;
}

enum err_code cascade_chunk(
	struct cascade *c, int64_t step_ns, struct chunk *chunk, bool missed, struct err *err)
{
	struct stage *s = &c->stages[0];
	enum err_code rc;

	assert(step_ns == cascade_step_of(0, step_ns + 1));
	if ((rc = cascade_open_step(c, 0, step_ns, err)) || (rc = cascade_add_single(c, s, err)))
		return rc;
	return rollup_builder_add_chunk(s->builder, chunk, 0, chunk_rows_n(chunk), missed, err);
}

enum err_code cascade_record(
	struct cascade *c, int64_t step_ns, struct str bytes, struct str functions, struct err *err)
{
	struct stage *s = &c->stages[0];
	enum err_code rc;

	if ((rc = cascade_open_step(c, 0, step_ns, err)))
		return rc;
	if (s->is_single || !rollup_builder_empty(s->builder)) {
		rc = cascade_add_single(c, s, err);
		return rc ? rc : cascade_add_bytes(c, s, bytes, err);
	}
	buf_clear(&s->single);
	buf_clear(&s->functions);
	buf_add_str(&s->single, bytes);
	buf_add_str(&s->functions, functions);
	s->is_single = true;
	return buf_failed(&s->single) || buf_failed(&s->functions) ? err_nomem(err, "rollups") : ERR_OK;
}

enum err_code cascade_end(struct cascade *c, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (unsigned i = 0; i < ROLLUP_LEVELS && !rc; i++)
		if (c->levels >> i & 1)
			rc = cascade_close_stage(c, i, err);
	return rc;
}
