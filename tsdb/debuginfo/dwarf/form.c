#include "tsdb/debuginfo/dwarf/format.h"
#include "tsdb/debuginfo/dwarf/internal.h"

/* Bytes of forms whose size never changes; 0: another form. */
static unsigned form_bytes(uint16_t form)
{
	switch (form) {
	case FORM_DATA1:
	case FORM_REF1:
	case FORM_FLAG:
	case FORM_STRX1:
	case FORM_ADDRX1:
		return 1;
	case FORM_DATA2:
	case FORM_REF2:
	case FORM_STRX2:
	case FORM_ADDRX2:
		return 2;
	case FORM_STRX3:
	case FORM_ADDRX3:
		return 3;
	case FORM_DATA4:
	case FORM_REF4:
	case FORM_STRX4:
	case FORM_ADDRX4:
	case FORM_REF_SUP4:
		return 4;
	case FORM_DATA8:
	case FORM_REF8:
	case FORM_REF_SIG8:
	case FORM_REF_SUP8:
		return 8;
	case FORM_DATA16:
		return 16;
	}
	return 0;
}

static bool form_is_offset(uint16_t form)
{
	return form == FORM_STRP || form == FORM_SEC_OFFSET || form == FORM_LINE_STRP ||
		form == FORM_STRP_SUP || form == FORM_GNU_REF_ALT || form == FORM_GNU_STRP_ALT;
}

static unsigned dwarf_ref_addr_bytes(struct dwarf_encoding enc)
{
	return enc.version <= 2 ? enc.address_bytes : enc.offset_bytes;
}

bool form_fixed(uint16_t form, struct abbrev *a)
{
	unsigned bytes = form_bytes(form);

	if (bytes)
		a->fixed_bytes += bytes;
	else if (form == FORM_ADDR)
		a->fixed_addresses++;
	else if (form_is_offset(form))
		a->fixed_offsets++;
	else if (form == FORM_REF_ADDR)
		a->fixed_ref_addrs++;
	else if (form != FORM_FLAG_PRESENT && form != FORM_IMPLICIT_CONST)
		return false;
	return true;
}

static void dwarf_skip_bytes(struct cursor *c, uint64_t n)
{
	if (n > cursor_left(c)) {
		c->bad = true;
		c->at = c->end;
	} else {
		c->at += n;
	}
}

static uint64_t dwarf_block_bytes(struct cursor *c, uint16_t form)
{
	switch (form) {
	case FORM_BLOCK1:
		return cursor_le(c, 1);
	case FORM_BLOCK2:
		return cursor_le(c, 2);
	case FORM_BLOCK4:
		return cursor_le(c, 4);
	}
	return cursor_varint(c); /* BLOCK, EXPRLOC */
}

void form_read(
	struct cursor *c, struct dwarf_encoding enc, const struct attr *a, struct dwarf_value *out)
{
	uint16_t form = a->form;
	unsigned bytes;

	*out = (struct dwarf_value){ 0 };
	if (form == FORM_INDIRECT) {
		uint64_t named = cursor_varint(c);

		form = named > UINT16_MAX || named == FORM_INDIRECT || named == FORM_IMPLICIT_CONST ?
			0 :
			(uint16_t)named;
	}
	out->form = form;
	if (form == FORM_DATA16) {
		dwarf_skip_bytes(c, 16);
		return;
	}
	if ((bytes = form_bytes(form))) {
		out->u = cursor_le(c, bytes);
		return;
	}
	if (form == FORM_ADDR || form_is_offset(form) || form == FORM_REF_ADDR) {
		bytes = form == FORM_ADDR ? enc.address_bytes :
			form == FORM_REF_ADDR ? dwarf_ref_addr_bytes(enc) :
									enc.offset_bytes;
		out->u = cursor_le(c, bytes);
		return;
	}
	switch (form) {
	case FORM_STRING:
		out->s = cursor_cstr(c);
		break;
	case FORM_SDATA:
		out->u = (uint64_t)cursor_sleb(c);
		break;
	case FORM_UDATA:
	case FORM_REF_UDATA:
	case FORM_STRX:
	case FORM_ADDRX:
	case FORM_LOCLISTX:
	case FORM_RNGLISTX:
	case FORM_GNU_ADDR_INDEX:
	case FORM_GNU_STR_INDEX:
		out->u = cursor_varint(c);
		break;
	case FORM_FLAG_PRESENT:
		out->u = 1;
		break;
	case FORM_IMPLICIT_CONST:
		out->u = (uint64_t)a->implicit;
		break;
	case FORM_BLOCK:
	case FORM_BLOCK1:
	case FORM_BLOCK2:
	case FORM_BLOCK4:
	case FORM_EXPRLOC:
		dwarf_skip_bytes(c, dwarf_block_bytes(c, form));
		break;
	default: /* its size is not known, nor is where the next one begins */
		c->bad = true;
	}
}

