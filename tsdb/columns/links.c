#include "tsdb/columns/links.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

/*
 * Layout: version; checksum be32, the low half of XXH3 of all that follows; varints: dropped,
 * number of spans, length of `of`; the spans, 24 bytes each; `of`, a varint per entry; the row.
 *
 * Ids of spans are random, so nothing is to be gained by coding them: they are most of the bytes.
 * The checksum is here as links go from windows to blocks, and from blocks to blocks, as they are.
 */
#define LINKS_VERSION 1
#define HEAD_BYTES 5u

_Static_assert(sizeof(struct pprof_link) == 24, "spans are read in place");

static uint32_t column_links_checksum(struct str s)
{
	return (uint32_t)hash_bytes(s.ptr, s.len, 0);
}

enum err_code links_encode(
	const struct links *l, const struct row *r, int64_t ts_ns, struct buf *out, struct err *err)
{
	struct buf body = { 0 }, of = { 0 };
	enum err_code rc;

	assert(!r->epoch && !r->links.len);
	for (uint32_t i = 0; i < r->n; i++) {
		assert(l->of[i] < l->spans_n);
		buf_add_varint(&of, l->of[i]);
	}
	buf_add_varint(&body, l->dropped);
	buf_add_varint(&body, l->spans_n);
	buf_add_varint(&body, of.len);
	buf_add(&body, l->spans, l->spans_n * sizeof(*l->spans));
	buf_add_str(&body, buf_str(&of));
	rc = row_encode(r, ts_ns, &body, err);
	buf_add_char(out, LINKS_VERSION);
	buf_add_u32be(out, column_links_checksum(buf_str(&body)));
	buf_add_str(out, buf_str(&body));
	if (!rc && (buf_failed(&of) || buf_failed(&body) || buf_failed(out)))
		rc = err_nomem(err, "links");
	buf_release(&of);
	buf_release(&body);
	return rc;
}

static enum err_code column_links_corrupt(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "links of samples to spans: %s", what);
}

struct column_links_parts {
	struct str of, row;
};

static enum err_code column_links_parse(
	struct str bytes, struct links *links, struct column_links_parts *parts, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	uint64_t n, of;
	uint32_t sum;

	*links = (struct links){ 0 };
	if (bytes.len < HEAD_BYTES || *in.at++ != LINKS_VERSION)
		return column_links_corrupt(err, "unknown version");
	sum = cursor_u32be(&in);
	if (sum !=
		column_links_checksum((struct str){ bytes.ptr + HEAD_BYTES, bytes.len - HEAD_BYTES }))
		return column_links_corrupt(err, "wrong checksum");
	links->dropped = cursor_varint(&in);
	n = cursor_varint(&in);
	of = cursor_varint(&in);
	if (in.bad || n > LINKS_ROW_MAX || n * sizeof(*links->spans) > cursor_left(&in))
		return column_links_corrupt(err, "cut short");
	links->spans_n = (uint32_t)n;
	links->spans = (const void *)cursor_bytes(&in, n * sizeof(*links->spans)).ptr;
	if (of > cursor_left(&in))
		return column_links_corrupt(err, "cut short");
	parts->of = cursor_bytes(&in, of);
	parts->row = cursor_bytes(&in, cursor_left(&in));
	return ERR_OK;
}

static enum err_code links_read_of(
	const struct links *links, struct str bytes, uint32_t n, uint32_t *of, struct err *err)
{
	struct cursor in = cursor_of(bytes);

	for (uint32_t i = 0; i < n; i++)
		if ((of[i] = cursor_u32(&in)) >= links->spans_n)
			return column_links_corrupt(err, "no such span");
	return in.bad || cursor_left(&in) ? column_links_corrupt(err, "bytes left over") : ERR_OK;
}

static bool links_unpacked_reserve(struct links_unpacked *u, size_t n, size_t columns_n)
{
	size_t ids = n * 3 + 1, values = n * columns_n + 1;

	if (ids > u->ids_cap) {
		free(u->ids);
		u->ids_cap = ids * 2;
		if (!(u->ids = malloc(u->ids_cap * sizeof(*u->ids))))
			u->ids_cap = 0;
	}
	if (values > u->values_cap) {
		free(u->values);
		u->values_cap = values * 2;
		if (!(u->values = malloc(u->values_cap * sizeof(*u->values))))
			u->values_cap = 0;
	}
	return u->ids_cap && u->values_cap;
}

enum err_code links_unpack(
	struct links_unpacked *u, struct str bytes, int64_t ts_ns, struct err *err)
{
	struct row_view *v = &u->view;
	struct column_links_parts parts;
	enum err_code rc;
	uint32_t *of;

	if ((rc = column_links_parse(bytes, &u->links, &parts, err)) ||
		(rc = row_parse(parts.row, ts_ns, v, err)))
		return rc;
	if (v->epoch || v->links.len || v->n > LINKS_ROW_MAX || v->n > parts.of.len)
		return column_links_corrupt(err, "another row");
	if (!links_unpacked_reserve(u, v->n, v->columns_n))
		return err_nomem(err, "links");
	of = u->ids + (size_t)v->n * 2;
	if ((rc = row_ids(v, u->ids, u->ids + v->n, err)) ||
		(rc = links_read_of(&u->links, parts.of, v->n, of, err)))
		return rc;
	for (uint32_t c = 0; c < v->columns_n; c++)
		if ((rc = row_values(v, c, u->values + (size_t)c * v->n, err)))
			return rc;
	u->links.of = of;
	u->row = (struct row){ .header = v->header,
		.interval_ns = v->interval_ns,
		.time_nanos = v->time_nanos,
		.duration_nanos = v->duration_nanos,
		.period = v->period,
		.n = v->n,
		.columns_n = v->columns_n,
		.stacks = u->ids,
		.label_sets = u->ids + v->n,
		.values = u->values };
	return ERR_OK;
}

void links_unpacked_release(struct links_unpacked *u)
{
	free(u->ids);
	free(u->values);
	*u = (struct links_unpacked){ 0 };
}
