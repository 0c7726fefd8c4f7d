#include "cmd/epimetheus/shard_lists.h"

#include <string.h>

#include "base/clock.h"
#include "scrape/receive/senders.h"
#include "scrape/target_lines.h"
#include "tsdb/bucket/bucket.h"
#include "tsdb/cluster/cluster.h"
#include "tsdb/cluster/manifest.h"

static const struct {
	struct manifest_key (*key)(struct str shard);
	uint64_t bytes_max;
} shard_list_kinds[SHARD_LISTS] = {
	[SHARD_SENDERS] = { manifest_key_senders, SENDERS_BYTES_MAX },
	[SHARD_TARGETS] = { manifest_key_targets, TARGET_LINES_BYTES_MAX },
};

void shard_lists_init(struct shard_lists *s)
{
	*s = (struct shard_lists){ 0 };
	mutex_init(&s->lock);
	for (size_t i = 0; i < SHARD_LISTS; i++)
		arena_init(&s->lists[i].arena, 0);
}

void shard_lists_release(struct shard_lists *s)
{
	for (size_t i = 0; i < SHARD_LISTS; i++)
		arena_release(&s->lists[i].arena);
	mutex_destroy(&s->lock);
}

enum err_code shard_lists_put(
	struct bucket *b, enum shard_list which, const char *shard, struct str text, struct err *err)
{
	struct manifest_key k = shard_list_kinds[which].key(str_of(shard));

	return bucket_put(b, manifest_key_str(&k), text, BUCKET_ANY, NULL, NULL, err);
}

/* Of all texts together: an answer has a copy of them. */
#define SHARD_LISTS_BYTES_MAX (32u << 20)

static struct str shard_lists_keep_text(struct arena *a, struct str text)
{
	return text.len ? str_dup(a, text) : STR("");
}

struct shard_lists_reading {
	enum shard_list which;
	const char *no_targets;
	struct bucket *bucket;
	struct arena *a;
	size_t bytes; /* of the texts so far */
	struct err down; /* the bucket does not answer: the others are not asked for */
};

static enum err_code shard_lists_get_text(
	struct shard_lists_reading *r, struct str shard, struct buf *text, struct err *err)
{
	struct manifest_key k = shard_list_kinds[r->which].key(shard);
	uint64_t max = shard_list_kinds[r->which].bytes_max;
	enum err_code rc;

	if (r->down.code)
		return err_copy(err, &r->down);
	if ((rc = bucket_get(r->bucket, manifest_key_str(&k), 0, max, text, NULL, err))) {
		if (rc == ERR_TIMEOUT || rc == ERR_UNAVAILABLE)
			(void)err_copy(&r->down, err);
		return rc;
	}
	if (r->bytes + text->len > SHARD_LISTS_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the lists of all shards have more than %u MiB",
			SHARD_LISTS_BYTES_MAX >> 20);
	r->bytes += text->len;
	return ERR_OK;
}

/* ERR_NOT_FOUND: the shard has put none. */
static enum err_code shard_lists_read(
	struct shard_lists_reading *r, const struct cluster_shard *shard, struct shard_list_view *out)
{
	struct buf text = { 0 };
	struct err err;
	enum err_code rc = shard_lists_get_text(r, str_of(shard->name), &text, &err);

	*out = (struct shard_list_view){ .shard = shard_lists_keep_text(r->a, str_of(shard->name)),
		.stopped = shard->is.stopped };
	if (rc == ERR_NOT_FOUND)
		out->error = STR("it has put no list into the bucket yet");
	else if (rc)
		out->error = shard_lists_keep_text(r->a, str_of(err.msg));
	else
		out->text = shard_lists_keep_text(r->a, buf_str(&text));
	buf_release(&text);
	return rc;
}

/* Whose list is looked for at all. */
static bool shard_lists_has(const struct shard_lists_reading *r, const struct cluster_shard *shard)
{
	return !shard->own && (r->which != SHARD_TARGETS || strcmp(shard->name, r->no_targets) != 0);
}

static enum err_code shard_lists_read_all(
	struct shard_list_cache *s, struct shard_lists_reading *r, struct cluster *c, struct err *err)
{
	struct cluster_shard *shards;
	enum err_code rc;
	size_t n;

	arena_release(&s->arena);
	arena_init(&s->arena, 0);
	s->read_ns = 0;
	s->n = 0;
	if ((rc = cluster_shards(c, &s->arena, &shards, &n, err)))
		return rc;
	if (!(s->v = arena_array(&s->arena, struct shard_list_view, n + 1)))
		return arena_fail(&s->arena, "lists of shards", err);
	for (size_t i = 0; i < n; i++) {
		if (!shard_lists_has(r, &shards[i]))
			continue;
		rc = shard_lists_read(r, &shards[i], &s->v[s->n]);
		s->n += r->which != SHARD_SENDERS || rc != ERR_NOT_FOUND;
	}
	s->read_ns = clock_monotonic_ns();
	return ERR_OK;
}

static enum err_code shard_lists_copy(const struct shard_list_cache *s, struct arena *a,
	struct shard_list_view **out, struct err *err)
{
	struct shard_list_view *v = arena_array(a, struct shard_list_view, s->n + 1);

	if (!v)
		return arena_fail(a, "lists of shards", err);
	for (size_t i = 0; i < s->n; i++) {
		v[i] = (struct shard_list_view){ shard_lists_keep_text(a, s->v[i].shard), s->v[i].stopped,
			shard_lists_keep_text(a, s->v[i].text), shard_lists_keep_text(a, s->v[i].error) };
		if (!v[i].text.ptr)
			return arena_fail(a, "lists of shards", err);
	}
	*out = v;
	return ERR_OK;
}

enum err_code shard_lists_get(struct shard_lists *s, enum shard_list which, const char *no_targets,
	struct bucket *b, struct cluster *c, struct arena *a, struct shard_list_view **out, size_t *n,
	struct err *err)
{
	struct shard_list_cache *list = &s->lists[which];
	struct shard_lists_reading r = {
		.which = which, .no_targets = no_targets, .bucket = b, .a = &list->arena
	};
	enum err_code rc = ERR_OK;

	mutex_lock(&s->lock);
	if (!list->read_ns || clock_monotonic_ns() - list->read_ns > SHARD_LISTS_FRESH_NS)
		rc = shard_lists_read_all(list, &r, c, err);
	*n = list->n;
	if (!rc)
		rc = shard_lists_copy(list, a, out, err);
	mutex_unlock(&s->lock);
	return rc;
}
