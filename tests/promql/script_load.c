/*
 * Statement `load`: series as text into a database. All that is loaded at once is appended in the
 * order of its times, as scrapes come.
 */
#include "tests/promql/script.h"
#include "tests/wait.h"

#include <stdlib.h>

#include "tsdb/columns/number_chunk.h"

#define FRAMES_MAX 128
#define LINES_MAX 8
#define MAPPING_BYTES (UINT64_C(1) << 32)

struct stack {
	struct str frames, labels; /* as written */
	struct script_values values;
};

struct type {
	struct str name, unit;
	int64_t factor; /* of the value as it is written, where there is one value for all */
	enum value_kind kind;
};

struct series {
	struct labels labels;
	uint32_t line;
	struct script_values numbers;
	struct type types[SCRIPT_TYPES_MAX]; /* of profiles */
	uint32_t types_n;
	bool kinds_said;
	int64_t interval_ns, duration_ns;
	struct str drop, keep, default_type, period; /* period: type/unit */
	struct stack *stacks;
	size_t stacks_n;
};

struct row {
	int64_t ts_ns;
	size_t series, at; /* which of its values */
};

struct load {
	struct script *s;
	const struct script_places *to;
	struct script_code *code;
	struct arena *arena;
	int64_t step_ns, from_ns;
	struct series *series;
	size_t n;
};

/* ---- a series' first line ---- */

static const struct {
	const char *name, *types, *period;
	bool is_level; /* has no duration */
} known[] = {
	{ "process_cpu", "samples/count cpu/nanoseconds*10000000", "cpu/nanoseconds", false },
	{ "memory",
		"alloc_objects/count alloc_space/bytes*100 "
		"inuse_objects/count inuse_space/bytes*100",
		"space/bytes", true },
	{ "block", "contentions/count delay/nanoseconds*1000", "contentions/count", true },
	{ "mutex", "contentions/count delay/nanoseconds*1000", "contentions/count", true },
	{ "goroutine", "goroutine/count", "goroutine/count", true },
	{ "threadcreate", "threadcreate/count", "threadcreate/count", true },
};

static struct str take_until(struct str *s, const char *ends)
{
	size_t i = 0;
	struct str out;

	while (i < s->len && !strchr(ends, s->ptr[i]))
		i++;
	out = (struct str){ s->ptr, i };
	*s = (struct str){ s->ptr + i, s->len - i };
	return out;
}

/* name/unit[*factor][/kind] */
static bool add_type(struct series *x, struct str word)
{
	struct type *t = &x->types[x->types_n];
	struct str factor;

	if (x->types_n == SCRIPT_TYPES_MAX)
		return false;
	*t = (struct type){ .name = take_until(&word, "/"), .factor = 1 };
	if (word.len == 0)
		return false;
	word = (struct str){ word.ptr + 1, word.len - 1 };
	t->unit = take_until(&word, "*/");
	if (word.len > 0 && word.ptr[0] == '*') {
		word = (struct str){ word.ptr + 1, word.len - 1 };
		factor = take_until(&word, "/");
		if (!str_to_i64(factor, &t->factor))
			return false;
	}
	x->types_n++;
	if (word.len == 0)
		return true;
	x->kinds_said = true;
	return value_kind_parse((struct str){ word.ptr + 1, word.len - 1 }, &t->kind);
}

static bool add_option(struct series *x, struct str word)
{
	struct str name = take_until(&word, "="), value;

	if (word.len == 0)
		return false;
	value = (struct str){ word.ptr + 1, word.len - 1 };
	if (value.len > 1 && value.ptr[0] == '"')
		value = (struct str){ value.ptr + 1, value.len - 2 };
	if (str_is(name, "every"))
		return script_time(value, &x->interval_ns);
	if (str_is(name, "duration"))
		return script_time(value, &x->duration_ns);
	if (str_is(name, "drop"))
		x->drop = value;
	else if (str_is(name, "keep"))
		x->keep = value;
	else if (str_is(name, "default"))
		x->default_type = value;
	else if (str_is(name, "period"))
		x->period = value;
	else
		return false;
	return true;
}

