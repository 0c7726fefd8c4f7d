/*
 * Sends one file of native code to a server: asks, uploads, says what became of it.
 *
 * A GNU build id goes by Pyroscope's protocol, which Pyroscope's own server speaks too; other ids,
 * stripped files and what is forced by the API's request, since the protocol has no words for them.
 *
 * Errors: the server's own message; ERR_CANCELED after Ctrl-C. 429 and 503 are tried again, for as
 *         long as the server asks for.
 */
#ifndef CMD_EPITOOL_DEBUGINFO_SEND_H
#define CMD_EPITOOL_DEBUGINFO_SEND_H

#include "cmd/epitool/debuginfo/debug_files.h"
#include "cmd/epitool/epitool.h"

enum sent {
	SENT, /* uploaded; its extraction may last */
	SENT_BEFORE, /* the server has it, or has better */
	SENT_ELSEWHERE, /* it is on its way */
	SENT_NOT, /* *err says why */
	SENT_NONE, /* *err; no other file would fare better */
};
struct debuginfo_sending {
	const struct client_options *client;
	const char *path;
	const struct native_file *file;
	bool force; /* the server is not asked whether it has as good */
	/* The server wants the file: finds what else belongs to it. Called once at most. */
	enum err_code (*find)(void *ctx, struct debug_files *out, struct err *err);
	/* The server refused all together as too large, for *why: the file goes alone. */
	void (*shrink)(void *ctx, const struct err *why);
	void *ctx;
};
/* *say: why it was not sent; text lives until the next call. */
enum sent debuginfo_send(const struct debuginfo_sending *s, struct buf *say, struct err *err);

/* What the server says of an id; "" where it says nothing of it. */
struct debuginfo_send_named {
	char state[16], why[512], quality[16], content[16];
	long long index_bytes;
};
/* ERR_NOT_FOUND: the server has no such list. */
MUST_CHECK enum err_code debuginfo_ask(const struct client_options *o,
	const struct debuginfo_id *id, struct debuginfo_send_named *out, struct err *err);

#endif
