/* Memory of appends: one that ends leaves its own to the next. */
#include <stdlib.h>

#include "tsdb/head/append_internal.h"
#include "tsdb/head/head.h"

struct scratch *scratch_take(struct db *db)
{
	struct scratch *s;

	mutex_lock(&db->lock);
	if ((s = db->scratch))
		db->scratch = s->next;
	mutex_unlock(&db->lock);
	if (!s && (s = calloc(1, sizeof(*s))))
		arena_init(&s->arena, DB_SCRATCH_BYTES_MAX);
	return s;
}

void scratch_put(struct db *db, struct scratch *s)
{
	arena_reset(&s->arena);
	buf_clear(&s->row);
	buf_clear(&s->there);
	buf_clear(&s->links);
	buf_clear(&s->record);
	mutex_lock(&db->lock);
	s->next = db->scratch;
	db->scratch = s;
	mutex_unlock(&db->lock);
}

void scratch_free_all(struct db *db)
{
	struct scratch *s;

	while ((s = db->scratch)) {
		db->scratch = s->next;
		arena_release(&s->arena);
		buf_release(&s->row);
		buf_release(&s->there);
		buf_release(&s->links);
		buf_release(&s->record);
		new_symbols_release(&s->new_symbols);
		free(s);
	}
}
