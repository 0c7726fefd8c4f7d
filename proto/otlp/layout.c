/*
 * How samples are numbered. 1.8 and 1.9 have {1 stack, 2 values, 3 attributes, 4 link, 5 times},
 * 1.10 and later {1 stack, 2 attributes, 3 link, 4 values, 5 times}.
 *
 * Fields 3 and 4 tell by their wire types: a link is one number, the others are packed. But the
 * eBPF profiler sends neither, only fields 1, 2 and 5. Then the contents tell: a sample needs a
 * value per time or one in all, and if it has no values, times; an attribute must exist. The old
 * numbering is taken only if it fits all samples of the request and the new one does not.
 */
#include "proto/otlp/decoder.h"

/* Numbers in a repeated field, and whether one of them is no attribute. */
static bool otlp_count_numbers(
	const struct otlp_field *f, uint32_t attributes_n, uint64_t *n, bool *odd)
{
	wire_pos at = f->begin;
	uint64_t v;

	if ((f->tag & 7) == WIRE_VARINT) {
		++*n;
		*odd = *odd || f->number >= attributes_n;
		return true;
	}
	while (at < f->end) {
		if (!(at = wire_varint(at, f->end, &v)))
			return false;
		++*n;
		*odd = *odd || v >= attributes_n;
	}
	return true;
}

static enum err_code otlp_look_at_sample(
	struct otlp_decoder *d, struct otlp_layout *l, wire_pos at, wire_pos end)
{
	uint64_t second = 0, times = 0;
	struct otlp_field f;
	bool odd = false, is_old, is_new;

	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		switch (f.tag) {
		case WIRE_TAG(3, WIRE_BYTES):
		case WIRE_TAG(4, WIRE_VARINT):
		case WIRE_TAG(3, WIRE_VARINT):
		case WIRE_TAG(4, WIRE_BYTES):
			l->known = true;
			l->old = f.tag == WIRE_TAG(3, WIRE_BYTES) || f.tag == WIRE_TAG(4, WIRE_VARINT);
			return ERR_OK;
		case WIRE_TAG(2, WIRE_BYTES):
		case WIRE_TAG(2, WIRE_VARINT):
			if (!otlp_count_numbers(&f, l->attributes_n, &second, &odd))
				return otlp_wire_fail(d);
			break;
		case WIRE_TAG(5, WIRE_BYTES):
			times += (uint64_t)(f.end - f.begin) / 8;
			break;
		case WIRE_TAG(5, WIRE_FIXED64):
			times++;
			break;
		default:
			break;
		}
	}
	is_old = second ? second == times || (second == 1 && !times) : times;
	is_new = times && !odd;
	if (is_old || is_new) { /* else it is wrong either way */
		l->old_ok = l->old_ok && is_old;
		l->new_ok = l->new_ok && is_new;
	}
	return ERR_OK;
}

enum err_code otlp_layout_look(struct otlp_decoder *d, struct otlp_layout *l, struct str profile)
{
	wire_pos at = (wire_pos)profile.ptr, end = at + profile.len;
	struct otlp_field f;
	enum err_code rc;

	while (at < end && !l->known) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag != WIRE_TAG(2, WIRE_BYTES))
			continue;
		if ((rc = otlp_look_at_sample(d, l, f.begin, f.end)))
			return rc;
		if (!l->old_ok) /* the usual case: the first sample ends it */
			l->known = true;
	}
	return ERR_OK;
}
