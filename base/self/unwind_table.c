/*
 * From an address to its frame description entry: .eh_frame_hdr has a sorted array of (function
 * start, FDE); the FDE names its CIE, the part that many functions share.
 */
#include "base/self/unwind_internal.h"

#define PE_OMIT 0xff

uint64_t unwind_fixed(struct cursor *c, size_t n)
{
	struct str s = cursor_bytes(c, n);
	uint64_t v = 0;

	if (s.len == n)
		memcpy(&v, s.ptr, n); /* x86-64 is little endian */
	return v;
}

int64_t unwind_sleb(struct cursor *c)
{
	uint64_t v = 0;
	unsigned shift = 0;
	unsigned char byte;

	do {
		byte = (unsigned char)unwind_fixed(c, 1);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !c->bad && shift < 70);
	if ((byte & 0x40) && shift < 64)
		v |= ~UINT64_C(0) << shift;
	return (int64_t)v;
}

uint64_t unwind_encoded(struct cursor *c, unsigned char encoding, uint64_t data_base)
{
	uint64_t at = (uint64_t)(uintptr_t)c->at, v;

	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		v = unwind_fixed(c, 8);
		break;
	case 0x01:
		v = cursor_varint(c);
		break;
	case 0x02:
		v = unwind_fixed(c, 2);
		break;
	case 0x03:
		v = unwind_fixed(c, 4);
		break;
	case 0x09:
		v = (uint64_t)unwind_sleb(c);
		break;
	case 0x0a:
		v = (uint64_t)(int16_t)unwind_fixed(c, 2);
		break;
	case 0x0b:
		v = (uint64_t)(int32_t)unwind_fixed(c, 4);
		break;
	default:
		c->bad = true;
		return 0;
	}
	switch (encoding & 0x70) {
	case 0x00:
		return v;
	case 0x10:
		return v + at;
	case 0x30:
		return v + data_base;
	default:
		c->bad = true;
		return 0;
	}
}

static struct cursor cursor_at(const struct unwind_object *o, uint64_t address)
{
	const unsigned char *p = (const unsigned char *)(uintptr_t)address;
	bool inside = p >= (const unsigned char *)(uintptr_t)o->bias && p < o->image_end;

	return (struct cursor){ inside ? p : o->image_end, o->image_end, !inside };
}

static bool unwind_table_parse_cie(const struct unwind_object *o, uint64_t address, struct cie *cie)
{
	struct cursor c = cursor_at(o, address), body;
	struct str augmentation;
	uint64_t len = unwind_fixed(&c, 4);

	body = cursor_of(cursor_bytes(&c, len));
	if (c.bad || unwind_fixed(&body, 4) != 0)
		return false;
	unwind_fixed(&body, 1); /* version: 1, and 3 in some objects; both read alike here but for
				   the return column */
	augmentation.ptr = (const char *)body.at;
	augmentation.len = strnlen(augmentation.ptr, cursor_left(&body));
	cursor_bytes(&body, augmentation.len + 1);
	*cie = (struct cie){ .code_align = cursor_varint(&body) };
	cie->data_align = unwind_sleb(&body);
	cie->return_reg = cursor_varint(&body);
	for (size_t i = 0; i < augmentation.len; i++) {
		switch (augmentation.ptr[i]) {
		case 'z':
			cie->augmented = true;
			cursor_varint(&body);
			break;
		case 'R':
			cie->fde_encoding = (unsigned char)unwind_fixed(&body, 1);
			break;
		case 'P':
			unwind_encoded(&body, (unsigned char)unwind_fixed(&body, 1) & 0x7f, 0);
			break;
		case 'L':
			unwind_fixed(&body, 1);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		default:
			return false;
		}
	}
	cie->program = (struct str){ (const char *)body.at, cursor_left(&body) };
	return !body.bad && cie->return_reg < UNWIND_REGS;
}

static bool unwind_table_parse_fde(const struct unwind_object *o, uint64_t address, struct fde *fde)
{
	struct cursor c = cursor_at(o, address), body;
	uint64_t len = unwind_fixed(&c, 4), cie_at, cie_distance;

	cie_at = (uint64_t)(uintptr_t)c.at;
	body = cursor_of(cursor_bytes(&c, len));
	cie_distance = unwind_fixed(&body, 4);
	if (c.bad || body.bad || !cie_distance ||
		!unwind_table_parse_cie(o, cie_at - cie_distance, &fde->cie))
		return false;
	fde->start = unwind_encoded(&body, fde->cie.fde_encoding, 0);
	fde->len = unwind_encoded(&body, fde->cie.fde_encoding & 0x0f, 0);
	if (fde->cie.augmented)
		cursor_lenstr(&body);
	fde->program = (struct str){ (const char *)body.at, cursor_left(&body) };
	return !body.bad;
}

/* The FDE by binary search in .eh_frame_hdr; its table is (int32 start, int32 FDE), both from the
 * header. */
bool unwind_find(const struct unwind_object *o, uint64_t pc, struct fde *fde)
{
	uint64_t base = (uint64_t)(uintptr_t)o->eh_frame_hdr, count, lo = 0, hi, mid;
	struct cursor c = cursor_of((struct str){ (const char *)o->eh_frame_hdr, o->eh_frame_hdr_len });
	unsigned char version = (unsigned char)unwind_fixed(&c, 1),
				  frame = (unsigned char)unwind_fixed(&c, 1);
	unsigned char count_encoding = (unsigned char)unwind_fixed(&c, 1),
				  table = (unsigned char)unwind_fixed(&c, 1);
	const unsigned char *rows;
	int32_t pair[2];

	if (version != 1 || table != 0x3b || count_encoding == PE_OMIT)
		return false;
	unwind_encoded(&c, frame, base);
	count = unwind_encoded(&c, count_encoding, base);
	if (c.bad || !count || count > cursor_left(&c) / sizeof(pair))
		return false;
	rows = c.at;
	for (hi = count; hi - lo > 1;) {
		mid = lo + (hi - lo) / 2;
		memcpy(pair, rows + mid * sizeof(pair), sizeof(pair));
		if (base + (uint64_t)(int64_t)pair[0] <= pc)
			lo = mid;
		else
			hi = mid;
	}
	memcpy(pair, rows + lo * sizeof(pair), sizeof(pair));
	if (base + (uint64_t)(int64_t)pair[0] > pc)
		return false;
	return unwind_table_parse_fde(o, base + (uint64_t)(int64_t)pair[1], fde) && pc >= fde->start &&
		pc - fde->start < fde->len;
}
