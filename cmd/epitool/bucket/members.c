/* bucket shards, drain, admit: which shards share the targets. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/self/flags.h"
#include "cmd/epitool/bucket/bucket_command.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/table.h"
#include "tsdb/cluster/assignment/assignment_change.h"

#define LOOK_EVERY_NS NS_PER_S

/* ---- shards ---- */

struct members_row {
	struct str name;
	bool in, drained;
	bool there; /* it has a manifest */
	struct manifest m;
};

/* "": nothing to say. By this machine's clock, which a person can judge. */
static const char *members_state(const struct members_row *r)
{
	if (!r->there)
		return "gone";
	if (manifest_has_ended(&r->m))
		return "stopped";
	return clock_now_ns() - r->m.written_ns > change_lease_of(&r->m) ? "late" : "running";
}

static struct str members_time(struct arena *a, int64_t ns)
{
	struct buf text = { 0 };
	struct str s = STR("");

	if (ns)
		time_print_rfc3339(&text, ns);
	if (!buf_failed(&text) && text.len)
		s = str_dup(a, buf_str(&text));
	buf_release(&text);
	return s.ptr ? s : STR("");
}

static enum err_code members_read_all(struct bucket *b, const struct assignment *list,
	struct arena *a, struct members_row **out, uint32_t *n, struct err *err)
{
	const struct assignment_version *newest = assignment_newest(list);
	struct members_row *rows;
	struct str *names;
	enum err_code rc;
	uint32_t all;

	*n = 0;
	if ((rc = assignment_names(list, a, &names, &all, err)))
		return rc;
	if (!(rows = arena_array(a, struct members_row, all + 1u)))
		return arena_fail(a, "shards", err);
	for (uint32_t i = 0; i < all; i++) {
		struct members_row r = { .name = names[i],
			.in = assignment_version_has(newest, names[i]),
			.drained = assignment_is_drained(list, names[i]) };
		struct manifest_key key = manifest_key_of(names[i]);

		if (atomic_load(&interrupted))
			return err_set(err, ERR_CANCELED, "interrupted");
		rc = manifest_get(b, manifest_key_str(&key), a, &r.m, NULL, err);
		if (rc && rc != ERR_NOT_FOUND)
			return rc;
		r.there = !rc;
		if (r.in || r.drained || (r.there && !r.m.stopped))
			rows[(*n)++] = r;
	}
	*out = rows;
	return ERR_OK;
}

static void members_print_json(struct buf *out, struct arena *a, const struct assignment *list,
	const struct members_row *rows, uint32_t n)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	json_key(&j, "assignment");
	json_u64(&j, list->number);
	json_key(&j, "keepsSince");
	json_str(&j, members_time(a, assignment_newest(list)->since_ns));
	json_key(&j, "shards");
	json_array(&j);
	for (uint32_t i = 0; i < n; i++) {
		json_object(&j);
		json_key(&j, "shard");
		json_str(&j, rows[i].name);
		json_key(&j, "member");
		json_bool(&j, rows[i].in);
		json_key(&j, "drained");
		json_bool(&j, rows[i].drained);
		json_key(&j, "state");
		json_cstr(&j, members_state(&rows[i]));
		json_key(&j, "follows");
		json_u64(&j, rows[i].m.assignment);
		json_key(&j, "written");
		json_str(&j, members_time(a, rows[i].m.written_ns));
		json_key(&j, "address");
		json_str(&j, rows[i].there ? rows[i].m.address : STR(""));
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}

