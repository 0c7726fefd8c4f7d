#include "tests/tsdb/debuginfo/pclntab/made.h"

#include <elf.h>

/* Places in the file; addresses are those and MADE_BASE. */
#define MADE_BASE UINT64_C(0x400000)
#define TEXT_AT 0x1000u
#define TEXT_BYTES 0x100u
#define TABLE_AT 0x1100u
#define INLINED_AT 0x1500u
#define DATA_AT 0x1580u
#define END_AT 0x1780u
#define NAMES_AT 0x1800u

struct maker {
	const struct made_options *o;
	struct buf *out;
	unsigned word;
};

static void add_u32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, 4);
}

static void add_word(struct maker *m, struct buf *b, uint64_t v)
{
	buf_add(b, &v, m->word);
}

static void fill_to(struct buf *b, size_t at)
{
	while (b->len < at)
		buf_add_char(b, '\0');
}

static uint32_t add_text(struct buf *b, const char *s)
{
	uint32_t at = (uint32_t)b->len;

	buf_add(b, s, strlen(s) + 1);
	return at;
}

struct value {
	uint32_t end;
	int32_t value;
};

static uint32_t add_values(struct buf *b, const struct value *v, size_t n)
{
	uint32_t at = (uint32_t)b->len, pc = 0;
	int32_t now = -1;

	for (size_t i = 0; i < n; i++) {
		buf_add_varint(b, str_zigzag(v[i].value - now));
		buf_add_varint(b, v[i].end - pc);
		now = v[i].value;
		pc = v[i].end;
	}
	buf_add_char(b, '\0');
	return at;
}

#define VALUES(b, ...) \
	add_values(b, (const struct value[]){ __VA_ARGS__ }, \
		sizeof((const struct value[]){ __VA_ARGS__ }) / sizeof(struct value))

struct parts {
	struct buf names, files, pcs;
	uint32_t name[5], file[2]; /* f, g, h, k, main; a.go, b.go */
	uint32_t pc_file, pc_line, pc_tree, main_file, main_line;
};

static void fill_parts(const struct made_options *o, struct parts *p)
{
	static const char *const names[] = { "main.f", "main.g", "main.h", "main.k", "main.main" };
	int32_t a = o->version == 2; /* numbers of files begin with 1 there */

	add_text(&p->names, "go:buildid");
	for (unsigned i = 0; i < 5; i++)
		p->name[i] = add_text(&p->names, names[i]);
	p->file[0] = add_text(&p->files, "/src/a.go");
	p->file[1] = add_text(&p->files, "/src/b.go");
	buf_add_char(&p->pcs, '\0');
	p->pc_file = VALUES(&p->pcs, { 16, a }, { 40, a + 1 }, { 64, a });
	p->pc_line = VALUES(&p->pcs, { 16, 10 }, { 32, 20 }, { 40, 30 }, { 64, 12 });
	p->pc_tree = VALUES(&p->pcs, { 16, -1 }, { 32, 0 }, { 40, 1 }, { 64, -1 });
	p->main_file = VALUES(&p->pcs, { 32, a });
	p->main_line = VALUES(&p->pcs, { 32, 5 });
}

/* base: what offsets in Go 1.2's table count from. */
static void add_function(struct maker *m, struct buf *b, const struct parts *p, uint64_t entry,
	unsigned name, const uint32_t base[3])
{
	unsigned version = m->o->version;
	bool is_main = name == 4;

	if (version >= 18)
		add_u32(b, (uint32_t)entry);
	else
		add_word(m, b, MADE_TEXT + MADE_CODE_AT + entry);
	add_u32(b, p->name[name] + base[0]);
	add_u32(b, 0);
	add_u32(b, 0);
	add_u32(b, 0);
	add_u32(b, (is_main ? p->main_file : p->pc_file) + base[2]);
	add_u32(b, (is_main ? p->main_line : p->pc_line) + base[2]);
	add_u32(b, 3); /* pcdata */
	if (version >= 16)
		add_u32(b, 0);
	if (version >= 20)
		add_u32(b, 3);
	buf_add(b, "\0\0\0\4", 4); /* funcdata: 4 */
	add_u32(b, 0);
	add_u32(b, 0);
	add_u32(b, is_main ? 0 : p->pc_tree + base[2]);
	for (unsigned i = 0; i < 3; i++)
		add_u32(b, UINT32_MAX);
	add_u32(b, is_main ? UINT32_MAX : 0);
}