void form_skip(struct cursor *c, struct dwarf_encoding enc, uint16_t form)
{
	struct attr a = { .form = form };
	struct dwarf_value v;
	unsigned bytes = form_bytes(form);

	if (bytes)
		dwarf_skip_bytes(c, bytes);
	else
		form_read(c, enc, &a, &v);
}

bool value_is_address(const struct dwarf_value *v)
{
	switch (v->form) {
	case FORM_ADDR:
	case FORM_ADDRX:
	case FORM_ADDRX1:
	case FORM_ADDRX2:
	case FORM_ADDRX3:
	case FORM_ADDRX4:
	case FORM_GNU_ADDR_INDEX:
		return true;
	}
	return false;
}

/* base + index * bytes; UINT64_MAX where that overflows, which is in no section. */
static uint64_t dwarf_item_offset(uint64_t base, uint64_t index, unsigned bytes)
{
	uint64_t at;

	if (__builtin_mul_overflow(index, bytes, &at) || __builtin_add_overflow(at, base, &at))
		return UINT64_MAX;
	return at;
}

bool address_at(
	const struct dwarf_file *f, const struct dwarf_unit *u, uint64_t index, uint64_t *out)
{
	struct cursor c = dwarf_bytes(
		f, SEC_ADDR, dwarf_item_offset(u->addr_base, index, u->enc.address_bytes));

	*out = cursor_le(&c, u->enc.address_bytes);
	return !c.bad;
}

bool value_address(const struct dwarf_file *f, const struct dwarf_unit *u,
	const struct dwarf_value *v, uint64_t *out)
{
	if (v->form != FORM_ADDR)
		return value_is_address(v) && address_at(f, u, v->u, out);
	*out = v->u;
	return true;
}

bool value_string(const struct dwarf_reader *r, const struct dwarf_file *f,
	const struct dwarf_unit *u, const struct dwarf_value *v, struct str *out)
{
	enum section s = SEC_STR;
	uint64_t offset = v->u;
	struct cursor c;

	switch (v->form) {
	case FORM_STRING:
		*out = v->s;
		return true;
	case FORM_STRP:
		break;
	case FORM_LINE_STRP:
		s = SEC_LINE_STR;
		break;
	case FORM_STRP_SUP:
	case FORM_GNU_STRP_ALT:
		if (f->kind == FILE_ALT || !r->has_alt) {
			r->stats->references_lost++;
			return false;
		}
		f = &r->alt;
		break;
	case FORM_STRX:
	case FORM_STRX1:
	case FORM_STRX2:
	case FORM_STRX3:
	case FORM_STRX4:
	case FORM_GNU_STR_INDEX:
		c = dwarf_bytes(
			f, SEC_STR_OFFSETS, dwarf_item_offset(u->str_base, v->u, u->enc.offset_bytes));
		offset = cursor_le(&c, u->enc.offset_bytes);
		if (c.bad)
			return false;
		break;
	default:
		return false;
	}
	c = dwarf_bytes(f, s, offset);
	*out = cursor_cstr(&c);
	return !c.bad;
}