static bool add_known_types(struct series *x)
{
	struct str name = labels_get(x->labels, STR(LABEL_NAME)), types, word;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!str_is(name, known[i].name))
			continue;
		types = str_of(known[i].types);
		while ((word = script_word(&types)).len > 0)
			if (!add_type(x, word))
				return false;
		if (x->duration_ns < 0 && known[i].is_level)
			x->duration_ns = 0;
		if (x->period.len == 0)
			x->period = str_of(known[i].period);
		return true;
	}
	return false;
}

static bool add_profile_options(struct load *l, struct series *x, struct str rest)
{
	struct str word;

	x->interval_ns = l->step_ns;
	x->duration_ns = -1;
	while ((word = script_word(&rest)).len > 0) {
		bool is_option = str_find(word, STR("=")) >= 0;

		if (!(is_option ? add_option(x, word) : add_type(x, word)))
			return false;
	}
	if (x->types_n == 0 && !add_known_types(x))
		return false;
	if (x->duration_ns < 0)
		x->duration_ns = x->interval_ns > NS_PER_S ? x->interval_ns - NS_PER_S : 0;
	return true;
}

static bool read_stack(struct load *l, struct series *x, const struct script_line *line)
{
	struct str rest = line->text, word = script_word(&rest);
	struct stack *to = &x->stacks[x->stacks_n++];
	const char *fault;

	to->frames = take_until(&word, "{");
	to->labels = word;
	if ((fault = script_values(l->arena, rest, &to->values)))
		script_fault(l->s, line->number, "%s", fault);
	return !fault;
}

static bool read_series(struct load *l, const struct script_statement *st, size_t *at)
{
	const struct script_line *line = &st->body[*at];
	struct series *x = &l->series[l->n];
	struct str rest = line->text, word = script_word(&rest);
	size_t end = *at + 1;

	*x = (struct series){ .line = line->number };
	if (!script_labels(l->arena, word, &x->labels)) {
		script_fault(l->s, line->number, "no labels: " STR_FMT, STR_ARG(word));
		return false;
	}
	while (end < st->n && st->body[end].indent > line->indent)
		end++;
	l->n++;
	if (end == *at + 1) {
		const char *fault = script_values(l->arena, rest, &x->numbers);

		if (fault)
			script_fault(l->s, line->number, "%s", fault);
		*at = end;
		return !fault;
	}
	if (!add_profile_options(l, x, rest)) {
		script_fault(l->s, line->number, "no types of samples: " STR_FMT, STR_ARG(rest));
		return false;
	}
	if (!(x->stacks = arena_array(l->arena, struct stack, end - *at)))
		return false;
	for (size_t i = *at + 1; i < end; i++)
		if (!read_stack(l, x, &st->body[i]))
			return false;
	*at = end;
	return true;
}

/* ---- code ---- */

static uint32_t number_of(struct arena *a, struct str **list, uint32_t *n, struct str text)
{
	uint32_t i = 0;
	struct str *grown;

	while (i < *n && !str_eq((*list)[i], text))
		i++;
	if (i < *n)
		return i;
	grown = arena_array(a, struct str, *n + 1);
	if (!grown)
		abort();
	if (*n)
		memcpy(grown, *list, *n * sizeof(*grown));
	grown[(*n)++] = str_dup(a, text);
	*list = grown;
	return i;
}

struct names { /* of one profile: what was made, by how it is written */
	struct str *v;
	uint32_t n, ids[4096];
};

struct making {
	struct load *l;
	struct pprof_builder *b;
	struct names mappings, functions, locations;
};

/* True: it is there, *id. Else *id is to be filled in. */
static bool find_name(struct making *m, struct names *names, struct str text, uint32_t **id)
{
	uint32_t n = names->n;

	*id = &names->ids[number_of(m->l->arena, &names->v, &names->n, text)];
	if (names->n > 4095)
		abort();
	return names->n == n;
}

