/*
 * Rust's names ("v0"): shared by rust.c and rust_types.c. A failure is kept in the state; after it
 * nothing is read or written.
 */
#ifndef BASE_DEMANGLE_RUST_H
#define BASE_DEMANGLE_RUST_H

#include "base/demangle/cpp.h"

struct rust {
	struct str whole; /* behind "_R" */
	size_t at, end;
	struct buf *out;
	size_t from; /* of out */
	unsigned quiet; /* > 0: read, not written */
	unsigned depth, steps;
	uint64_t lifetimes; /* that are bound */
	char last; /* written */
	bool failed;
};

bool rust_enter(struct rust *r); /* one level deeper: r->depth-- leaves it */
char rust_peek(const struct rust *r); /* '\0' at the end */
bool rust_take(struct rust *r, char c);
void rust_expect(struct rust *r, char c);
void rust_write(struct rust *r, struct str s);
void rust_write_text(struct rust *r, const char *text);
void rust_write_u64(struct rust *r, uint64_t value);

uint64_t rust_base62(struct rust *r); /* "_" is 0, "0_" 1 */
struct str rust_bytes(struct rust *r, bool *punycode);
void rust_identifier(struct rust *r);
/* Reads the text that is referred to as if it were here. */
void rust_back(struct rust *r, void (*again)(struct rust *r, bool flag), bool flag);
void rust_path(struct rust *r, bool in_value); /* in_value: writes "::" in front of "<" */
void rust_type(struct rust *r);
void rust_arguments(struct rust *r); /* none of them is written */

#endif
