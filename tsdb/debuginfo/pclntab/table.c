/*
 * Reading a table: its header, functions, pc tables. Offsets are compared with what holds them at
 * each read.
 */
#include "base/array.h"
#include "tsdb/debuginfo/pclntab/internal.h"

#define MAGIC_2 0xfffffffbu
#define MAGIC_16 0xfffffffau
#define MAGIC_18 0xfffffff0u
#define MAGIC_20 0xfffffff1u
#define FUNCTIONS_MAX (16u << 20)
#define STEPS_PER_BYTE 16u /* real programs take one */
#define STEPS_FREE (1u << 20)

#define PCDATA_INLINE_TREE 2u
#define FUNCDATA_INLINE_TREE 3u

static struct str pclntab_part_from(struct str s, uint64_t offset)
{
	return offset <= s.len ? (struct str){ s.ptr + offset, s.len - offset } : (struct str){ "", 0 };
}

static bool pclntab_read_version(struct pclntab_table *t)
{
	const unsigned char *p = (const unsigned char *)t->bytes.ptr;

	if (t->bytes.len < 16 || p[4] || p[5])
		return false;
	t->quantum = p[6];
	t->word = p[7];
	switch (pclntab_u32_at(t->bytes.ptr)) {
	case MAGIC_2:
		t->version = GO_2;
		break;
	case MAGIC_16:
		t->version = GO_16;
		break;
	case MAGIC_18:
		t->version = GO_18;
		break;
	case MAGIC_20:
		t->version = GO_20;
		break;
	default:
		return false;
	}
	t->field = t->version >= GO_18 ? 4 : t->word;
	return (t->quantum == 1 || t->quantum == 2 || t->quantum == 4) &&
		(t->word == 4 || t->word == 8);
}

/* Go 1.2: all offsets count from the header; the list of files is behind that of functions. */
static bool pclntab_read_parts_2(struct pclntab_table *t)
{
	struct str rest;

	t->names = t->pcs = t->functions = t->bytes;
	rest = pclntab_part_from(t->bytes, 8 + t->word + (t->functions_n * 2 + 1) * t->field);
	if (rest.len < 4)
		return false;
	t->files = t->bytes;
	t->units = pclntab_part_from(t->bytes, pclntab_u32_at(rest.ptr));
	return t->units.len >= 4;
}

/* Since Go 1.16 the header has their offsets. */
static bool pclntab_read_parts(struct pclntab_table *t)
{
	unsigned first = t->version >= GO_18 ? 3 : 2;
	struct str *const parts[] = { &t->names, &t->units, &t->files, &t->pcs, &t->functions };

	if (t->bytes.len < 8 + t->word * (first + 5))
		return false;
	for (unsigned i = 0; i < 5; i++) {
		uint64_t at = pclntab_word_at(t->bytes.ptr + 8 + t->word * (first + i), t->word);

		if (at < 8 + t->word * (first + 5) || at >= t->bytes.len)
			return false;
		*parts[i] = pclntab_part_from(t->bytes, at);
	}
	return true;
}

/* Where the list of functions begins: behind the header in Go 1.2. */
static struct str pclntab_list_of(const struct pclntab_table *t)
{
	return t->version == GO_2 ? pclntab_part_from(t->bytes, 8 + t->word) : t->functions;
}

bool table_init(struct str bytes, uint64_t address, struct pclntab_table *out)
{
	struct pclntab_table t = { .bytes = bytes, .address = address };
	struct pclntab_function f;

	if (!pclntab_read_version(&t) || bytes.len < 8 + 2 * t.word)
		return false;
	t.functions_n = pclntab_word_at(bytes.ptr + 8, t.word);
	if (!t.functions_n || t.functions_n > FUNCTIONS_MAX ||
		!(t.version == GO_2 ? pclntab_read_parts_2(&t) : pclntab_read_parts(&t)))
		return false;
	if (pclntab_list_of(&t).len < (t.functions_n * 2 + 1) * t.field)
		return false;
	for (uint64_t i = 0; i < t.functions_n && i < 16; i++)
		if (table_entry(&t, i) > table_entry(&t, i + 1))
			return false;
	t.steps_max = t.steps_left = STEPS_FREE + STEPS_PER_BYTE * (uint64_t)bytes.len;
	if (!table_function(&t, 0, &f))
		return false;
	*out = t;
	return true;
}

bool table_steps_take(struct pclntab_table *t, uint64_t n)
{
	if (n > t->steps_left) {
		t->steps_left = 0;
		return false;
	}
	t->steps_left -= n;
	return true;
}

uint64_t table_entry(const struct pclntab_table *t, uint64_t i)
{
	return pclntab_word_at(pclntab_list_of(t).ptr + i * 2 * t->field, t->field);
}