static uint32_t mapping_of(struct making *m, struct str file, uint64_t *start)
{
	struct script_code *c = m->l->code;
	uint32_t *id;

	*start = (number_of(c->arena, &c->mappings, &c->mappings_n, file) + 1) * MAPPING_BYTES;
	if (!find_name(m, &m->mappings, file, &id))
		*id = pprof_builder_mapping(m->b,
			&(struct pprof_mapping){ .start = *start,
				.limit = *start + MAPPING_BYTES,
				.has_functions = true,
				.filename = pprof_builder_string(m->b, file) });
	return *id;
}

/* name[|system][@file[:line]] */
static struct pprof_line line_of(struct making *m, struct str text)
{
	struct pprof_line line = { .line = 0 };
	struct str whole = text, name, system, file = { 0 };
	uint32_t *id;
	size_t colon;

	name = system = take_until(&text, "|@");
	if (text.len > 0 && text.ptr[0] == '|') {
		text = (struct str){ text.ptr + 1, text.len - 1 };
		system = take_until(&text, "@");
	}
	if (text.len > 0)
		file = (struct str){ text.ptr + 1, text.len - 1 };
	for (colon = file.len; colon > 0 && file.ptr[colon - 1] != ':'; colon--)
		;
	if (colon > 0) {
		str_to_i64((struct str){ file.ptr + colon, file.len - colon }, &line.line);
		whole.len -= file.len - colon + 1;
		file.len = colon - 1;
	}
	if (!find_name(m, &m->functions, whole, &id))
		*id = pprof_builder_function(m->b,
			&(struct pprof_function){ .name = pprof_builder_string(m->b, name),
				.system_name = pprof_builder_string(m->b, system),
				.filename = pprof_builder_string(m->b, file) });
	line.function = *id;
	return line;
}

/* outer~inlined[mapping]!0xaddress; - has no lines. */
static uint32_t location_of(struct making *m, struct str text)
{
	struct script_code *c = m->l->code;
	struct pprof_location location = { .mapping = PPROF_NONE };
	struct pprof_line lines[LINES_MAX];
	struct str rest = text, frames = take_until(&rest, "[!"), file;
	uint32_t n = 0, *id;
	uint64_t start = 0;

	location.address = 0x1000 + 16 * (uint64_t)number_of(c->arena, &c->frames, &c->frames_n, text);
	if (find_name(m, &m->locations, text, &id))
		return *id;
	if (rest.len > 0 && rest.ptr[0] == '[') {
		rest = (struct str){ rest.ptr + 1, rest.len - 1 };
		file = take_until(&rest, "]");
		location.mapping = mapping_of(m, file, &start);
		rest = (struct str){ rest.ptr + 1, rest.len - 1 };
	}
	if (rest.len > 0)
		location.address = strtoull(rest.ptr + 1, NULL, 16);
	location.address += start;
	while (frames.len > 0 && !str_is(frames, "-") && n < LINES_MAX) {
		struct str one = take_until(&frames, "~");

		for (uint32_t i = n++; i > 0; i--)
			lines[i] = lines[i - 1];
		lines[0] = line_of(m, one); /* innermost first */
		if (frames.len > 0)
			frames = (struct str){ frames.ptr + 1, frames.len - 1 };
	}
	*id = pprof_builder_location(m->b, location, lines, n);
	return *id;
}

/* {a="x", n=12, m=4kb} */
static uint32_t labels_of(struct making *m, struct str text, struct pprof_label *out)
{
	uint32_t n = 0;

	while (text.len > 1 && n < 8) {
		struct pprof_label *l = &out[n++];
		struct str key, value;

		text = (struct str){ text.ptr + 1, text.len - 1 };
		while (text.len > 0 && text.ptr[0] == ' ')
			text = (struct str){ text.ptr + 1, text.len - 1 };
		key = take_until(&text, "=");
		text = (struct str){ text.ptr + 1, text.len - 1 };
		*l = (struct pprof_label){ .key = pprof_builder_string(m->b, key) };
		if (text.ptr[0] == '"') {
			text = (struct str){ text.ptr + 1, text.len - 1 };
			value = take_until(&text, "\"");
			l->str = pprof_builder_string(m->b, value);
			text = (struct str){ text.ptr + 1, text.len - 1 };
			continue;
		}
		value = take_until(&text, ",}");
		l->num = strtoll(value.ptr, NULL, 10);
		take_until(&value, "abcdefghijklmnopqrstuvwxyz");
		if (value.len > 0)
			l->num_unit = pprof_builder_string(m->b, value);
	}
	return n;
}

