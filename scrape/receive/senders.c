#include "scrape/receive/senders.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/thread.h"

METRIC_COUNTER(refused, "epimetheus_ingest_refused_profiles_total",
	"Profiles that were pushed and not stored, by reason.", "reason");
METRIC_GAUGE(senders_known, "epimetheus_ingest_senders",
	"Senders of pushed profiles that are kept: by address, user, path and job.", NULL);

#define HEADS 16384u /* a power of 2 */
#define NONE UINT32_MAX
#define TEXT_BYTES_MAX 256u /* of each part of a name, the list of types, ...; the rest is cut */
#define ERROR_BYTES_MAX 512u
#define INTERVAL_DECAY 8 /* a shorter gap takes an eighth off */
#define INTERVAL_GROWTH_MAX 4 /* one pause does not make a sender slow */

struct row_refusals {
	uint64_t n, unlogged;
	int64_t logged_ns; /* 0: never */
};

struct sender_row {
	uint64_t hash;
	uint32_t next; /* of the same head; NONE: the last */
	char *name, *client, *types, *error; /* name: four texts, each with its NUL */
	struct sender_info info; /* its texts are above, refused is below */
	struct row_refusals *refused; /* NULL: nothing was */
};

struct senders {
	struct mutex lock; /* all below */
	uint64_t seed;
	int64_t since_ns;
	uint64_t forgotten;
	uint32_t heads[HEADS];
	struct sender_row *rows;
	uint32_t n, room;
	int64_t minute_ns; /* when it began */
	uint32_t lines; /* since */
};

const char *refusal_reason_name(unsigned reason)
{
	return reason == REFUSED_UNAUTHORIZED ? "unauthorized" :
		reason == REFUSED_FORBIDDEN       ? "forbidden" :
											err_code_name((enum err_code)reason);
}

enum err_code senders_open(struct senders **out, struct err *err)
{
	struct senders *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, "senders");
	mutex_init(&s->lock);
	s->seed = hash_seed();
	s->since_ns = clock_now_ns();
	memset(s->heads, 0xff, sizeof(s->heads));
	*out = s;
	return ERR_OK;
}

static void sender_row_release(struct sender_row *r)
{
	free(r->name);
	free(r->client);
	free(r->types);
	free(r->error);
	free(r->refused);
}

void senders_close(struct senders *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		sender_row_release(&s->rows[i]);
	free(s->rows);
	mutex_destroy(&s->lock);
	free(s);
}

/* ---- texts ---- */

/* Not in the middle of a character. */
static struct str sender_text(struct str s, size_t max)
{
	if (s.len <= max)
		return s;
	s.len = max;
	while (s.len && ((unsigned char)s.ptr[s.len] & 0xc0) == 0x80)
		s.len--;
	return s;
}

/* Without memory the old text stays. */
static void sender_set_text(char **at, struct str *shown, struct str to, size_t max)
{
	char *copy;

	to = sender_text(to, max);
	if (!to.len || str_eq(*shown, to) || !(copy = strndup(to.ptr, to.len)))
		return;
	free(*at);
	*at = copy;
	*shown = str_of(copy);
}

bool sender_next_type(struct str *types, struct str *type)
{
	ptrdiff_t comma = str_find(*types, STR(","));
	size_t n = comma < 0 ? types->len : (size_t)comma;

	if (!types->len)
		return false;
	*type = (struct str){ types->ptr, n };
	n += comma >= 0;
	*types = (struct str){ types->ptr + n, types->len - n };
	return true;
}

static bool sender_has_type(struct str types, struct str type)
{
	struct str one;

	while (sender_next_type(&types, &one))
		if (str_eq(one, type))
			return true;
	return false;
}

static void sender_row_add_type(struct sender_row *r, struct str type)
{
	struct str had = r->info.types;
	struct buf b = { 0 };

	if (!type.len || had.len + 1 + type.len > TEXT_BYTES_MAX || sender_has_type(had, type))
		return;
	buf_printf(&b, STR_FMT "%s" STR_FMT, STR_ARG(had), had.len ? "," : "", STR_ARG(type));
	if (!buf_failed(&b))
		sender_set_text(&r->types, &r->info.types, buf_str(&b), TEXT_BYTES_MAX);
	buf_release(&b);
}

