/*
 * Index cache: open indexes of symbols by binary, kept between queries.
 *
 * An index that was replaced, evicted or found damaged is opened anew when it is asked for next;
 * who has it keeps it.
 *
 * Errors:    ERR_NOMEM. An index that cannot be read is logged and is none.
 * Ownership: index_cache_close wants that no index is held.
 * Threads:   any, but open and close.
 */
#ifndef TSDB_DEBUGINFO_NAMES_INDEX_CACHE_H
#define TSDB_DEBUGINFO_NAMES_INDEX_CACHE_H

#include "tsdb/debuginfo/index/symindex.h"
#include "tsdb/debuginfo/store/store.h"

struct index_cache;
struct open_index;

/* Gets a binary that has no names, whenever somebody looks for them. It is cheap. */
typedef void (*index_wanted_fn)(void *ctx, const struct debuginfo_id *id, struct str path);

/* wanted: called for what is missing, or NULL. */
MUST_CHECK enum err_code index_cache_open(struct debuginfo_store *store, index_wanted_fn wanted,
	void *ctx, struct index_cache **out, struct err *err);
void index_cache_close(struct index_cache *c); /* NULL is fine */

/*
 * Finds the index by build id. Without one it finds the only index whose file has the path's base
 * name. NULL: there are no names, and `wanted` was called for a build id.
 */
struct open_index *index_cache_get(
	struct index_cache *c, struct str build_id, struct str path, bool *by_path);
const struct symindex *open_index_symbols(const struct open_index *o);
/* Its pages are damaged: it is removed, so that it is wanted again. */
void index_cache_drop(struct index_cache *c, struct open_index *o);
void index_cache_release(struct index_cache *c, struct open_index *o); /* NULL is fine */

#endif
