#include "cmd/epitool/compare/names.h"

#include <ctype.h>

static struct str compare_names_head_n(struct str s, size_t n)
{
	return (struct str){ s.ptr, n < s.len ? n : s.len };
}

static struct str compare_names_behind(struct str s, size_t n)
{
	n = n < s.len ? n : s.len;
	return (struct str){ s.ptr + n, s.len - n };
}

/* The offset of the first of these bytes from `from` on; the length if there is none. */
static size_t compare_names_find_any(struct str s, size_t from, const char *bytes)
{
	while (from < s.len && !strchr(bytes, s.ptr[from]))
		from++;
	return from;
}

static ptrdiff_t compare_names_find_last(struct str s, char c)
{
	for (size_t i = s.len; i-- > 0;)
		if (s.ptr[i] == c)
			return (ptrdiff_t)i;
	return -1;
}

/* "&mut dyn T": what a Rust name puts before the type. */
static struct str compare_names_without_reference(struct str s)
{
	static const char *const words[] = { "&", "*", "mut ", "const ", "dyn " };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]);)
		if (str_has_prefix(s, str_of(words[i]))) {
			s = compare_names_behind(s, strlen(words[i]));
			i = 0;
		} else {
			i++;
		}
	return s;
}

/*
 * Up to where brackets begin, without the return type of C++: "void ns::f<int>(int)" is "ns::f",
 * "<T as Trait>::f" is "T", "main.(*T).M" is "main.".
 */
static struct str compare_names_head_of(struct str name)
{
	ptrdiff_t at;

	if (name.len && name.ptr[0] == '<') {
		name = compare_names_without_reference(compare_names_behind(name, 1));
		at = str_find(name, STR(" as "));
		name = compare_names_head_n(
			name, at >= 0 ? (size_t)at : compare_names_find_any(name, 0, ">"));
	}
	if (str_has_prefix(name, STR("(anonymous namespace)")))
		return compare_names_head_n(name, sizeof("(anonymous namespace)") - 1);
	name = compare_names_head_n(name, compare_names_find_any(name, 1, "[(<{"));
	if (str_find(name, STR("::")) < 0 || str_find(name, STR("operator")) >= 0)
		return name;
	at = compare_names_find_last(name, ' ');
	return compare_names_behind(name, (size_t)(at + 1));
}

static bool compare_names_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Lower-case words before a class: java.util.HashMap, org/example/Main. 0: no Java. */
static size_t compare_names_java_package(struct str s)
{
	size_t at = 0, words = 0, end;
	char mark = 0;

	for (;;) {
		if (at >= s.len || !(islower((unsigned char)s.ptr[at]) || s.ptr[at] == '_'))
			break;
		for (end = at; end < s.len && compare_names_is_word(s.ptr[end]);)
			end++;
		if (end >= s.len || (s.ptr[end] != '.' && s.ptr[end] != '/') ||
			(mark && s.ptr[end] != mark))
			return 0;
		mark = s.ptr[end];
		at = end + 1;
		words++;
	}
	if (words < (mark == '.' ? 2u : 1u) || at >= s.len || !isupper((unsigned char)s.ptr[at]))
		return 0;
	for (end = at; end < s.len && (compare_names_is_word(s.ptr[end]) || s.ptr[end] == '$');)
		end++;
	return end < s.len &&
		(s.ptr[end] == '.' || str_has_prefix(compare_names_behind(s, end), STR("::"))) ? at - 1 : 0;
}

struct str name_package(struct str name)
{
	size_t java = compare_names_java_package(name), dot, under;
	ptrdiff_t slash, colons;
	struct str head;