bool table_function(const struct pclntab_table *t, uint64_t i, struct pclntab_function *out)
{
	uint64_t from = table_entry(t, i), to = table_entry(t, i + 1);
	uint64_t at = pclntab_word_at(pclntab_list_of(t).ptr + (i * 2 + 1) * t->field, t->field);
	unsigned entry_bytes = t->version >= GO_18 ? 4 : t->word;
	unsigned head = t->version == GO_20 ? 40 : t->version == GO_2 ? 32 : 36;
	struct str s = pclntab_part_from(t->functions, at), more;
	uint32_t pcdata_n;
	const char *p;

	if (s.len < entry_bytes + head || from >= to || pclntab_word_at(s.ptr, entry_bytes) != from ||
		__builtin_add_overflow(t->text, from, &out->entry))
		return false;
	p = s.ptr + entry_bytes;
	out->bytes = to - from;
	out->name = pclntab_u32_at(p);
	out->pc_file = pclntab_u32_at(p + 16);
	out->pc_line = pclntab_u32_at(p + 20);
	pcdata_n = pclntab_u32_at(p + 24);
	out->unit = t->version >= GO_16 ? pclntab_u32_at(p + 28) : 0;
	out->start_line = t->version >= GO_20 ? pclntab_u32_at(p + 32) : 0;
	out->pc_tree = 0;
	out->tree = UINT32_MAX;
	more = pclntab_part_from(s, entry_bytes + head);
	if (t->version < GO_18 || pcdata_n <= PCDATA_INLINE_TREE || pcdata_n > more.len / 4 ||
		(unsigned char)p[head - 1] <= FUNCDATA_INLINE_TREE)
		return true;
	out->pc_tree = pclntab_u32_at(more.ptr + PCDATA_INLINE_TREE * 4);
	more = pclntab_part_from(more, (uint64_t)pcdata_n * 4);
	if (more.len >= (FUNCDATA_INLINE_TREE + 1) * 4)
		out->tree = pclntab_u32_at(more.ptr + FUNCDATA_INLINE_TREE * 4);
	return true;
}

enum err_code table_runs(struct pclntab_table *t, const struct pclntab_function *f, uint32_t at,
	struct pclntab_runs *out, struct err *err)
{
	struct cursor c = cursor_of(pclntab_part_from(t->pcs, at));
	uint32_t value = UINT32_MAX;
	uint64_t pc = 0;

	out->n = 0;
	while (at && pc < f->bytes) {
		uint64_t delta = cursor_varint(&c);

		if (!table_steps_take(t, 1))
			return err_set(err, ERR_LIMIT, "Go's table of functions needs more than %llu steps",
				(unsigned long long)t->steps_max);
		if (!delta && out->n)
			break;
		value += (uint32_t)str_unzigzag(delta);
		delta = cursor_varint(&c);
		if (c.bad || delta > UINT32_MAX || !delta)
			break;
		pc += delta * t->quantum;
		if (!array_room(&out->v, out->n, 1, &out->cap))
			return err_nomem(err, "Go's table of functions");
		out->v[out->n++] = (struct pclntab_run){ pc < f->bytes ? pc : f->bytes, (int32_t)value };
	}
	return ERR_OK;
}

bool table_text(struct pclntab_table *t, struct str from, uint64_t at, struct str *out)
{
	*out = pclntab_part_from(from, at);
	if (out->len > SYMINDEX_STRING_MAX)
		out->len = SYMINDEX_STRING_MAX;
	out->len = strnlen(out->ptr, out->len);
	return table_steps_take(t, out->len);
}

bool table_file(
	const struct pclntab_table *t, const struct pclntab_function *f, int32_t file, uint64_t *at)
{
	struct str entry;

	if (file < 0 || (t->version == GO_2 && file == 0))
		return false;
	entry = pclntab_part_from(t->units, ((uint64_t)f->unit + (uint32_t)file) * 4);
	if (entry.len < 4 || (t->version == GO_2 && (uint32_t)file >= pclntab_u32_at(t->units.ptr)))
		return false;
	*at = pclntab_u32_at(entry.ptr);
	return *at != UINT32_MAX && *at < t->files.len;
}

bool table_inlined_call(const struct pclntab_table *t, const struct pclntab_function *f, int32_t i,
	struct inlined_call *out)
{
	bool now = t->version >= GO_20;
	unsigned entry = now ? 16 : 20;
	struct str s;

	if (f->tree == UINT32_MAX || i < 0)
		return false;
	s = pclntab_part_from(t->inlined, f->tree + (uint64_t)(uint32_t)i * entry);
	if (s.len < entry)
		return false;
	out->name = pclntab_u32_at(s.ptr + (now ? 4 : 12));
	out->parent_pc = pclntab_u32_at(s.ptr + (now ? 8 : 16));
	out->start_line = now ? pclntab_u32_at(s.ptr + 12) : 0;
	return out->name < t->names.len && out->parent_pc < f->bytes;
}