static const struct {
	uint32_t entry;
	unsigned name;
} functions[] = { { 0, 0 }, { 64, 3 }, { 128, 4 } };
#define CODE_BYTES 160u

/* The list of functions, then the functions; offsets count from `at` of the list. */
static void add_functions(
	struct maker *m, struct buf *b, const struct parts *p, uint32_t at, const uint32_t base[3])
{
	unsigned field = m->o->version >= 18 ? 4 : m->word;
	uint64_t from = m->o->version >= 18 ? 0 : MADE_TEXT + MADE_CODE_AT;
	struct buf f = { 0 };
	uint64_t offset, entry;

	for (unsigned i = 0; i < 3; i++) {
		entry = from + functions[i].entry;
		offset = at + 7 * field + 8 + f.len;
		buf_add(b, &entry, field);
		buf_add(b, &offset, field);
		add_function(m, &f, p, functions[i].entry, functions[i].name, base);
	}
	entry = from + CODE_BYTES;
	buf_add(b, &entry, field);
	add_u32(b, base[1]); /* Go 1.2: where its files are */
	add_u32(b, 0);
	buf_add_str(b, buf_str(&f));
	buf_release(&f);
}

static void add_table_2(struct maker *m, const struct parts *p)
{
	size_t from = m->out->len;
	uint32_t base[3] = { 0x200, 0x260, 0x2a0 };

	buf_add(m->out, "\xfb\xff\xff\xff\0\0\1", 7);
	buf_add_char(m->out, (char)m->word);
	add_word(m, m->out, 3);
	add_functions(m, m->out, p, 8 + m->word, base);
	fill_to(m->out, from + 0x200);
	buf_add_str(m->out, buf_str(&p->names));
	fill_to(m->out, from + 0x260);
	add_u32(m->out, 3);
	add_u32(m->out, 0x270);
	add_u32(m->out, 0x270 + p->file[1]);
	fill_to(m->out, from + 0x270);
	buf_add_str(m->out, buf_str(&p->files));
	fill_to(m->out, from + 0x2a0);
	buf_add_str(m->out, buf_str(&p->pcs));
}

static void add_table(struct maker *m, const struct parts *p)
{
	static const uint32_t base[3] = { 0 }, at[] = { 0x80, 0xc0, 0xd0, 0x100, 0x140 };
	size_t from = m->out->len;
	unsigned version = m->o->version;

	buf_add(m->out, version == 16 ? "\xfa" : version == 18 ? "\xf0" : "\xf1", 1);
	buf_add(m->out, "\xff\xff\xff\0\0\1", 6);
	buf_add_char(m->out, (char)m->word);
	add_word(m, m->out, 3);
	add_word(m, m->out, 2);
	if (version >= 18)
		add_word(m, m->out, m->o->text_start ? MADE_TEXT + MADE_CODE_AT : 0);
	for (unsigned i = 0; i < 5; i++)
		add_word(m, m->out, at[i]);
	fill_to(m->out, from + at[0]);
	buf_add_str(m->out, buf_str(&p->names));
	fill_to(m->out, from + at[1]);
	add_u32(m->out, p->file[0]);
	add_u32(m->out, p->file[1]);
	fill_to(m->out, from + at[2]);
	buf_add_str(m->out, buf_str(&p->files));
	fill_to(m->out, from + at[3]);
	buf_add_str(m->out, buf_str(&p->pcs));
	fill_to(m->out, from + at[4]);
	add_functions(m, m->out, p, 0, base);
}

static void add_inlined(struct maker *m, const struct parts *p)
{
	static const uint32_t parent_pc[] = { 8, 20 };

	for (unsigned i = 0; i < 2; i++) {
		add_u32(m->out, 0);
		if (m->o->version < 20) {
			add_u32(m->out, 0);
			add_u32(m->out, 0);
		}
		add_u32(m->out, p->name[1 + i]);
		add_u32(m->out, parent_pc[i]);
		if (m->o->version >= 20)
			add_u32(m->out, 18 + i);
	}
}

