/*
 * A small Go program, made by hand: an ELF file with a table of functions of each version, Go's
 * moduledata and inlined calls.
 *
 *	main.f, main.k   64 bytes each, the same tables
 *	    0 to 16      a.go:10
 *	    16 to 32     main.g inlined at 8, b.go:20
 *	    32 to 40     main.h inlined into it at 20, b.go:30
 *	    40 to 64     a.go:12
 *	main.main        32 bytes, a.go:5
 */
#ifndef TESTS_TSDB_DEBUGINFO_PCLNTAB_MADE_H
#define TESTS_TSDB_DEBUGINFO_PCLNTAB_MADE_H

#include "base/str.h"

#define MADE_TEXT UINT64_C(0x401000)
#define MADE_CODE_AT 0x40u /* of main.f, from the start of the section .text */

struct made_options {
	unsigned version; /* 2, 16, 18, 20 */
	bool narrow; /* pointers of 4 bytes */
	bool sections; /* headers of sections */
	bool moduledata;
	bool text_start; /* in the header, as up to Go 1.25 */
};

void made_program(const struct made_options *o, struct buf *out);

#endif
