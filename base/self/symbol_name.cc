#include <cstdlib>
#include <cxxabi.h>

extern "C" {
#include "base/self/elf_symbols.h"
}

// The start of the parameter list: the first "(" outside of <> that is not "(anonymous namespace)"
// and not the name "operator()".
static size_t symbol_name_parameters_at(struct str name)
{
	static const struct str anonymous = { "(anonymous namespace)", 21 };
	static const struct str call = { "operator", 8 };
	size_t depth = 0;

	for (size_t i = 0; i < name.len; i++) {
		struct str rest = { name.ptr + i, name.len - i };

		if (name.ptr[i] == '<')
			depth++;
		else if (name.ptr[i] == '>' && depth)
			depth--;
		if (name.ptr[i] != '(' || depth)
			continue;
		if (str_has_prefix(rest, anonymous)) {
			i += anonymous.len - 1;
			continue;
		}
		if (i >= call.len && str_eq({ name.ptr + i - call.len, call.len }, call)) {
			i++;
			continue;
		}
		return i;
	}
	return name.len;
}

// gcc names its copies of a function f.constprop.0, f.part.1, f.cold, ...: to people they are f.
static struct str symbol_name_without_clone(struct str symbol)
{
	for (size_t i = 1; i < symbol.len; i++)
		if (symbol.ptr[i] == '.')
			return { symbol.ptr, i };
	return symbol;
}

void elf_demangle(struct buf *out, struct str symbol)
{
	struct buf copy = {};
	int status = -1;
	char *plain = nullptr;

	if (symbol.len > 2 && symbol.ptr[0] == '_' && symbol.ptr[1] == 'Z') {
		buf_add_str(&copy, symbol);
		buf_add_char(&copy, '\0');
		if (!buf_failed(&copy))
			plain = abi::__cxa_demangle(copy.ptr, nullptr, nullptr, &status);
		buf_release(&copy);
	}
	if (plain && status == 0)
		buf_add(out, plain, symbol_name_parameters_at(str_of(plain)));
	else
		buf_add_str(out, symbol_name_without_clone(symbol));
	std::free(plain);
}
