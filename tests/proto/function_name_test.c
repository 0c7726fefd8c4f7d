/*
 * Names as `go tool pprof` shows them: it reads a profile with a function per symbol, and the
 * names are taken from the profile that it writes.
 */
#include "proto/function_name.h"

#include "proto/pprof.h"
#include "tests/oracle.h"

struct symbols {
	struct arena arena;
	struct str *v;
	size_t n, cap;
};

static void add(struct symbols *s, struct str name)
{
	struct str *grown;

	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1024;
		grown = arena_array(&s->arena, struct str, s->cap);
		if (s->n)
			memcpy(grown, s->v, s->n * sizeof(*grown));
		s->v = grown;
	}
	s->v[s->n++] = str_dup(&s->arena, name);
}

static bool write_profile(const struct symbols *s, struct arena *a)
{
	struct buf wire = { 0 };
	struct pprof_builder *b;
	struct pprof *p;
	struct err err;
	bool ok;

	if (pprof_builder_open(a, &b, &err))
		return false;
	pprof_builder_type(b, STR("cost"), STR("count"));
	for (size_t i = 0; i < s->n; i++) {
		uint32_t name = pprof_builder_string(b, s->v[i]), location;
		struct pprof_line line = { .function = pprof_builder_function(b,
									   &(struct pprof_function){ .name = name,
										   .system_name = name,
										   .start_line = (int64_t)i + 1 }) };

		location = pprof_builder_location(
			b, (struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, &line, 1);
		pprof_builder_sample(b, &location, 1, NULL, 0, (int64_t[]){ 1 });
	}
	ok = !pprof_builder_finish(b, &p, &err) && !pprof_encode(p, &wire, &err) &&
		oracle_write(buf_str(&wire), oracle_dir(), "symbols.pb");
	buf_release(&wire);
	return ok;
}

/* Counts differences and prints the first ones. */
static void compare(const char *what, const struct symbols *s)
{
	struct buf out = { 0 }, body = { 0 }, got = { 0 };
	size_t wrong = 0, shown = 0;
	struct pprof *p;
	struct arena a;
	struct err err;
	struct str raw;

	arena_init(&a, 0);
	REQUIRE(write_profile(s, &a));
	REQUIRE(oracle_run(&out,
		"cd '%s' && PPROF_TMPDIR='%s' %s -symbolize=remote -proto "
		"-output=shown.pb.gz symbols.pb 2>tool.err || { cat tool.err; false; }",
		oracle_dir(), oracle_dir(), oracle_tool()));
	REQUIRE(oracle_read(&body, oracle_dir(), "shown.pb.gz"));
	REQUIRE_OK(pprof_inflate(&a, buf_str(&body), &pprof_limits_default, &raw, &err), &err);
	REQUIRE_OK(pprof_decode(&a, raw, &pprof_limits_default, &p, &err), &err);
	CHECK_INT(p->functions_n, s->n);
	for (uint32_t i = 0; i < p->functions_n; i++) {
		const struct pprof_function *f = &p->functions[i];
		struct str name = p->strings[f->system_name], want = p->strings[f->name], is;

		buf_clear(&got);
		is = function_name_shown(name, name, &got) ? buf_str(&got) : name;
		if (want.len == 0) /* all of it was in brackets */
			want = name;
		shown += !str_eq(is, name);
		if (!str_eq(is, want) && wrong++ < 20)
			CHECK_FAIL("%s: " STR_FMT "\n    got  " STR_FMT "\n    want " STR_FMT, what,
				STR_ARG(name), STR_ARG(is), STR_ARG(want));
	}
	if (wrong)
		CHECK_FAIL("%s: %zu of %zu differ", what, wrong, s->n);
	printf("  %s: %zu names, %zu of them mangled\n", what, s->n, shown);
	arena_release(&a);
	buf_release(&out);
	buf_release(&body);
	buf_release(&got);
}

/* Lines of a command's output. */
static bool read_symbols(struct symbols *s, const char *command)
{
	struct buf out = { 0 };
	struct str rest;
	bool ok = oracle_run(&out, "%s", command);

	for (rest = buf_str(&out); rest.len > 0;) {
		ptrdiff_t end = str_find(rest, STR("\n"));
		struct str line = { rest.ptr, end < 0 ? rest.len : (size_t)end };

		if (line.len > 0 && line.len < 60000)
			add(s, line);
		rest = (struct str){ rest.ptr + line.len + (end >= 0), rest.len - line.len - (end >= 0) };
	}
	buf_release(&out);
	return ok;
}

/* EPI_SYMBOLS: a command that prints other symbols, for runs by hand. */
TEST(symbols_of_the_library)
{
	const char *command = getenv("EPI_SYMBOLS");
	struct symbols s = { .n = 0 };

	REQUIRE(oracle_dir());
	arena_init(&s.arena, 0);
	REQUIRE(read_symbols(&s,
		command ? command :
				  "nm \"$(g++ -print-file-name=libstdc++.a)\" 2>/dev/null | "
				  "awk 'NF == 3 {print $3}' | LC_ALL=C sort -u"));
	CHECK(s.n > 1000 || command);
	compare("symbols", &s);
	arena_release(&s.arena);
}

/* Kinds that are rare in the library: closures, packs, local classes, conversions, literals. */
static const char source[] =
	"#include <functional>\n#include <map>\n#include <string>\n#include <vector>\n"
	"namespace {\nstruct Hidden { int operator()(int x) const { return x; }\n"
	"  template <class T> operator std::vector<T>() { return {}; } };\n}\n"
	"namespace app {\ninline namespace v1 {\n"
	"template <class... T> int pack(T... t) { auto f = [](auto... a) { return "
	"int(sizeof...(a)); };\n"
	"  return f(t...); }\n"
	"template <class T, int N> struct Grid { T v[N]; template <class U> T *at(U "
	"(*f)(T &, int (&)[3]))\n"
	"  { return v; }\n  Grid &operator<<(const Grid &) { return *this; }\n"
	"  bool operator<(const Grid &) const & { return false; }\n  bool "
	"operator()(T) && { return true; }\n"
	"  operator const T *() const { return v; }\n  Grid() {}\n  ~Grid() {}\n"
	"  static void *operator new[](unsigned long) { return nullptr; } };\n"
	"template <template <class> class C, class T> C<T> wrap(C<T> c) { return c; }\n"
	"template <class T> struct Box { T t; };\n"
	"template <class T> auto sum(T a, T b) -> decltype(a + b) { return a + b; }\n"
	"long operator\"\" _km(unsigned long long v) { return long(v); }\n"
	"int member(int (Grid<int, 3>::*p)() const, int Grid<int, 3>::*q) { return p && q; }\n"
	"[[gnu::abi_tag(\"tagged\")]] int tagged() { return 1; }\n"
	"int outer(std::map<std::string, int> m) {\n  struct Local { int "
	"f(std::function<int(char)> g)\n"
	"    { return [g](const std::vector<Box<char>> &, auto) { return g('a'); }({}, 1); } };\n"
	"  static int (*table[2])(double) = {};\n"
	"  auto deep = [&](int a) { return [a](volatile int *const &) { return a; }; };\n"
	"  int x = 0;\n  return Local().f([](char c) { return int(c); }) + deep(1)(&x) "
	"+ bool(table[0]);\n}\n"
	"}\n}\n"
	"int main() { app::Grid<int, 3> g; Hidden h; std::vector<char> c = h;\n"
	"  const int *p = g; (void)(g < g << g); g.at<long>(nullptr); app::Grid<int, 3>()(1);\n"
	"  using namespace app;\n"
	"  return pack(1, 'a', \"x\") + pack() + wrap(Box<int>{1}).t + sum(1, 2) + "
	"int(3_km) + tagged() +\n"
	"    member(nullptr, nullptr) + outer({}) + h(1) + int(c.size()) + bool(p) +\n"
	"    bool(new Grid<char, 2>[2]);\n}\n";

static bool compile(struct symbols *s)
{
	return oracle_dir() && oracle_write(str_of(source), oracle_dir(), "x.cc") &&
		read_symbols(s,
			arena_printf(&s->arena,
				"cd %s && g++ -std=c++17 -O0 -w -c x.cc -o x.o 2>&1 && nm x.o | "
				"awk '{print $NF}' | LC_ALL=C sort -u",
				oracle_dir()));
}

TEST(symbols_of_a_program)
{
	struct symbols s = { .n = 0 };

	arena_init(&s.arena, 0);
	REQUIRE(compile(&s));
	CHECK(s.n > 100);
	compare("program", &s);
	arena_release(&s.arena);
}

/* clang-format off */
static const char *const rust[] = {
	"_RNvCs1234_7mycrate3foo", "_RNvNtCs1234_7mycrate3foo3bar", "_RINvNtC3std3mem8align_ofjE",
	"_RNvMs_NtCs1_7mycrate3fooINtB4_3BoxjE3new", "_RNvXs_Cs1_1aNtB4_1bNtNtC4core3fmt5Debug3fmt",
	"_RNvYNtC1a1bNtC1a1c1d", "_RNCNvC1a4main0", "_RNCNCNvC1a4main0s_0B5_", "_RNSNvC1a1b6vtable",
	"_RINvC1a1bFUKCjRLehEuE", "_RINvC1a1bFG_RL0_hEBa_E", "_RINvC1a1bDNtC1a1cp4ItemjEL_E",
	"_RINvC1a1bAhj8_E", "_RINvC1a1bTjhEE", "_RINvC1a1bPShE", "_RINvC1a1bKj7f_Kb1_Kc61_KannE",
	"_RNvC1a1bC1c", "_RNvC1a1b.llvm.123", "_RNqCs1_6mycrate15u8gdel_5qa", "_RNvC1au8gdel_5qa",
	"_RNvMC1aINtB2_1bKpE1c", "_RNvMs_C1aDG_INtB4_1bRL0_hEEL_1c", "_RNvMs_C1aFG_RL0_hEB9_1c",
	"_RNvMs_C1aFKC_EE1c", "_RNvMC1aQL_S3_1c", "_RNvMC1aTE1c", "_RNvMC1aTjE1c", "_RNvMC1aOz1c",
	"_RNvMC1aAhKj_1c", "_RNvMC1aDNtB2_1bp1xjNtB2_1dEL_1c", "_RNvC1a", "_R", "_RNvC1a1",
	"_RB_", "_RC_",
	"_RNvB_1a", "_RIC1aE", "_RNvMC1aB_1b", "_R0NvC1a1b", "_RNvC1a1b1", "_RNvMC1aFK5C_aUuEu1b",
	"_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
	"_ZN5alloc3vec12Vec$LT$T$GT$4push17h0123456789abcdefE",
	"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
	"_ZN4test9closure$u7b$$u7b$c$u7d$17h0123456789abcdefE.llvm.42",
	"_ZN5allo4push17h0123456789abcdefE", "_ZN3foo17h0000000000000000E",
	"_ZN3foo17h012345678zabcdefE",
	"_ZN3f$o$Q$17h0123456789abcdefE",
	"_ZN1a2$C3$SP$4$BP$RF17h0123456789abcdefE", "_ZN17h0123456789abcdefE",
	"_ZN2$C17h0123456789abcdefE",
	"_ZN3$C$17h0123456789abcdefE", "_ZN10$RF$$BP$_$17h0123456789abcdefE",
	/* Not mangled, or mangled by another compiler. */
	"", "main", "_Z", "_ZN", "_ZE", "__Z3foov", "___Z3foov_block_invoke",
	"___Z3foov_block_invoke_2",
	"_Z3foov.cold", "_Z3foo.isra.0", "_ZL3foov", "_ZThn16_N3foo3barEi",
	"_ZTv0_n24_N3foo3barEPKc",
	"_ZGVZ4mainE1x", "_ZZ4mainE1x_0", "_ZZ4mainE1x__12_", "_ZZN1a1bEvENKUlvE_clEv",
	"_ZN1a1bC1Ev",
	"_ZNSsC1Ev", "_ZNSt6vectorIiSaIiEED2Ev", "_ZN12_GLOBAL__N_13fooEv", "_ZcvT_", "_ZN1acvbEv",
	"_ZN1acvT_IiEEv", "_ZN1acvPFivEEv", "_ZNK1aeqERKS_", "_Zli3_kmy", "_ZN1aUt_1bEv",
	"_ZDC1a1bE",
	"std::vector<int>::push_back(int const&)", "operator<<(std::ostream&, int)", "a::b(c)(d)",
	"main.(*T[...]).Do", "main.(*T).Do.Map[...].func1", "java.util.List.<init>",
	"<module>", "<a", "a>",
	"slices.SortFunc[...]", "foo::{closure#0}", "x[y](z)",
};
/* clang-format on */

TEST(made_by_hand)
{
	struct symbols s = { .n = 0 };

	REQUIRE(oracle_dir());
	arena_init(&s.arena, 0);
	for (size_t i = 0; i < sizeof(rust) / sizeof(rust[0]); i++)
		if (rust[i][0])
			add(&s, str_of(rust[i]));
	compare("by hand", &s);
	arena_release(&s.arena);
}

/* Here we differ from the tool, in which all of these would be "::fmt". */
TEST(implementations_of_a_trait_stay_apart)
{
	static const struct str names[] = { STR("<demo::Set<T> as demo::Has>::has"),
		STR("<alloc::string::String as core::fmt::Debug>::fmt") };
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(!function_name_shown(names[i], names[i], &out));
	CHECK_INT(out.len, 0);
	buf_release(&out);
}

/* "_RC_" is a crate without a name. */
TEST(a_name_that_demangles_to_nothing_stays)
{
	struct buf out = { 0 };

	CHECK(!function_name_shown(STR("_RC_"), STR("_RC_"), &out));
	CHECK_INT(out.len, 0);
	buf_release(&out);
}
