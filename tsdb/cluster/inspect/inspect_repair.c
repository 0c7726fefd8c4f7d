#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tsdb/cluster/inspect/inspect.h"
#include "tsdb/cluster/lease.h"

/*
 * Repair: writes a manifest that was made of the objects, only if there is none that can be read
 * and nobody writes one meanwhile.
 */
#define LOOKS 20

/* ERR_OK: there is no manifest, or it cannot be read; *etag: its ETag, or "". */
static enum err_code inspect_repair_look(
	struct inspect *inspect, struct str shard, char *etag, struct err *err)
{
	struct manifest_key key = manifest_key_of(shard);
	struct bucket_info info;
	struct manifest m;
	struct arena a;
	enum err_code rc;

	*etag = '\0';
	if ((rc = bucket_head(inspect->bucket, manifest_key_str(&key), &info, err)))
		return rc == ERR_NOT_FOUND ? ERR_OK : rc;
	arena_init(&a, 0);
	rc = manifest_get(inspect->bucket, manifest_key_str(&key), &a, &m, NULL, err);
	arena_release(&a);
	if (!rc)
		return err_set(err, ERR_INVALID, "%s is there and can be read", key.text);
	if (rc != ERR_CORRUPT && rc != ERR_LIMIT)
		return rc;
	memcpy(etag, info.etag, BUCKET_ETAG_BYTES_MAX);
	return ERR_OK;
}

/* A server that has the shard writes the manifest again. */
static enum err_code inspect_repair_wait_for_owner(
	struct inspect *inspect, struct str shard, const char *etag, int64_t wait_ns, struct err *err)
{
	struct manifest_key key = manifest_key_of(shard);
	int64_t until = clock_monotonic_ns() + wait_ns;
	struct bucket_info info;
	enum err_code rc;

	while (clock_monotonic_ns() < until) { /* a look each step */
		struct timespec step = { wait_ns / LOOKS / NS_PER_S, wait_ns / LOOKS % NS_PER_S };

		(void)!nanosleep(&step, NULL);
		if ((rc = inspect_check_stop(inspect, err)))
			return rc;
		rc = bucket_head(inspect->bucket, manifest_key_str(&key), &info, err);
		if (rc && rc != ERR_NOT_FOUND)
			return rc;
		if (strcmp(rc ? "" : info.etag, etag))
			return err_set(err, ERR_EXISTS,
				"shard " STR_FMT " is in use: its manifest was written meanwhile", STR_ARG(shard));
	}
	return ERR_OK;
}

/* The manifest belongs to no directory, and may lack what was acknowledged: whoever takes it over
 * notes a loss from its newest time on. */
static enum err_code inspect_repair_put_manifest(
	struct inspect *inspect, struct manifest *m, const char *etag, struct err *err)
{
	struct manifest_key key = manifest_key_of(m->shard);
	char token[MANIFEST_TOKEN_LEN + 1], host[MANIFEST_HOST_BYTES_MAX + 1] = "unknown";
	int64_t newest_ns = manifest_newest_ns(m);
	struct buf text = { 0 };
	enum err_code rc;

	manifest_new_token(token);
	(void)!gethostname(host, sizeof(host) - 1);
	m->owner = m->session = str_of(token);
	m->host = str_is_utf8(str_of(host)) ? str_of(host) : STR("unknown");
	m->generation = 1;
	m->since_ns = m->written_ns = clock_now_ns();
	m->interval_ns = 30 * NS_PER_S;
	m->stopped = true;
	m->through_ns = newest_ns > 0 ? newest_ns : 0; /* the newest time that is surely there */
	manifest_print(&text, m);
	if (buf_failed(&text))
		rc = err_nomem(err, "manifest");
	else if (text.len > MANIFEST_BYTES_MAX)
		rc = err_set(err, ERR_LIMIT, "the manifest is %zu bytes, limit %u", text.len,
			(unsigned)MANIFEST_BYTES_MAX);
	else
		rc = bucket_put(inspect->bucket, manifest_key_str(&key), buf_str(&text),
			etag[0] ? BUCKET_IF_ETAG : BUCKET_IF_ABSENT, etag, NULL, err);
	if (rc == ERR_EXISTS)
		err_set(err, rc, "shard " STR_FMT " is in use: its manifest was written meanwhile",
			STR_ARG(m->shard));
	buf_release(&text);
	return rc;
}

enum err_code inspect_repair(
	struct inspect *inspect, struct str shard, int64_t wait_ns, struct err *err)
{
	char etag[BUCKET_ETAG_BYTES_MAX];
	struct manifest m;
	struct arena a;
	enum err_code rc;

	if ((rc = manifest_check_shard(shard, err)) ||
		(rc = inspect_repair_look(inspect, shard, etag, err)) ||
		(wait_ns >= 0 &&
			(rc = inspect_repair_wait_for_owner(
				 inspect, shard, etag, wait_ns ? wait_ns : LEASE_MIN_NS, err))))
		return rc;
	arena_init(&a, 0);
	if (!(rc = inspect_rebuild(inspect, shard, &a, &m, err)))
		rc = inspect_repair_put_manifest(inspect, &m, etag, err);
	arena_release(&a);
	return rc;
}
