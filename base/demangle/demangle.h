/*
 * Demangling: names of functions as C++ and Rust compilers mangle them, printed as reports show
 * them: without parameters and template arguments.
 *
 *	_ZNSt6vectorIiSaIiEE9push_backERKi                std::vector::push_back
 *	_ZZ4mainENKUliE_clEi                              main::{lambda(int)#1}::operator()
 *	_RNvNtCs1234_7mycrate3foo3bar                     mycrate::foo::bar
 *	_ZN4core3ptr13drop_in_place17h0123456789abcdefE   core::ptr::drop_in_place
 *
 * Other names, and those too deep or too long for a compiler to have made, are not demangled.
 *
 * Ownership: appended to out; scratch is gone on return.
 * Threads:   pure functions.
 * Source:    the Itanium C++ ABI, "Mangling"; Rust RFC 2603. The oracle is `go tool pprof`.
 */
#ifndef BASE_DEMANGLE_DEMANGLE_H
#define BASE_DEMANGLE_DEMANGLE_H

#include "base/str.h"

#define DEMANGLE_NAME_MAX (64u << 10)
#define DEMANGLE_TEXT_MAX (64u << 10) /* a short mangled name may mean a very long one */

/* False: it is not mangled; out is as it was. */
bool demangle_name(struct str name, struct buf *out);

/* A quick test of the prefix. False: the name is not mangled. */
static inline bool demangle_may(struct str name)
{
	return name.len > 2 && name.ptr[0] == '_' &&
		(name.ptr[1] == 'Z' || name.ptr[1] == 'R' || name.ptr[1] == '_');
}

#endif