/* ---- profiles ---- */

static bool has_value(const struct script_values *v, size_t at)
{
	return at < v->n && !v->v[at].is_gap;
}

static void add_stack(
	struct making *m, const struct series *x, const struct stack *stack, size_t at)
{
	uint32_t frames[FRAMES_MAX], leaf_first[FRAMES_MAX], n = 0, labels_n;
	const struct script_value *v = &stack->values.v[at];
	struct pprof_label labels[8];
	int64_t values[SCRIPT_TYPES_MAX];
	struct str rest = stack->frames;

	for (uint32_t i = 0; i < x->types_n; i++)
		values[i] = v->n > 1 ? (int64_t)v->v[i] : (int64_t)v->v[0] * x->types[i].factor;
	while (rest.len > 0 && n < FRAMES_MAX) {
		frames[n++] = location_of(m, take_until(&rest, ";"));
		if (rest.len > 0)
			rest = (struct str){ rest.ptr + 1, rest.len - 1 };
	}
	for (uint32_t i = 0; i < n; i++)
		leaf_first[i] = frames[n - 1 - i];
	labels_n = labels_of(m, stack->labels, labels);
	if (v->v[0] != 0 || v->n > 1)
		pprof_builder_sample(m->b, leaf_first, n, labels, labels_n, values);
}

static enum err_code make_profile(struct load *l, const struct series *x, const struct row *row,
	struct pprof **out, struct err *err)
{
	struct making *m = arena_new(l->arena, struct making);
	struct str period_unit = x->period, period_type = take_until(&period_unit, "/");
	struct pprof *p;
	enum err_code rc;

	if (!m)
		return arena_fail(l->arena, "script", err);
	m->l = l;
	if ((rc = pprof_builder_open(l->arena, &m->b, err)))
		return rc;
	for (uint32_t i = 0; i < x->types_n; i++)
		pprof_builder_type(m->b, x->types[i].name, x->types[i].unit);
	p = pprof_builder_profile(m->b);
	if (period_unit.len > 0) {
		p->period_type.type = pprof_builder_string(m->b, period_type);
		p->period_type.unit = pprof_builder_string(
			m->b, (struct str){ period_unit.ptr + 1, period_unit.len - 1 });
	}
	p->time_nanos = row->ts_ns;
	p->duration_nanos = x->duration_ns;
	p->drop_frames = pprof_builder_string(m->b, x->drop);
	p->keep_frames = pprof_builder_string(m->b, x->keep);
	p->default_sample_type = pprof_builder_string(m->b, x->default_type);
	for (size_t i = 0; i < x->stacks_n; i++)
		if (has_value(&x->stacks[i].values, row->at))
			add_stack(m, x, &x->stacks[i], row->at);
	return pprof_builder_finish(m->b, out, err);
}

/* ---- appending ---- */

struct acks {
	atomic_int n, failed;
};

static void on_ack(void *ctx, enum err_code rc, const struct err *err)
{
	struct acks *a = ctx;

	atomic_fetch_add(&a->failed, rc != ERR_OK);
	atomic_fetch_add(&a->n, 1);
}

/* Rows from which others are subtracted stay together. */
static struct db *place_of(const struct load *l, const struct series *x, size_t at)
{
	uint64_t hash = labels_hash(x->labels);

	return l->to->v[(hash / 2 + (hash % 2 && !x->kinds_said ? at : 0)) % l->to->n];
}

static enum err_code append(
	struct load *l, const struct row *row, struct acks *acks, struct err *err)
{
	const struct series *x = &l->series[row->series];
	struct db_append a = {
		.labels = x->labels, .ts_ns = row->ts_ns, .interval_ns = x->interval_ns
	};
	enum value_kind kinds[SCRIPT_TYPES_MAX];
	struct db_append_stats stats;
	struct db_number number;
	struct pprof *p;
	enum err_code rc;