static void members_print_table(struct buf *out, struct arena *a, const struct assignment *list,
	const struct members_row *rows, uint32_t n)
{
	static const char *const titles[] = { "shard", "is", "state", "follows", "written", "address" };
	struct text_table table;
	char follows[24];

	buf_printf(out,
		"assignment %" PRIu64 ": %" PRIu32 " shard%s, keeps pushes from " STR_FMT " on\n",
		list->number, assignment_newest(list)->n, assignment_newest(list)->n == 1 ? "" : "s",
		STR_ARG(members_time(a, assignment_newest(list)->since_ns)));
	text_table_init(&table, a);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_column(&table, titles[i], i == 3);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(follows, sizeof(follows), "%" PRIu64, rows[i].m.assignment);
		table_cell(&table, rows[i].name);
		table_cell(&table, str_of(rows[i].in ? "member" : rows[i].drained ? "drained" : "out"));
		table_cell(&table, str_of(members_state(&rows[i])));
		table_cell(&table, rows[i].m.assignment ? str_of(follows) : STR("-"));
		table_cell(&table, members_time(a, rows[i].m.written_ns));
		table_cell(&table, rows[i].there ? rows[i].m.address : STR(""));
	}
	table_print(&table, 0, out);
}

static enum err_code members_show(struct bucket *b, bool as_json, struct err *err)
{
	struct members_row *rows = NULL;
	struct buf out = { 0 };
	struct assignment s;
	enum err_code rc;
	struct arena a;
	uint32_t n;

	arena_init(&a, 0);
	if ((rc = assignment_get(b, &a, &s, NULL, err)) == ERR_NOT_FOUND)
		rc = err_set(err, rc, "no shard of the bucket has joined others (--shard.join)");
	if (!rc && !(rc = members_read_all(b, &s, &a, &rows, &n, err))) {
		(as_json ? members_print_json : members_print_table)(&out, &a, &s, rows, n);
		rc = buf_failed(&out) ? err_nomem(err, "shards") : output_put("", buf_str(&out), err);
	}
	buf_release(&out);
	arena_release(&a);
	return rc;
}

int objects_shards(int argc, char **argv)
{
	const char *file, *args[1];
	bool as_json = false;
	struct flag flags[] = {
		CONFIG_FLAG(&file),
		{ "json", FLAG_BOOL, &as_json, NULL, "Print JSON." },
	};
	struct bucket *b = NULL;
	struct err err;
	enum err_code rc;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"bucket shards [FLAGS]",
		"The shards that share the targets (--shard.join): the number of their assignment, and\n"
		"which number each follows. late: its manifest is older than its lease, by this\n"
		"machine's clock.",
		args, 0, 0, &n);
	if (code >= 0)
		return code;
	interrupt_catch();
	if (!(rc = bucket_of_config(file, &b, &err)))
		rc = members_show(b, as_json, &err);
	bucket_close(b);
	return rc ? bucket_command_failed(&err) : 0;
}

/* ---- drain, admit ---- */

struct members_wait {
	struct bucket *bucket;
	const char *shard;
	uint64_t number; /* that the shard is to follow */
	char etag[BUCKET_ETAG_BYTES_MAX];
	int64_t same_since_ns; /* monotonic */
	/* The shard's clock, of the first manifest that says the number; 0: none. */
	int64_t followed_ns;
};

/* *said: why it is over; NULL: it is not. */
static enum err_code members_look(struct members_wait *w, const char **said, struct err *err)
{
	struct manifest_key key = manifest_key_of(str_of(w->shard));
	char etag[BUCKET_ETAG_BYTES_MAX];
	struct manifest m;
	enum err_code rc;
	struct arena a;

	*said = NULL;
	arena_init(&a, 0);
	rc = manifest_get(w->bucket, manifest_key_str(&key), &a, &m, etag, err);
	if (rc == ERR_NOT_FOUND || (!rc && manifest_has_ended(&m))) {
		*said = "is not running: others have its targets";
		rc = ERR_OK;
	} else if (!rc) {
		if (strcmp(etag, w->etag)) {
			memcpy(w->etag, etag, sizeof(etag));
			w->same_since_ns = clock_monotonic_ns();
		}
		if (m.assignment >= w->number && !w->followed_ns)
			w->followed_ns = m.written_ns;
		if (w->followed_ns && m.through_ns >= w->followed_ns)
			*said = "has no targets any more: it may be stopped";
		else if (clock_monotonic_ns() - w->same_since_ns >= change_lease_of(&m))
			*said =
				"is dead: its manifest did not change for its lease, and others have its targets";
	}
	arena_release(&a);
	return rc;
}