/* ---- the table ---- */

#define NAME_PARTS 4u

static void sender_name_parts(const struct sender_name *n, struct str parts[NAME_PARTS])
{
	const struct str all[NAME_PARTS] = { n->address, n->user, n->path, n->job };

	for (size_t i = 0; i < NAME_PARTS; i++)
		parts[i] = sender_text(all[i], TEXT_BYTES_MAX);
}

static uint64_t sender_name_hash(const struct str parts[NAME_PARTS], uint64_t seed)
{
	for (size_t i = 0; i < NAME_PARTS; i++)
		seed = hash_bytes(parts[i].ptr, parts[i].len, seed + i);
	return seed;
}

static bool sender_row_is(
	const struct sender_row *r, uint64_t hash, const struct str parts[NAME_PARTS])
{
	const struct sender_name *n = &r->info.name;

	return r->hash == hash && str_eq(n->address, parts[0]) && str_eq(n->user, parts[1]) &&
		str_eq(n->path, parts[2]) && str_eq(n->job, parts[3]);
}

static bool sender_row_set_name(struct sender_row *r, const struct str parts[NAME_PARTS])
{
	struct str *const to[NAME_PARTS] = { &r->info.name.address, &r->info.name.user,
		&r->info.name.path, &r->info.name.job };
	struct buf all = { 0 };
	size_t at = 0;

	for (size_t i = 0; i < NAME_PARTS; i++) {
		buf_add_str(&all, parts[i]);
		buf_add_char(&all, '\0');
	}
	if (buf_failed(&all)) {
		buf_release(&all);
		return false;
	}
	r->name = all.ptr;
	for (size_t i = 0; i < NAME_PARTS; i++) {
		*to[i] = (struct str){ all.ptr + at, parts[i].len };
		at += parts[i].len + 1;
	}
	return true;
}

/* Those that never had a profile stored go first; then the longest silent. */
static bool sender_row_goes_before(const struct sender_row *a, const struct sender_row *b)
{
	bool a_had = a->info.stored_ns, b_had = b->info.stored_ns;

	return a_had == b_had ? a->info.last_ns < b->info.last_ns : !a_had;
}

/* Who makes room for a new one of this address. */
static uint32_t senders_find_leaving(const struct senders *s, struct str address)
{
	uint32_t any = 0, own = NONE, own_n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct sender_row *r = &s->rows[i];

		if (sender_row_goes_before(r, &s->rows[any]))
			any = i;
		if (!str_eq(r->info.name.address, address))
			continue;
		own_n++;
		if (own == NONE || sender_row_goes_before(r, &s->rows[own]))
			own = i;
	}
	return own_n > SENDERS_OF_ADDRESS ? own : any;
}

static void senders_unlink(struct senders *s, uint32_t which)
{
	uint32_t *at = &s->heads[s->rows[which].hash & (HEADS - 1)];

	while (*at != which)
		at = &s->rows[*at].next;
	*at = s->rows[which].next;
}

/* A place for a new row, not linked; NONE: no memory. */
static uint32_t senders_make_room(struct senders *s, struct str address)
{
	uint32_t room = s->room ? 2 * s->room : 64, which;
	struct sender_row *rows;

	if (s->n == SENDERS_MAX) {
		which = senders_find_leaving(s, address);
		senders_unlink(s, which);
		sender_row_release(&s->rows[which]);
		s->forgotten++;
		return which;
	}
	if (s->n == s->room) {
		room = room > SENDERS_MAX ? SENDERS_MAX : room;
		if (!(rows = reallocarray(s->rows, room, sizeof(*rows))))
			return NONE;
		s->rows = rows;
		s->room = room;
	}
	return s->n++;
}

static struct sender_row *senders_find(struct senders *s, const struct sender_name *who)
{
	struct str parts[NAME_PARTS];
	struct sender_row new = { 0 };
	uint32_t which;

	mutex_assert_held(&s->lock);
	sender_name_parts(who, parts);
	new.hash = sender_name_hash(parts, s->seed);
	for (which = s->heads[new.hash &(HEADS - 1)]; which != NONE; which = s->rows[which].next)
		if (sender_row_is(&s->rows[which], new.hash, parts))
			return &s->rows[which];
	if (!sender_row_set_name(&new, parts))
		return NULL;
	if ((which = senders_make_room(s, parts[0])) == NONE) {
		sender_row_release(&new);
		return NULL;
	}
	new.next = s->heads[new.hash &(HEADS - 1)];
	s->heads[new.hash &(HEADS - 1)] = which;
	s->rows[which] = new;
	metric_set(&senders_known, NULL, s->n);
	return &s->rows[which];
}

