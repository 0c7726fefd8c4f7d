/*
 * LabelsSnapshot: what the contexts of events mean. Maps of protobuf, entries {1 key, 2 value}:
 *
 *	1 contexts: id of a context -> {1 labels: id of a string -> id of a string}
 *	2 strings: id -> text
 *
 * The agent makes a new context each time that labels are set, so many have the same labels.
 * Those are one label set here. If a key is given twice the last one counts, as in protobuf.
 */
#include "base/array.h"
#include "proto/jfr/decoder.h"
#include "proto/wire.h"

static enum err_code jfr_bad(struct jfr_decoder *d, const char *where)
{
	return err_set(d->err, ERR_INVALID, "labels: %s: not well-formed", where);
}

/* An entry of a map: its key, and its value as a number or as bytes. */
static bool jfr_labels_entry(
	wire_pos at, wire_pos end, uint64_t *key, uint64_t *number, struct str *bytes)
{
	*key = *number = 0;
	*bytes = STR("");
	while (at && at < end) {
		uint64_t tag;
		size_t len;

		if (!(at = wire_varint(at, end, &tag)))
			return false;
		if (tag == WIRE_TAG(1, WIRE_VARINT)) {
			at = wire_varint(at, end, key);
		} else if (tag == WIRE_TAG(2, WIRE_VARINT)) {
			at = wire_varint(at, end, number);
		} else if (tag == WIRE_TAG(2, WIRE_BYTES)) {
			if ((at = wire_bytes(at, end, &len))) {
				*bytes = (struct str){ (const char *)at, len };
				at += len;
			}
		} else {
			at = wire_skip(tag, at, end);
		}
	}
	return at;
}

/* The next entry of field 1 to fields_n; 0: the end; -1: not well-formed. */
static int jfr_labels_next(wire_pos *at, wire_pos end, unsigned fields_n, struct str *message)
{
	while (*at < end) {
		uint64_t tag;
		size_t len;

		if (!(*at = wire_varint(*at, end, &tag)))
			return -1;
		if ((tag & 7) == WIRE_BYTES && tag >> 3 >= 1 && tag >> 3 <= fields_n) {
			if (!(*at = wire_bytes(*at, end, &len)))
				return -1;
			*message = (struct str){ (const char *)*at, len };
			*at += len;
			return (int)(tag >> 3);
		}
		if (!(*at = wire_skip(tag, *at, end)))
			return -1;
	}
	return 0;
}

enum err_code jfr_labels_open(struct jfr_decoder *d)
{
	struct str raw = d->options->labels.len ? d->options->labels : STR("");
	wire_pos begin = (wire_pos)raw.ptr, end = begin + raw.len, at;
	uint32_t counts[3] = { 0 }, left[3];
	struct jfr_snapshot_item *items[3] = { 0 };
	struct str message;
	enum err_code rc;
	uint64_t number;
	int field;

	if (!arena_array_room(&d->work, &d->label_sets, 0, 1, &d->label_sets_cap))
		return arena_fail(&d->work, "labels", d->err);
	d->label_sets[d->label_sets_n++] = (struct jfr_label_set){ 0 };
	for (at = begin; (field = jfr_labels_next(&at, end, 2, &message)) > 0;)
		if (++counts[field] > d->limits->elements_max)
			return err_set(d->err, ERR_LIMIT, "labels: more than %u %s", d->limits->elements_max,
				field == 1 ? "contexts" : "strings");
	if (field < 0)
		return jfr_bad(d, "snapshot");
	for (field = 1; field <= 2; field++) {
		left[field] = counts[field];
		if (!(items[field] = arena_array(
				  &d->work, struct jfr_snapshot_item, counts[field] ? counts[field] : 1)))
			return arena_fail(&d->work, "labels", d->err);
	}
	/* From the end, since the index finds the first of two. */
	for (at = begin; (field = jfr_labels_next(&at, end, 2, &message)) > 0;) {
		struct jfr_snapshot_item *item = &items[field][--left[field]];
		wire_pos of = (wire_pos)message.ptr;

		if (!jfr_labels_entry(of, of + message.len, &item->id, &number, &item->bytes))
			return jfr_bad(d, field == 1 ? "a context" : "a string");
	}
	d->contexts = items[1];
	d->strings = items[2];
	rc = jfr_index_init(
		&d->contexts_by_id, d, &d->work, d->contexts, sizeof(*d->contexts), counts[1]);
	return rc ?
		rc :
		jfr_index_init(&d->strings_by_id, d, &d->work, d->strings, sizeof(*d->strings), counts[2]);
}

enum err_code jfr_snapshot_name(struct jfr_decoder *d, uint64_t id, uint32_t *out)
{
	uint32_t i = jfr_index_find(&d->strings_by_id, id);
	struct jfr_snapshot_item *item;
	enum err_code rc;