static enum err_code members_await(struct members_wait *w, int64_t timeout_ns, struct err *err)
{
	int64_t until_ns = clock_monotonic_ns() + timeout_ns;
	const char *said = NULL;
	enum err_code rc;

	for (;;) { /* until it says so, at most until the timeout */
		if ((rc = members_look(w, &said, err)))
			return rc;
		if (said)
			break;
		if (atomic_load(&interrupted))
			return err_set(err, ERR_CANCELED, "interrupted; the shard is drained all the same");
		if (clock_monotonic_ns() >= until_ns)
			return err_set(err, ERR_TIMEOUT,
				"shard %s does not follow assignment %" PRIu64 " yet; it is drained, and must not "
				"be stopped before it does",
				w->shard, w->number);
		nanosleep(&(struct timespec){ .tv_sec = LOOK_EVERY_NS / NS_PER_S }, NULL);
	}
	printf("shard %s %s\n", w->shard, said);
	return ERR_OK;
}

static enum err_code members_change(
	struct bucket *b, const struct assignment_change *c, uint64_t *number, struct err *err)
{
	struct assignment s;
	enum err_code rc;
	struct arena a;
	bool changed;

	arena_init(&a, 0);
	if (!(rc = assignment_change(b, c, &a, &s, NULL, &changed, err))) {
		*number = s.number;
		printf("assignment %" PRIu64 "%s: %" PRIu32 " shard%s\n", s.number,
			changed ? "" : " as before", assignment_newest(&s)->n,
			assignment_newest(&s)->n == 1 ? "" : "s");
		fflush(stdout);
	}
	arena_release(&a);
	return rc;
}

int objects_drain(int argc, char **argv)
{
	const char *file, *args[1];
	bool no_wait = false;
	int64_t timeout_ns;
	struct flag flags[] = {
		CONFIG_FLAG(&file),
		{ "no-wait", FLAG_BOOL, &no_wait, NULL, "Do not wait until the shard has no targets." },
		{ "timeout", FLAG_DURATION, &timeout_ns, "5m", "How long that may take." },
	};
	struct assignment_change c = { ASSIGNMENT_DRAIN };
	struct members_wait w = { 0 };
	struct err err;
	enum err_code rc;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"bucket drain [FLAGS] SHARD",
		"The other shards take over the targets of a shard, which does not join again by itself.\n"
		"Waits until it scrapes nothing and all that it took is in the bucket; then it may be\n"
		"stopped. Also for a shard that died and does not come back.",
		args, 1, 1, &n);
	if (code >= 0)
		return code;
	interrupt_catch();
	c.shard = str_of(args[0]);
	w.shard = args[0];
	w.same_since_ns = clock_monotonic_ns();
	if (!(rc = bucket_of_config(file, &w.bucket, &err)) &&
		!(rc = members_change(w.bucket, &c, &w.number, &err)) && !no_wait)
		rc = members_await(&w, timeout_ns, &err);
	bucket_close(w.bucket);
	return rc ? bucket_command_failed(&err) : 0;
}

int objects_admit(int argc, char **argv)
{
	const char *file, *args[1];
	struct flag flags[] = { CONFIG_FLAG(&file) };
	struct assignment_change c = { ASSIGNMENT_ADMIT };
	struct bucket *b = NULL;
	uint64_t number;
	struct err err;
	enum err_code rc;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"bucket admit [FLAGS] SHARD", "Undoes bucket drain: the shard has targets again.", args, 1,
		1, &n);
	if (code >= 0)
		return code;
	c.shard = str_of(args[0]);
	if (!(rc = bucket_of_config(file, &b, &err)))
		rc = members_change(b, &c, &number, &err);
	bucket_close(b);
	return rc ? bucket_command_failed(&err) : 0;
}