/* ---- what comes ---- */

/* NULL: no memory. */
static struct sender_row *senders_see(
	struct senders *s, const struct sender_name *who, int64_t now_ns)
{
	struct sender_row *r = senders_find(s, who);

	if (!r)
		return NULL;
	if (!r->info.first_ns)
		r->info.first_ns = now_ns;
	r->info.last_ns = now_ns;
	sender_set_text(&r->client, &r->info.name.client, who->client, TEXT_BYTES_MAX);
	return r;
}

/*
 * The longest gap of late: an SDK sends a request for each type, and then nothing until the next
 * round, so most gaps say nothing.
 */
static int64_t sender_interval(int64_t known_ns, int64_t gap_ns)
{
	int64_t most_ns = INTERVAL_GROWTH_MAX * (known_ns > NS_PER_S ? known_ns : NS_PER_S);
	int64_t least_ns = known_ns - known_ns / INTERVAL_DECAY;

	if (!known_ns || gap_ns < least_ns)
		return known_ns ? least_ns : gap_ns;
	return gap_ns > most_ns ? most_ns : gap_ns;
}

/* A request that had a profile stored; called for each profile of it. */
static void sender_row_note_request(struct sender_info *i, int64_t now_ns)
{
	if (i->stored_ns == now_ns)
		return;
	i->requests++;
	if (!i->stored_ns)
		i->first_stored_ns = now_ns;
	else if (now_ns > i->stored_ns)
		i->interval_ns = sender_interval(i->interval_ns, now_ns - i->stored_ns);
	i->stored_ns = now_ns;
}

void senders_add_stored(struct senders *s, const struct sender_name *who,
	const struct sender_stored *what, int64_t now_ns)
{
	struct sender_row *r;

	mutex_lock(&s->lock);
	if ((r = senders_see(s, who, now_ns))) {
		sender_row_note_request(&r->info, now_ns);
		sender_row_add_type(r, what->type);
		*(what->dropped ? &r->info.dropped : &r->info.profiles) += 1;
		r->info.samples += what->samples;
		r->info.bytes += what->bytes;
	}
	mutex_unlock(&s->lock);
}

/* Of a row that has them, or may have them. */
static struct row_refusals *sender_row_refusals(struct sender_row *r, unsigned reason)
{
	if (r && !r->refused)
		r->refused = calloc(REFUSAL_REASONS, sizeof(*r->refused));
	return r && r->refused ? &r->refused[reason] : NULL;
}

static bool senders_has_line(struct senders *s, int64_t now_ns)
{
	if (!s->minute_ns || now_ns - s->minute_ns >= NS_PER_MIN || now_ns < s->minute_ns) {
		s->minute_ns = now_ns;
		s->lines = 0;
	}
	return s->lines < SENDERS_LINES_PER_MINUTE;
}

bool senders_is_due(
	struct senders *s, const struct refusal *refusal, int64_t now_ns, uint64_t *profiles)
{
	struct row_refusals nothing = { 0 }, *n;
	struct sender_row *r;
	bool due;

	mutex_lock(&s->lock);
	if ((r = senders_see(s, &refusal->sender, now_ns))) {
		r->info.error_ns = now_ns;
		r->info.reason = refusal->reason;
		sender_set_text(&r->error, &r->info.error, refusal->why, ERROR_BYTES_MAX);
	}
	if (!(n = sender_row_refusals(r, refusal->reason)))
		n = &nothing;
	n->n += refusal->profiles;
	n->unlogged += refusal->profiles;
	due = senders_has_line(s, now_ns) &&
		(!n->logged_ns || now_ns - n->logged_ns >= NS_PER_MIN || now_ns < n->logged_ns);
	if (due) {
		*profiles = n->unlogged;
		n->unlogged = 0;
		n->logged_ns = now_ns;
		s->lines++;
	}
	mutex_unlock(&s->lock);
	return due;
}