	if (java)
		return compare_names_head_n(name, java);
	if (name.len && name.ptr[0] == '[') {
		dot = compare_names_find_any(name, 0, "]");
		return compare_names_head_n(name, dot + 1);
	}
	head = compare_names_head_of(name);
	if ((colons = str_find(head, STR("::"))) >= 0)
		return compare_names_head_n(head, (size_t)colons);
	if (head.len && head.ptr[head.len - 1] == '.')
		return compare_names_head_n(head, head.len - 1);
	slash = compare_names_find_last(head, '/');
	dot = compare_names_find_any(head, (size_t)(slash + 1), ".");
	if (dot > 0 && dot < head.len && head.ptr[0] != '/')
		return compare_names_head_n(head, dot);
	if (slash >= 0)
		return compare_names_behind(head, (size_t)slash + 1);
	under = compare_names_find_any(head, 1, "_");
	return under > 0 ? compare_names_head_n(head, under) : head;
}

struct str name_short(struct str name)
{
	size_t java = compare_names_java_package(name);
	struct str head;

	if (java)
		return compare_names_behind(name, java + 1);
	if (str_find(name, STR("::")) >= 0 || (name.len && name.ptr[0] == '['))
		return name;
	head = compare_names_head_of(name);
	return head.ptr == name.ptr ?
		compare_names_behind(name, (size_t)(compare_names_find_last(head, '/') + 1)) :
		name;
}

/* ---- whose function it is ---- */

static bool compare_names_is_one_of(struct str word, const char *const *list)
{
	for (; *list; list++)
		if (str_is(word, *list))
			return true;
	return false;
}

static bool compare_names_is_go_standard(struct str package)
{
	/* clang-format off */
	static const char *const first[] = { "archive", "arena", "bufio", "bytes", "cmp", "compress",
		"container", "context", "crypto", "database", "debug", "embed", "encoding", "errors",
		"expvar", "flag", "fmt", "go", "hash", "html", "image", "index", "internal", "io", "iter",
		"log", "maps", "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp",
		"runtime", "slices", "sort", "strconv", "strings", "structs", "sync", "syscall", "testing",
		"text", "time", "unicode", "unique", "unsafe", "vendor", "weak", NULL };
	/* clang-format on */

	return compare_names_is_one_of(
		compare_names_head_n(package, compare_names_find_any(package, 0, "/")), first);
}

/* Namespaces and packages of other languages' runtimes. */
static bool compare_names_is_standard(struct str package)
{
	static const char *const first[] = { "std", "core", "alloc", "__gnu_cxx", "__cxxabiv1", "libc",
		"tokio", "java", "javax", "jdk", "sun", "kotlin", "scala", "node", "v8", NULL };

	return compare_names_is_one_of(
			   compare_names_head_n(package, compare_names_find_any(package, 0, "./:")), first) ||
		str_is(package, "com.sun") || str_has_prefix(package, STR("com.sun."));
}

/* Names of C that a program does not have: the allocator, the system, its own start. */
static bool compare_names_is_c_runtime(struct str name)
{
	static const char *const starts[] = { "libc_", "pthread_", "sys_", "x64_sys_", "do_syscall",
		"GI_" };
	static const char *const whole[] = { "_start", "clone", "clone3", "start_thread", NULL };
	static const char *const words[] = { "cfree", "malloc", "calloc", "realloc", "free", "memcpy",
		"memmove", "memset", "memcmp", NULL };
	struct str bare = name;
	size_t n = 0;

	while (n < 2 && bare.len && bare.ptr[0] == '_') {
		bare = compare_names_behind(bare, 1);
		n++;
	}
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (str_has_prefix(bare, str_of(starts[i])))
			return true;
	for (n = 0; n < bare.len && compare_names_is_word(bare.ptr[n]);)
		n++;
	return compare_names_is_one_of(name, whole) ||
		compare_names_is_one_of(compare_names_head_n(bare, n), words);
}

bool name_is_own(struct str name)
{
	struct str package = name_package(name);

	if (!name.len || name.ptr[0] == '[' || str_is(name, "<unknown>") ||
		compare_names_is_c_runtime(name) || compare_names_is_standard(package))
		return false;
	return str_find(name, STR("::")) >= 0 || compare_names_find_any(name, 0, ".") == name.len ||
		!compare_names_is_go_standard(package);
}
