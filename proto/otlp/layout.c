/*
 * Which release numbered a request's fields. Nothing in a request says so:
 *
 *	before 1.8  profile: 3 location_indices*, 5 duration, 6 period_type; sample: 5 link
 *	1.8         sample: 1 stack, 2 values*, 3 attributes*, 4 link, 5 times*;
 *	            profile: 7 comments*, 8 id, 9 dropped, 10 format, 11 payload, 12 attributes*
 *	1.9         sample: as 1.8; profile: 7 id, 8 dropped, 9 format, 10 payload, 11 attributes*
 *	since 1.10  sample: 1 stack, 2 attributes*, 3 link, 4 values*, 5 times*
 *
 * A wire type tells only where no release has a list there: each list (*) of numbers may be packed
 * or not, so a number in field 3 or 4 may be an attribute, a value or a link. A list in place of
 * one number is proof, so releases before 1.8 are known by the first field that is one.
 *
 * Samples are judged by their contents, all of the request: under a numbering a sample is right if
 * it has a value per time, or one in all, or times alone; if its attributes are in their table and
 * have keys; and if it has at most one link, which is in its table. The numbering is taken under
 * which more samples are right; then the one under which more have their link as one number; then
 * 1.8's if a profile is numbered as 1.8's; then the new one.
 */
#include <inttypes.h>

#include "proto/otlp/decoder.h"

/* What a field of a sample holds, whichever field it is. */
struct otlp_list {
	uint64_t n;
	bool packed, no_attribute, no_link; /* one of them cannot be that */
};

static void otlp_list_add(const struct otlp_decoder *d, struct otlp_list *l, uint64_t value)
{
	const struct otlp_dictionary *t = &d->d;

	l->n++;
	if (!value)
		return;
	l->no_attribute = l->no_attribute || value >= t->attributes_n || !t->attributes[value].key;
	l->no_link = l->no_link || value >= t->links_n;
}

static bool otlp_list_take(
	const struct otlp_decoder *d, struct otlp_list *l, const struct otlp_field *f)
{
	wire_pos at = f->begin;
	uint64_t v;

	if ((f->tag & 7) == WIRE_VARINT) {
		otlp_list_add(d, l, f->number);
		return true;
	}
	if ((f->tag & 7) != WIRE_BYTES)
		return false;
	l->packed = true;
	while (at < f->end) {
		if (!(at = otlp_varint(at, f->end, d->safe, &v)))
			return false;
		otlp_list_add(d, l, v);
	}
	return true;
}

static void otlp_layout_judge(struct otlp_numbering *n, uint64_t times,
	const struct otlp_list *values, const struct otlp_list *attributes,
	const struct otlp_list *link)
{
	bool one_link = !link->packed && link->n <= 1;

	n->shaped += one_link;
	n->right += one_link && !link->no_link && !attributes->no_attribute &&
		(values->n ? values->n == times || (values->n == 1 && !times) : times);
}

static enum err_code otlp_layout_look_at_sample(
	struct otlp_decoder *d, struct otlp_layout *l, wire_pos at, wire_pos end)
{
	struct otlp_list lists[5] = { 0 }; /* by field */
	uint64_t times = 0;
	struct otlp_field f;

	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		switch (f.tag >> 3) {
		case 2:
		case 3:
		case 4:
			if (!otlp_list_take(d, &lists[f.tag >> 3], &f))
				return otlp_wire_fail(d);
			break;
		case 5:
			if ((f.tag & 7) == WIRE_VARINT)
				return otlp_too_old(d->err, "field 5 of a sample is not its timestampsUnixNano");
			times += (uint64_t)(f.end - f.begin) / 8;
			break;
		default:
			break;
		}
	}
	otlp_layout_judge(&l->old, times, &lists[2], &lists[3], &lists[4]);
	otlp_layout_judge(&l->new, times, &lists[4], &lists[2], &lists[3]);
	return ERR_OK;
}

/* Fields of profiles with the type that they had before 1.8, and with no other since. */
static enum err_code otlp_layout_check_age(struct otlp_decoder *d, const struct otlp_field *f)
{
	switch (f->tag) {
	case WIRE_TAG(2, WIRE_FIXED64):
		return otlp_too_old(d->err, "field 2 of a profile is not its samples");
	case WIRE_TAG(3, WIRE_VARINT):
	case WIRE_TAG(3, WIRE_BYTES):
		return otlp_too_old(d->err, "field 3 of a profile is not its timeUnixNano");
	case WIRE_TAG(4, WIRE_BYTES):
		return otlp_too_old(d->err, "field 4 of a profile is not its durationNano");
	case WIRE_TAG(5, WIRE_VARINT):
		return otlp_too_old(d->err, "field 5 of a profile is not its periodType");
	case WIRE_TAG(6, WIRE_BYTES):
		return otlp_too_old(d->err, "field 6 of a profile is not its period");
	default:
		return ERR_OK;
	}
}

/* Whether 1.8's comments are there, or moved a field by one. */
static bool otlp_layout_is_18(const struct otlp_field *f)
{
	size_t len = (size_t)(f->end - f->begin);
	bool bytes = (f->tag & 7) == WIRE_BYTES;

	switch (f->tag >> 3) {
	case 7: /* else an id, which has 16 bytes */
		return !bytes || (len && len != OTLP_ID_BYTES);
	case 8:
		return bytes;
	case 9:
		return !bytes;
	case 12:
		return true;
	default:
		return false;
	}
}

enum err_code otlp_layout_look(struct otlp_decoder *d, struct otlp_layout *l, struct str profile)
{
	wire_pos at = (wire_pos)profile.ptr, end = at + profile.len;
	bool has_9 = false, has_10 = false;
	struct otlp_field f;
	enum err_code rc;

	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag == WIRE_TAG(2, WIRE_BYTES))
			rc = otlp_layout_look_at_sample(d, l, f.begin, f.end);
		else
			rc = otlp_layout_check_age(d, &f);
		if (rc)
			return rc;
		l->is_18 = l->is_18 || otlp_layout_is_18(&f);
		has_9 = has_9 || f.tag == WIRE_TAG(9, WIRE_BYTES);
		has_10 = has_10 || f.tag == WIRE_TAG(10, WIRE_BYTES);
	}
	l->is_18 = l->is_18 || (has_10 && !has_9); /* a format, or a payload without one */
	return ERR_OK;
}

enum otlp_numbers otlp_layout_decide(const struct otlp_layout *l)
{
	bool old = l->old.right != l->new.right ? l->old.right > l->new.right :
		l->old.shaped != l->new.shaped      ? l->old.shaped > l->new.shaped :
											  l->is_18;

	return !old ? OTLP_AS_1_10 : l->is_18 ? OTLP_AS_1_8 : OTLP_AS_1_9;
}