static void add_moduledata(struct maker *m)
{
	uint64_t text = MADE_TEXT + MADE_CODE_AT;

	add_word(m, m->out, MADE_BASE + TABLE_AT);
	for (unsigned i = 1; i < 20; i++)
		add_word(m, m->out, 0);
	add_word(m, m->out, text);
	add_word(m, m->out, text + CODE_BYTES);
	add_word(m, m->out, text);
	for (unsigned i = 23; i < 40; i++)
		add_word(m, m->out, MADE_BASE + DATA_AT);
	add_word(m, m->out, MADE_BASE + INLINED_AT);
}

static void add_load(struct maker *m, uint32_t from, uint32_t to, unsigned flags)
{
	Elf64_Phdr w = { PT_LOAD, flags, from, MADE_BASE + from, MADE_BASE + from, to - from, to - from,
		0x1000 };
	Elf32_Phdr n = { PT_LOAD, from, (uint32_t)MADE_BASE + from, (uint32_t)MADE_BASE + from,
		to - from, to - from, flags, 0x1000 };

	if (m->o->narrow)
		buf_add(m->out, &n, sizeof(n));
	else
		buf_add(m->out, &w, sizeof(w));
}

static void add_headers(struct maker *m)
{
	unsigned char ident[EI_NIDENT] = { 0x7f, 'E', 'L', 'F', m->o->narrow ? ELFCLASS32 : ELFCLASS64,
		ELFDATA2LSB, EV_CURRENT };
	Elf64_Ehdr w = { .e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(w),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3 };
	Elf32_Ehdr n = { .e_type = ET_EXEC,
		.e_machine = EM_386,
		.e_phoff = sizeof(n),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_phnum = 3 };

	if (m->o->sections) {
		w.e_shoff = n.e_shoff = NAMES_AT + 0x40;
		w.e_shentsize = sizeof(Elf64_Shdr);
		n.e_shentsize = sizeof(Elf32_Shdr);
		w.e_shnum = n.e_shnum = 4;
		w.e_shstrndx = n.e_shstrndx = 3;
	}
	memcpy(w.e_ident, ident, sizeof(ident));
	memcpy(n.e_ident, ident, sizeof(ident));
	if (m->o->narrow)
		buf_add(m->out, &n, sizeof(n));
	else
		buf_add(m->out, &w, sizeof(w));
	add_load(m, TEXT_AT, TABLE_AT, PF_R | PF_X);
	add_load(m, TABLE_AT, DATA_AT, PF_R);
	add_load(m, DATA_AT, END_AT, PF_R | PF_W);
}

static void add_section(
	struct maker *m, uint32_t name, uint32_t type, uint32_t flags, uint32_t from, uint32_t to)
{
	Elf64_Shdr w = { .sh_name = name,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = flags ? MADE_BASE + from : 0,
		.sh_offset = from,
		.sh_size = to - from };
	Elf32_Shdr n = { .sh_name = name,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = (uint32_t)w.sh_addr,
		.sh_offset = from,
		.sh_size = to - from };

	if (m->o->narrow)
		buf_add(m->out, &n, sizeof(n));
	else
		buf_add(m->out, &w, sizeof(w));
}

void made_program(const struct made_options *o, struct buf *out)
{
	struct maker m = { o, out, o->narrow ? 4 : 8 };
	struct parts p = { 0 };

	fill_parts(o, &p);
	add_headers(&m);
	fill_to(out, TABLE_AT);
	if (o->version == 2)
		add_table_2(&m, &p);
	else
		add_table(&m, &p);
	fill_to(out, INLINED_AT);
	add_inlined(&m, &p);
	fill_to(out, DATA_AT);
	if (o->moduledata)
		add_moduledata(&m);
	fill_to(out, END_AT);
	if (o->sections) {
		fill_to(out, NAMES_AT);
		buf_add(out, "\0.text\0.gopclntab\0.shstrtab", 28);
		fill_to(out, NAMES_AT + 0x40);
		add_section(&m, 0, SHT_NULL, 0, 0, 0);
		add_section(&m, 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_AT, TABLE_AT);
		add_section(&m, 7, SHT_PROGBITS, SHF_ALLOC, TABLE_AT, INLINED_AT);
		add_section(&m, 18, SHT_STRTAB, 0, NAMES_AT, NAMES_AT + 28);
	}
	buf_release(&p.names);
	buf_release(&p.files);
	buf_release(&p.pcs);
}