	*out = 0;
	if (i == JFR_NONE)
		return ERR_OK;
	item = &d->strings[i];
	if (!item->memo) {
		if (item->bytes.len > d->limits->string_bytes_max)
			return err_set(d->err, ERR_LIMIT, "labels: a string of %zu bytes, limit %u",
				item->bytes.len, d->limits->string_bytes_max);
		if ((rc = jfr_name(d, item->bytes, out)))
			return rc;
		item->memo = *out + 1;
	}
	*out = item->memo - 1;
	return ERR_OK;
}

struct set_key {
	const struct jfr_label *labels;
	uint32_t n;
};

static bool jfr_set_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct jfr_decoder *d = ctx;
	const struct set_key *k = key;
	const struct jfr_label_set *s = &d->label_sets[id];

	return s->n == k->n && !memcmp(d->labels + s->first, k->labels, k->n * sizeof(*k->labels));
}

/* The last n labels as a set, n > 0. They go again if there is one like it. */
static enum err_code jfr_add_set(struct jfr_decoder *d, uint32_t n, uint32_t *out)
{
	struct set_key key = { d->labels + d->labels_n - n, n };
	uint64_t hash = hash_bytes(key.labels, n * sizeof(*key.labels), d->seed);

	*out = map_find(&d->label_sets_map, hash, jfr_set_eq, d, &key);
	if (*out != MAP_NONE) {
		d->labels_n -= n;
		return ERR_OK;
	}
	if (!arena_array_room(&d->work, &d->label_sets, d->label_sets_n, 1, &d->label_sets_cap))
		return arena_fail(&d->work, "labels", d->err);
	if (!map_add(&d->label_sets_map, hash, d->label_sets_n))
		return err_nomem(d->err, "labels");
	d->label_sets[d->label_sets_n] = (struct jfr_label_set){ d->labels_n - n, n };
	*out = d->label_sets_n++;
	return ERR_OK;
}

/* Into the labels from `first` on, by key; the later of two takes the place. */
static enum err_code jfr_add_label(struct jfr_decoder *d, uint32_t first, struct jfr_label l)
{
	uint32_t i = d->labels_n;

	while (i > first && str_cmp(d->names[d->labels[i - 1].key], d->names[l.key]) > 0)
		i--;
	if (i > first && d->labels[i - 1].key == l.key) {
		d->labels[i - 1] = l;
		return ERR_OK;
	}
	if (d->labels_n - first >= d->limits->labels_max)
		return err_set(
			d->err, ERR_LIMIT, "labels: a context of more than %u", d->limits->labels_max);
	if (!arena_array_room(&d->work, &d->labels, d->labels_n, 1, &d->labels_cap))
		return arena_fail(&d->work, "labels", d->err);
	memmove(&d->labels[i + 1], &d->labels[i], (d->labels_n - i) * sizeof(l));
	d->labels[i] = l;
	d->labels_n++;
	return ERR_OK;
}

static enum err_code jfr_read_context(struct jfr_decoder *d, struct jfr_snapshot_item *item)
{
	wire_pos at = (wire_pos)item->bytes.ptr, end = at + item->bytes.len;
	uint32_t first = d->labels_n, set = 0;
	struct str message, ignored;
	uint64_t key, value;
	struct jfr_label l;
	enum err_code rc;
	int more;

	while ((more = jfr_labels_next(&at, end, 1, &message)) > 0) {
		wire_pos of = (wire_pos)message.ptr;

		if (!jfr_labels_entry(of, of + message.len, &key, &value, &ignored))
			return jfr_bad(d, "a context");
		if ((rc = jfr_snapshot_name(d, key, &l.key)) ||
			(rc = jfr_snapshot_name(d, value, &l.value)))
			return rc;
		item->lossy |= jfr_index_find(&d->strings_by_id, key) == JFR_NONE ||
			jfr_index_find(&d->strings_by_id, value) == JFR_NONE;
		if (l.key && l.value && (rc = jfr_add_label(d, first, l))) /* an empty one is none */
			return rc;
	}
	if (more < 0)
		return jfr_bad(d, "a context");
	if (d->labels_n > first && (rc = jfr_add_set(d, d->labels_n - first, &set)))
		return rc;
	item->memo = set + 1;
	return ERR_OK;
}

enum err_code jfr_context(struct jfr_decoder *d, uint64_t context, uint32_t *label_set, bool *lost)
{
	uint32_t i = context ? jfr_index_find(&d->contexts_by_id, context) : JFR_NONE;
	enum err_code rc;

	*label_set = 0;
	*lost = context && i == JFR_NONE;
	if (i == JFR_NONE)
		return ERR_OK;
	if (!d->contexts[i].memo && (rc = jfr_read_context(d, &d->contexts[i])))
		return rc;
	*label_set = d->contexts[i].memo - 1;
	*lost = d->contexts[i].lossy;
	return ERR_OK;
}
