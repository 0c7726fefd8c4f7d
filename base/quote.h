/*
 * Quote: text that may hold any byte, printed so that it can be read and typed back.
 *
 * Quoting follows the query language (and Go's strconv.Quote): double quotes; \a \b \f \n \r \t \v
 * \\ \"; \xNN for a byte that is not UTF-8; \uNNNN for what does not print.
 *
 * Threads: values; no sharing.
 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include "base/str.h"

/* Length of the code point at the front of s, which is not empty; 0: the first byte starts none. */
size_t utf8_decode(struct str s, uint32_t *code);
size_t utf8_write(uint32_t code, char out[4]); /* bytes written */
void buf_add_utf8(struct buf *b, uint32_t code);

void buf_add_quoted(struct buf *b, struct str s);

/*
 * Foreign text within a line that people read, perhaps on a terminal: bytes that would end the
 * line, move the cursor or not show are escaped as above. Backslashes and quotes stay single, so it
 * cannot be read back.
 */
void buf_add_printable(struct buf *b, struct str s);
/* The same: gives s itself when all of it prints, else a copy. ptr NULL: the arena failed. */
struct str str_printable(struct arena *a, struct str s);

/* Quoted on the stack, for error messages: QUOTED(s).text; cut with "..." where longer. */
struct quoted {
	char text[256];
};
struct quoted quoted_of(struct str s);
#define QUOTED(s) quoted_of(s).text

/* To end an error message with: `; did you mean "NAME"?`, or nothing where no name is near. */
struct quoted did_you_mean(const struct nearest *n);
#define DID_YOU_MEAN(n) did_you_mean(n).text

#endif