void senders_add_refused(struct senders *s, const struct refusal *refusal, int64_t now_ns)
{
	const char *reason = refusal_reason_name(refusal->reason);
	uint64_t profiles;

	metric_add(&refused, reason, (double)refusal->profiles);
	if (senders_is_due(s, refusal, now_ns, &profiles))
		log_warn("receive", "pushed profiles refused", LOG_STR("sender", refusal->sender.address),
			LOG_STR("path", refusal->sender.path), LOG_I("profiles", profiles),
			LOG_S("reason", reason), LOG_STR("err", refusal->why));
}

/* ---- as they are shown ---- */

static bool sender_copy_text(struct arena *a, struct str *s)
{
	char *copy = s->len ? arena_strndup(a, s->ptr, s->len) : NULL;

	if (s->len && !copy)
		return false;
	s->ptr = copy;
	return true;
}

static bool sender_row_copy(const struct sender_row *r, struct arena *a, struct sender_info *to)
{
	*to = r->info;
	for (size_t i = 0; r->refused && i < REFUSAL_REASONS; i++)
		to->refused[i] = r->refused[i].n;
	return sender_copy_text(a, &to->name.address) && sender_copy_text(a, &to->name.user) &&
		sender_copy_text(a, &to->name.path) && sender_copy_text(a, &to->name.job) &&
		sender_copy_text(a, &to->name.client) && sender_copy_text(a, &to->types) &&
		sender_copy_text(a, &to->error);
}

enum err_code senders_list(
	struct senders *s, struct arena *a, struct sender_list *out, struct err *err)
{
	bool copied;

	mutex_lock(&s->lock);
	*out = (struct sender_list){ .since_ns = s->since_ns, .forgotten = s->forgotten };
	copied = (out->v = arena_array(a, struct sender_info, s->n + 1)) != NULL;
	while (copied && out->n < s->n) {
		copied = sender_row_copy(&s->rows[out->n], a, &out->v[out->n]);
		out->n++;
	}
	mutex_unlock(&s->lock);
	return copied ? ERR_OK : arena_fail(a, "senders", err);
}

static void sender_row_restore(struct sender_row *r, const struct sender_info *from)
{
	struct sender_name name = r->info.name;

	r->info = *from;
	r->info.name = name;
	r->info.shard = r->info.name.client = r->info.types = r->info.error = STR("");
	sender_set_text(&r->client, &r->info.name.client, from->name.client, TEXT_BYTES_MAX);
	sender_set_text(&r->types, &r->info.types, from->types, TEXT_BYTES_MAX);
	sender_set_text(&r->error, &r->info.error, from->error, ERROR_BYTES_MAX);
	for (unsigned i = 0; i < REFUSAL_REASONS; i++) {
		struct row_refusals *n = from->refused[i] ? sender_row_refusals(r, i) : NULL;

		if (n)
			n->n = from->refused[i];
	}
}

void senders_restore(struct senders *s, const struct sender_list *l)
{
	mutex_lock(&s->lock);
	s->since_ns = l->since_ns;
	s->forgotten = l->forgotten;
	for (size_t i = 0; i < l->n && s->n < SENDERS_MAX; i++) {
		struct sender_row *r = senders_find(s, &l->v[i].name);

		if (r)
			sender_row_restore(r, &l->v[i]);
	}
	mutex_unlock(&s->lock);
}

const char *sender_state(const struct sender_info *i, int64_t now_ns)
{
	int64_t silent_ns = i->interval_ns * SENDERS_SILENT_INTERVALS;
	bool regular = i->requests >= SENDERS_REGULAR_REQUESTS &&
		i->stored_ns - i->first_stored_ns >= SENDERS_REGULAR_NS;
	bool erred, stored;

	if (silent_ns < SENDERS_SILENT_NS)
		silent_ns = SENDERS_SILENT_NS;
	erred = i->error_ns && i->last_ns - i->error_ns <= silent_ns;
	stored = i->stored_ns && i->last_ns - i->stored_ns <= silent_ns;
	if (erred && !stored && now_ns - i->error_ns <= SENDERS_REFUSED_NS)
		return "refused";
	if (now_ns - i->last_ns > silent_ns)
		return regular ? "stopped" : "idle";
	return erred ? "in part" : "sending";
}
