#include "cmd/epimetheus/shard_senders.h"

#include "base/clock.h"
#include "scrape/receive/senders.h"
#include "tsdb/bucket/bucket.h"
#include "tsdb/cluster/cluster.h"
#include "tsdb/cluster/manifest.h"

void shard_senders_init(struct shard_senders *s)
{
	*s = (struct shard_senders){ 0 };
	mutex_init(&s->lock);
	arena_init(&s->arena, 0);
}

void shard_senders_release(struct shard_senders *s)
{
	arena_release(&s->arena);
	mutex_destroy(&s->lock);
}

enum err_code shard_senders_put(
	struct bucket *b, const char *shard, struct str text, struct err *err)
{
	struct manifest_key k = manifest_key_senders(str_of(shard));

	return bucket_put(b, manifest_key_str(&k), text, BUCKET_ANY, NULL, NULL, err);
}

static struct str shard_senders_keep_text(struct arena *a, struct str text)
{
	return text.len ? str_dup(a, text) : STR("");
}

/* False: it has none. */
static bool shard_senders_read(
	struct arena *a, struct bucket *b, const char *shard, struct shard_senders_view *out)
{
	struct manifest_key k = manifest_key_senders(str_of(shard));
	struct buf text = { 0 };
	struct err err;
	enum err_code rc = bucket_get(b, manifest_key_str(&k), 0, SENDERS_BYTES_MAX, &text, NULL, &err);

	*out = (struct shard_senders_view){ .shard = shard_senders_keep_text(a, str_of(shard)) };
	if (rc)
		out->error = shard_senders_keep_text(a, str_of(err.msg));
	else
		out->text = shard_senders_keep_text(a, buf_str(&text));
	buf_release(&text);
	return rc != ERR_NOT_FOUND;
}

static enum err_code shard_senders_read_all(
	struct shard_senders *s, struct bucket *b, struct cluster *c, struct err *err)
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
	if (!(s->v = arena_array(&s->arena, struct shard_senders_view, n + 1)))
		return arena_fail(&s->arena, "senders", err);
	for (size_t i = 0; i < n; i++)
		if (!shards[i].own && shard_senders_read(&s->arena, b, shards[i].name, &s->v[s->n]))
			s->n++;
	s->read_ns = clock_monotonic_ns();
	return ERR_OK;
}

static enum err_code shard_senders_copy(const struct shard_senders *s, struct arena *a,
	struct shard_senders_view **out, struct err *err)
{
	struct shard_senders_view *v = arena_array(a, struct shard_senders_view, s->n + 1);

	if (!v)
		return arena_fail(a, "senders", err);
	for (size_t i = 0; i < s->n; i++)
		v[i] = (struct shard_senders_view){ shard_senders_keep_text(a, s->v[i].shard),
			shard_senders_keep_text(a, s->v[i].text), shard_senders_keep_text(a, s->v[i].error) };
	*out = v;
	return ERR_OK;
}

enum err_code shard_senders_get(struct shard_senders *s, struct bucket *b, struct cluster *c,
	struct arena *a, struct shard_senders_view **out, size_t *n, struct err *err)
{
	enum err_code rc = ERR_OK;

	mutex_lock(&s->lock);
	if (!s->read_ns || clock_monotonic_ns() - s->read_ns > SHARD_SENDERS_FRESH_NS)
		rc = shard_senders_read_all(s, b, c, err);
	*n = s->n;
	if (!rc)
		rc = shard_senders_copy(s, a, out, err);
	mutex_unlock(&s->lock);
	return rc;
}
