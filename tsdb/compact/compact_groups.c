/* Joining one group: its series, and its rollups where the sources' still hold. */
#include "tsdb/compact/compact_internal.h"
#include "tsdb/compact/compaction.h"

/* A step may be in other sources too: then its rollups are made from rows. */
static bool compact_group_splits(const struct compact_joining *c, const struct compact_source *s)
{
	const struct block_meta *m = block_meta(s->b->block);

	return join_splits(c, s, cascade_step_of(0, m->min_ns + 1)) ||
		join_splits(c, s, cascade_step_of(0, m->max_ns));
}

/*
 * Rollups of the group can be taken from the sources: in each it was one whole group, no row of it
 * was deleted, ids stay, and each step is of one source.
 */
static enum err_code compact_group_is_given(
	struct compact_joining *c, size_t from, size_t to, bool *given, struct err *err)
{
	uint32_t first, n;
	enum err_code rc;

	*given = true;
	for (size_t i = 0; i < c->n; i++) {
		c->sources[i].group = UINT32_MAX;
		c->sources[i].group_seen = 0;
	}
	for (size_t i = from; i < to; i++) {
		const struct compact_part *part = &c->parts[i];
		struct compact_source *s = &c->sources[part->source];
		const struct deleted_range *v;

		if (s->translation || deleted_of(s->deleted, part->id, &v) || compact_group_splits(c, s) ||
			(s->group != UINT32_MAX && s->group != part->group))
			*given = false;
		s->group = part->group;
		s->group_seen++;
	}
	for (size_t i = 0; i < c->n && *given; i++) {
		struct compact_source *s = &c->sources[i];

		if (s->group == UINT32_MAX)
			continue;
		if ((rc = block_group(s->b->block, s->group, &first, &n, err)))
			return rc;
		*given = n == s->group_seen;
	}
	return ERR_OK;
}

static enum err_code compact_next_step(
	struct block_rollups *it, struct str *bytes, int64_t *step_ns, struct err *err)
{
	enum err_code rc = block_rollups_next(it, bytes, step_ns, err);

	if (rc != ERR_NOT_FOUND)
		return rc;
	*step_ns = INT64_MAX;
	return ERR_OK;
}

static enum err_code compact_give_group(
	struct compact_joining *c, struct compact_source *s, struct err *err)
{
	struct str record, functions;
	int64_t step, functions_step;
	enum err_code rc;

	block_rollups_seek(s->rollups, ROLLUP_GROUP, s->group, 0, 0, INT64_MAX);
	block_rollups_seek(s->functions, ROLLUP_FUNCTIONS, s->group, 0, 0, INT64_MAX);
	if ((rc = compact_next_step(s->rollups, &record, &step, err)) ||
		(rc = compact_next_step(s->functions, &functions, &functions_step, err)))
		return rc;
	while (step != INT64_MAX) {
		while (functions_step < step)
			if ((rc = compact_next_step(s->functions, &functions, &functions_step, err)))
				return rc;
		if ((rc = block_builder_group_rollup(c->m, step, record,
				 functions_step == step ? functions : (struct str){ 0 }, err)) ||
			(rc = compact_next_step(s->rollups, &record, &step, err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code compact_join_series(
	struct compact_joining *c, size_t from, size_t to, struct err *err)
{
	enum err_code rc = ERR_OK;

	c->begun = false;
	c->labels = c->parts[from].labels;
	if ((rc = compaction_pause(c->db, err)))
		return rc;
	for (size_t i = from; i < to && !rc; i++)
		rc = join_part(c, &c->parts[i], err);
	if (rc || (rc = join_flush(c, err)))
		return rc;
	for (size_t i = from; i < to && c->begun; i++)
		c->sources[c->parts[i].source].ids[c->parts[i].id] = c->id;
	return ERR_OK;
}

enum err_code join_group(struct compact_joining *c, size_t from, size_t to, struct err *err)
{
	enum err_code rc = compact_group_is_given(c, from, to, &c->group_given, err);
	size_t next;

	for (size_t i = from; i < to && !rc; i = next) {
		for (next = i + 1; next < to && labels_eq(c->parts[i].labels, c->parts[next].labels);)
			next++;
		rc = compact_join_series(c, i, next, err);
	}
	for (size_t i = 0; i < c->n && !rc && c->group_given; i++)
		if (c->sources[i].group != UINT32_MAX)
			rc = compact_give_group(c, &c->sources[i], err);
	return rc;
}
