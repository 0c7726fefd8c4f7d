/*
 * Sources at work: found by kind and identity, shared by all who use them.
 *
 * Ownership: sources_acquire puts `use`, which is the caller's, on the source; sources_release
 *            takes it off, and the last of them closes the source. All are released before
 *            sources_close.
 * Threads:   discovery's.
 */
#ifndef DISCOVERY_SOURCES_SOURCES_H
#define DISCOVERY_SOURCES_SOURCES_H

#include <sys/queue.h>

#include "discovery/sources/source.h"

struct sources;

struct source_use {
	LIST_ENTRY(source_use) link;
	struct source *source; /* NULL: none */
	/* What the source gives has changed; not called for what it gives from within acquire. */
	void (*changed)(void *ctx);
	void *ctx;
};

MUST_CHECK enum err_code sources_open(
	const struct source_env *env, struct sources **out, struct err *err);
void sources_close(struct sources *s); /* NULL is fine */

MUST_CHECK enum err_code sources_acquire(
	struct sources *s, const struct source_config *c, struct source_use *use, struct err *err);
void sources_release(struct source_use *use);

/* What it published last; NULL: nothing yet. Valid until the loop runs again. */
struct groups *source_groups(const struct source *s);

#endif