	if (x->numbers.n) {
		const struct script_value *v = &x->numbers.v[row->at];

		number = (struct db_number){ .labels = x->labels,
			.ts_ns = row->ts_ns,
			.value = v->is_stale ? number_of_bits(NUMBER_STALE_BITS) : (double)v->v[0] };
		return db_append_numbers(place_of(l, x, row->at), &number, 1, on_ack, acks, err);
	}
	if ((rc = make_profile(l, x, row, &p, err)))
		return rc;
	pprof_kinds(p, labels_get(x->labels, STR(LABEL_NAME)), NULL, kinds);
	for (uint32_t i = 0; i < x->types_n && x->kinds_said; i++)
		kinds[i] = x->types[i].kind;
	for (uint32_t i = 0; i < x->types_n; i++)
		a.convert |= kinds[i] == KIND_CUMULATIVE;
	a.convert &= x->kinds_said; /* else what is written is what is stored */
	a.profile = p;
	a.kinds = kinds;
	return db_append(place_of(l, x, row->at), &a, &stats, on_ack, acks, err);
}

/* Times at which a series has something. */
static size_t length_of(const struct series *x)
{
	size_t n = x->numbers.n;

	for (size_t i = 0; i < x->stacks_n; i++)
		if (x->stacks[i].values.n > n)
			n = x->stacks[i].values.n;
	return n;
}

static bool is_there(const struct series *x, size_t at)
{
	bool any = has_value(&x->numbers, at);

	for (size_t i = 0; i < x->stacks_n && !any; i++)
		any = has_value(&x->stacks[i].values, at);
	return any;
}

static int row_cmp(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	return x->series < y->series ? -1 : x->series > y->series;
}

static void append_all(struct load *l, int64_t *max_ns)
{
	struct acks acks = { 0 };
	size_t n = 0, all = 0;
	struct row *rows;
	int sent = 0;
	struct err err;

	for (size_t i = 0; i < l->n; i++)
		all += length_of(&l->series[i]);
	if (!(rows = arena_array(l->arena, struct row, all + 1)))
		abort();
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < length_of(&l->series[i]); k++)
			if (is_there(&l->series[i], k))
				rows[n++] = (struct row){ l->from_ns + (int64_t)(k + 1) * l->step_ns, i, k };
	qsort(rows, n, sizeof(*rows), row_cmp);
	for (size_t i = 0; i < n; i++) {
		if (append(l, &rows[i], &acks, &err))
			script_fault(l->s, l->series[rows[i].series].line, "not stored: %s", err.msg);
		else
			sent++;
		if (rows[i].ts_ns > *max_ns)
			*max_ns = rows[i].ts_ns;
	}
	if (!WAIT_FOR(atomic_load(&acks.n) == sent) || atomic_load(&acks.failed))
		script_fault(l->s, l->n ? l->series[0].line : 0, "%d of %d stored, %d failed",
			atomic_load(&acks.n), sent, atomic_load(&acks.failed));
}

/* load STEP [from TIME] */
void script_load(struct script *s, const struct script_statement *st,
	const struct script_places *to, struct script_code *code, int64_t *max_ns)
{
	struct arena a;
	struct load l = { .s = s, .to = to, .code = code, .arena = &a };
	struct str rest = st->line->text, word;
	bool ok;

	arena_init(&a, 0);
	script_word(&rest);
	ok = script_time(script_word(&rest), &l.step_ns) && l.step_ns > 0;
	word = script_word(&rest);
	if (ok && word.len > 0)
		ok = str_is(word, "from") && script_time(script_word(&rest), &l.from_ns);
	if (!ok)
		script_fault(s, st->line->number, "load STEP [from TIME]");
	l.series = arena_array(&a, struct series, st->n + 1);
	for (size_t at = 0; at < st->n && ok;)
		ok = read_series(&l, st, &at);
	if (ok)
		append_all(&l, max_ns);
	arena_release(&a);
}
