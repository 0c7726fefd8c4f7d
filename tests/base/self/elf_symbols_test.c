#include "base/self/elf_symbols.h"
#include "tests/check.h"

/* clang-format off */
static const struct {
	const char *symbol, *want;
} demangled[] = {
	{ "main", "main" },
	{ "hash_once.constprop.0", "hash_once" },
	{ "_ZN7leveldb6DBImpl5WriteERKNS_12WriteOptionsEPNS_10WriteBatchE",
		"leveldb::DBImpl::Write" },
	{ "_ZN12_GLOBAL__N_14workEi", "(anonymous namespace)::work" },
	{ "_ZNK3re23DFA5StateclEv", "re2::DFA::State::operator()" },
	{ "_Znot_a_mangled_name", "_Znot_a_mangled_name" },
	{ "", "" },
};
/* clang-format on */

TEST(names_for_people)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(demangled) / sizeof(demangled[0]); i++) {
		buf_clear(&out);
		elf_demangle(&out, str_of(demangled[i].symbol));
		CHECK_STR(buf_str(&out), demangled[i].want);
	}
	buf_release(&out);
}

TEST(the_own_program_has_symbols_and_others_are_refused)
{
	struct elf_symbols *s = NULL;
	struct err err;

	REQUIRE_OK(elf_symbols_open(elf_own_path(), &s, &err), &err);
	CHECK_STR(elf_symbols_find(s, 0), "");
	CHECK_STR(elf_symbols_find(s, UINT64_MAX), "");
	elf_symbols_close(s);
	CHECK_ERR(elf_symbols_open("Makefile", &s, &err), &err, ERR_INVALID,
		"symbols of Makefile: not a 64-bit ELF file");
	CHECK_ERR(elf_symbols_open("no/such/file", &s, &err), &err, ERR_NOT_FOUND,
		"symbols of no/such/file: No such file or directory");
}
