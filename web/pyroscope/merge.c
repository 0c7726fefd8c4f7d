/*
 * Profiles merged as a flame graph, a tree or pprof; differences of two.
 *
 * Each is one query: merge(selector) over (start, end], or the difference of two, each with its
 * window.
 */
#include "web/pyroscope/pyroscope.h"
#include "web/pyroscope/selector.h"
#include "web/render/call_site.h"
#include "web/render/flame.h"
#include "web/render/render.h"

typedef Epimetheus__Pyroscope__SelectMergeStacktracesRequest stacktraces_request;
typedef Epimetheus__Pyroscope__StackTraceSelector stack_selector;
typedef Epimetheus__Pyroscope__GoPGO go_pgo;
typedef Epimetheus__Pyroscope__Level level_message;

#define FORMAT(name) EPIMETHEUS__PYROSCOPE__PROFILE_FORMAT__PROFILE_FORMAT_##name
#define CALL_SITE_MAX 4096u
#define PPROF_FIELD_TAG 0x2a /* field 5 of the response, field 1 of what is in it: messages */
#define PROFILE_FIELD_TAG 0x0a

/* ---- what is asked ---- */

static enum err_code pyroscope_add_selector(struct pyroscope_call *c, const char *type_id,
	const char *label_selector, struct buf *text, struct err *err)
{
	struct pyroscope_selector s;
	enum err_code rc = pyroscope_selector_read(
		&c->in->arena, str_of(type_id), str_of(label_selector), &s, err);

	if (rc)
		return rc;
	if (s.types_n)
		pyroscope_selector_print(text, &s);
	else
		rc = err_set(err, ERR_INVALID, "profile_typeID is missing");
	pyroscope_selector_release(&s);
	return rc;
}

/*
 * These would narrow the selection. Ignoring them would answer another question, so they are
 * refused.
 */
static enum err_code pyroscope_no_ids(size_t profiles, size_t traces, size_t spans, struct err *err)
{
	if (!profiles && !traces && !spans)
		return ERR_OK;
	return err_set(err, ERR_UNSUPPORTED, "%s_selector is not supported",
		profiles   ? "profile_id" :
			traces ? "trace_id" :
					 "span");
}

static enum err_code pyroscope_no_ids_of(const stacktraces_request *request, struct err *err)
{
	return pyroscope_no_ids(request->n_profile_id_selector, request->n_trace_id_selector,
		request->n_span_selector, err);
}

static enum err_code flame_options_of(struct pyroscope_call *c, int64_t max_nodes,
	const stack_selector *stacks, struct flame_options *out, struct err *err)
{
	struct str *names;

	*out = (struct flame_options){ .max_nodes = max_nodes > 0 ? (size_t)max_nodes :
																RENDER_NODES_DEFAULT };
	if (out->max_nodes > RENDER_NODES_MAX)
		out->max_nodes = RENDER_NODES_MAX;
	if (!stacks)
		return ERR_OK;
	if (stacks->n_call_site > CALL_SITE_MAX)
		return err_set(err, ERR_LIMIT, "%zu frames in call_site, limit %u", stacks->n_call_site,
			CALL_SITE_MAX);
	if (!(names = arena_array(&c->in->arena, struct str, stacks->n_call_site + 1)))
		return arena_fail(&c->in->arena, "call_site", err);
	for (size_t i = 0; i < stacks->n_call_site; i++)
		names[i] = str_of(stacks->call_site[i]->name);
	out->call_site = names;
	out->call_site_n = stacks->n_call_site;
	return ERR_OK;
}

/* merge(selector) over the span. */
static enum err_code pyroscope_run_merge(struct pyroscope_call *c, const char *type_id,
	const char *label_selector, int64_t start_ms, int64_t end_ms, struct query **out,
	struct err *err)
{
	struct query_options o = { .has_span = true };
	struct buf text = { 0 };
	enum err_code rc = pyroscope_times(start_ms, end_ms, &o.start_ns, &o.end_ns, err);

	o.t_ns = o.end_ns;
	buf_add_cstr(&text, "merge(");
	if (!rc && !(rc = pyroscope_add_selector(c, type_id, label_selector, &text, err))) {
		buf_add_char(&text, ')');
		rc = pyroscope_run(c, &text, &o, out, err);
	}
	buf_release(&text);
	return rc;
}

/* ---- flame graphs as messages ---- */

struct graph {
	char **names;
	level_message **levels;
};

static enum err_code pyroscope_fill_graph(
	struct arena *a, const struct flame_picture *f, struct graph *to, struct err *err)
{
	level_message *items = arena_array(a, level_message, f->rows_n + 1);

	to->names = arena_array(a, char *, f->names_n + 1);
	to->levels = arena_array(a, level_message *, f->rows_n + 1);
	if (!items || !to->names || !to->levels)
		return arena_fail(a, "flame graph", err);
	for (size_t i = 0; i < f->names_n; i++)
		if (!(to->names[i] = pyroscope_text(a, f->names[i])))
			return arena_fail(a, "flame graph", err);
	for (size_t i = 0; i < f->rows_n; i++) {
		epimetheus__pyroscope__level__init(&items[i]);
		items[i].values = f->rows[i].v;
		items[i].n_values = f->rows[i].n;
		to->levels[i] = &items[i];
	}
	return ERR_OK;
}

/* Without profiles the graph is an empty root. */
static enum err_code pyroscope_layout(const struct result *r, bool is_diff,
	const struct flame_options *o, struct arena *a, struct flame_picture *out, struct err *err)
{
	const struct profile_value none = { .is_diff = is_diff };

	return flame_layout(r->n ? &r->profiles[0] : &none, o, a, out, err);
}

static enum err_code pyroscope_answer_flame(struct pyroscope_call *c, const struct result *r,
	const struct flame_options *o, struct arena *a, struct err *err)
{
	Epimetheus__Pyroscope__SelectMergeStacktracesResponse m;
	Epimetheus__Pyroscope__FlameGraph flame;
	struct flame_picture f;
	struct graph graph;
	enum err_code rc;

	if ((rc = pyroscope_layout(r, false, o, a, &f, err)) ||
		(rc = pyroscope_fill_graph(a, &f, &graph, err)))
		return rc;
	epimetheus__pyroscope__select_merge_stacktraces_response__init(&m);
	epimetheus__pyroscope__flame_graph__init(&flame);
	flame.names = graph.names;
	flame.n_names = f.names_n;
	flame.levels = graph.levels;
	flame.n_levels = f.rows_n;
	flame.total = f.right_ticks;
	flame.max_self = f.max_self;
	m.flamegraph = &flame;
	return pyroscope_answer(c, &m.base, err);
}

static enum err_code pyroscope_answer_tree(struct pyroscope_call *c, const struct result *r,
	const struct flame_options *o, struct arena *a, struct err *err)
{
	Epimetheus__Pyroscope__SelectMergeStacktracesResponse m;
	struct buf tree = { 0 };
	enum err_code rc = ERR_OK;

	if (r->n)
		rc = flame_tree(&r->profiles[0], o, a, &tree, err);
	if (!rc) {
		epimetheus__pyroscope__select_merge_stacktraces_response__init(&m);
		m.tree = (ProtobufCBinaryData){ tree.len, (uint8_t *)tree.ptr };
		rc = pyroscope_answer(c, &m.base, err);
	}
	buf_release(&tree);
	return rc;
}

/* ---- pprof ---- */

/* keep_locations 0 keeps all. Lines of leaves are dropped to aggregate callees. */
static enum err_code pyroscope_make_pprof(const struct result *r, const go_pgo *pgo,
	struct arena *a, const struct flame_options *f, struct pprof **out, struct err *err)
{
	struct render_options o = { .arena = a, .canceled = f->canceled };

	if (!pgo)
		return render_pprof(r, &o, out, err);
	o.pgo_locations = pgo->keep_locations ? pgo->keep_locations : UINT32_MAX;
	o.pgo_leaf_lines = !pgo->aggregate_callees;
	return render_pgo(r, &o, out, err);
}

/*
 * If the options have a call site, it encodes only the stacks that begin with it; but of a profile
 * for `go build -pgo` all, as Pyroscope does.
 */
static enum err_code pyroscope_encode_pprof(const struct result *r, const go_pgo *pgo,
	const struct flame_options *f, struct arena *a, struct buf *out, struct err *err)
{
	struct result kept = *r;
	struct pprof *p;
	char *text;
	enum err_code rc;

	if (r->n && f->call_site_n && !pgo) {
		if (!(kept.profiles = arena_new(a, struct profile_value)))
			return arena_fail(a, "profile", err);
		if ((rc = call_site_keep(
				 &r->profiles[0], f->call_site, f->call_site_n, a, kept.profiles, &kept.n, err)))
			return rc;
	}
	if (!kept.n)
		return ERR_OK; /* an empty profile has no bytes */
	if ((rc = pyroscope_make_pprof(&kept, pgo, a, f, &p, err)))
		return rc;
	for (uint32_t i = 0; i < p->strings_n; i++) {
		if (str_is_utf8(p->strings[i]))
			continue; /* else its readers refuse the whole */
		if (!(text = pyroscope_text(a, p->strings[i])))
			return arena_fail(a, "profile", err);
		p->strings[i] = str_of(text);
	}
	return pprof_encode(p, out, err);
}

static enum err_code pyroscope_answer_pprof_json(
	struct pyroscope_call *c, struct str wire, bool wrapped, struct arena *a, struct err *err)
{
	Epimetheus__Pyroscope__SelectMergeStacktracesResponse m;
	Epimetheus__Pyroscope__PprofProfile pprof;
	ProtobufCMessage *profile;
	enum err_code rc;

	rc = pyroscope_decode(a, &epimetheus__pprof__profile__descriptor, false, wire, &profile, err);
	if (rc)
		return err_set(
			err, ERR_LIMIT, "the profile is too large for JSON; ask for application/proto");
	if (!wrapped)
		return pyroscope_answer(c, profile, err);
	epimetheus__pyroscope__select_merge_stacktraces_response__init(&m);
	epimetheus__pyroscope__pprof_profile__init(&pprof);
	pprof.profile = (Epimetheus__Pprof__Profile *)(void *)profile;
	m.pprof = &pprof;
	return pyroscope_answer(c, &m.base, err);
}

/* wrapped: a field of the answer of SelectMergeStacktraces, else the whole answer. */
static enum err_code pyroscope_answer_pprof(struct pyroscope_call *c, const struct result *r,
	bool wrapped, const stack_selector *stacks, const struct flame_options *o, struct arena *a,
	struct err *err)
{
	struct buf wire = { 0 }, inner = { 0 }, outer = { 0 };
	enum err_code rc = pyroscope_encode_pprof(r, stacks ? stacks->go_pgo : NULL, o, a, &wire, err);

	if (!rc && c->json) {
		rc = pyroscope_answer_pprof_json(c, buf_str(&wire), wrapped, a, err);
	} else if (!rc && wrapped) {
		buf_add_char(&inner, PROFILE_FIELD_TAG);
		buf_add_lenstr(&inner, buf_str(&wire));
		buf_add_char(&outer, PPROF_FIELD_TAG);
		buf_add_lenstr(&outer, buf_str(&inner));
		pyroscope_answer_wire(c, buf_str(&outer));
	} else if (!rc) {
		pyroscope_answer_wire(c, buf_str(&wire));
	}
	if (!rc && (wire.failed || inner.failed || outer.failed || c->out->body.failed))
		rc = err_nomem(err, "answer");
	buf_release(&wire);
	buf_release(&inner);
	buf_release(&outer);
	return rc;
}

/* ---- methods ---- */

static enum err_code pyroscope_end(struct query *q, enum err_code rc, struct err *err)
{
	if (rc == ERR_CANCELED)
		rc = query_stopped(q, "rendering", err);
	query_close(q);
	return rc;
}

static enum err_code pyroscope_check_format(const stacktraces_request *request, struct err *err)
{
	switch ((int)request->format) {
	case FORMAT(UNSPECIFIED):
	case FORMAT(FLAMEGRAPH):
	case FORMAT(TREE):
		return pyroscope_no_pgo(request->stack_trace_selector, err);
	case FORMAT(PPROF):
		return ERR_OK;
	case FORMAT(DOT):
		return err_set(err, ERR_UNSUPPORTED,
			"format PROFILE_FORMAT_DOT is not supported: go tool pprof -dot draws what "
			"PROFILE_FORMAT_PPROF gives");
	default:
		return err_set(err, ERR_UNSUPPORTED, "format %d is not supported", (int)request->format);
	}
}

enum err_code pyroscope_stacktraces(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	const stacktraces_request *r = (const void *)request;
	struct flame_options o;
	struct query *q;
	enum err_code rc;

	if ((rc = pyroscope_no_ids_of(r, err)) ||
		(rc = flame_options_of(c, r->max_nodes, r->stack_trace_selector, &o, err)) ||
		(rc = pyroscope_check_format(r, err)) ||
		(rc = pyroscope_run_merge(
			 c, r->profile_typeid, r->label_selector, r->start, r->end, &q, err)))
		return rc;
	o.canceled = query_stop_flag(q);
	switch ((int)r->format) {
	case FORMAT(TREE):
		rc = pyroscope_answer_tree(c, query_result(q), &o, query_arena(q), err);
		break;
	case FORMAT(PPROF):
		rc = pyroscope_answer_pprof(
			c, query_result(q), true, r->stack_trace_selector, &o, query_arena(q), err);
		break;
	default:
		rc = pyroscope_answer_flame(c, query_result(q), &o, query_arena(q), err);
	}
	return pyroscope_end(q, rc, err);
}

enum err_code pyroscope_profile(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	const Epimetheus__Pyroscope__SelectMergeProfileRequest *r = (const void *)request;
	struct flame_options o;
	struct query *q;
	enum err_code rc;

	if ((rc = pyroscope_no_ids(r->n_profile_id_selector, r->n_trace_id_selector, 0, err)) ||
		(rc = flame_options_of(c, r->max_nodes, r->stack_trace_selector, &o, err)) ||
		(rc = pyroscope_run_merge(
			 c, r->profile_typeid, r->label_selector, r->start, r->end, &q, err)))
		return rc;
	o.canceled = query_stop_flag(q);
	rc = pyroscope_answer_pprof(
		c, query_result(q), false, r->stack_trace_selector, &o, query_arena(q), err);
	return pyroscope_end(q, rc, err);
}

/* ---- differences ---- */

/* One side: merge(selector[window] @ end). *empty: the window has no length. */
static enum err_code pyroscope_add_side(struct pyroscope_call *c,
	const stacktraces_request *request, struct buf *text, int64_t *latest_ns, bool *empty,
	struct err *err)
{
	int64_t start_ns, end_ns;
	enum err_code rc = pyroscope_times(request->start, request->end, &start_ns, &end_ns, err);

	if (rc)
		return rc;
	*empty |= start_ns == end_ns;
	if (end_ns > *latest_ns)
		*latest_ns = end_ns;
	buf_add_cstr(text, "merge(");
	if ((rc = pyroscope_add_selector(
			 c, request->profile_typeid, request->label_selector, text, err)))
		return rc;
	buf_printf(text, "[%lldms] @ %lld.%03lld)", (long long)(request->end - request->start),
		(long long)(request->end / 1000), (long long)(request->end % 1000));
	return ERR_OK;
}

static bool pyroscope_same_stacks(const struct flame_options *a, const struct flame_options *b)
{
	if (a->call_site_n != b->call_site_n)
		return false;
	for (size_t i = 0; i < a->call_site_n; i++)
		if (!str_eq(a->call_site[i], b->call_site[i]))
			return false;
	return true;
}

static enum err_code pyroscope_diff_options(struct pyroscope_call *c,
	const stacktraces_request *left, const stacktraces_request *right, struct flame_options *out,
	struct err *err)
{
	struct flame_options base;
	enum err_code rc;

	if (!left || !right)
		return err_set(err, ERR_INVALID, "%s is missing", left ? "right" : "left");
	if ((rc = pyroscope_no_ids_of(left, err)) || (rc = pyroscope_no_ids_of(right, err)) ||
		(rc = pyroscope_no_pgo(left->stack_trace_selector, err)) ||
		(rc = pyroscope_no_pgo(right->stack_trace_selector, err)) ||
		(rc = flame_options_of(c, left->max_nodes, left->stack_trace_selector, &base, err)) ||
		(rc = flame_options_of(c, right->max_nodes, right->stack_trace_selector, out, err)))
		return rc;
	if (!pyroscope_same_stacks(&base, out))
		return err_set(
			err, ERR_UNSUPPORTED, "sides with a stack_trace_selector each are not supported");
	if (base.max_nodes > out->max_nodes)
		out->max_nodes = base.max_nodes;
	return ERR_OK;
}

static enum err_code pyroscope_answer_diff(struct pyroscope_call *c, const struct result *r,
	const struct flame_options *o, struct arena *a, struct err *err)
{
	Epimetheus__Pyroscope__FlameGraphDiff flame;
	Epimetheus__Pyroscope__DiffResponse m;
	struct flame_picture f;
	struct graph graph;
	enum err_code rc;

	if ((rc = pyroscope_layout(r, true, o, a, &f, err)) ||
		(rc = pyroscope_fill_graph(a, &f, &graph, err)))
		return rc;
	epimetheus__pyroscope__diff_response__init(&m);
	epimetheus__pyroscope__flame_graph_diff__init(&flame);
	flame.names = graph.names;
	flame.n_names = f.names_n;
	flame.levels = graph.levels;
	flame.n_levels = f.rows_n;
	flame.total = f.left_ticks + f.right_ticks;
	flame.max_self = f.max_self;
	flame.leftticks = f.left_ticks;
	flame.rightticks = f.right_ticks;
	m.flamegraph = &flame;
	return pyroscope_answer(c, &m.base, err);
}

enum err_code pyroscope_diff(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err)
{
	const Epimetheus__Pyroscope__DiffRequest *r = (const void *)request;
	const stacktraces_request *left = r->left, *right = r->right;
	struct query_options qo = { 0 };
	struct buf text = { 0 };
	struct flame_options o;
	struct query *q = NULL;
	bool empty = false;
	enum err_code rc;

	if ((rc = pyroscope_diff_options(c, left, right, &o, err)))
		return rc;
	buf_add_cstr(&text, "diff("); /* the new side comes first, and is the right one */
	if ((rc = pyroscope_add_side(c, right, &text, &qo.t_ns, &empty, err)))
		goto out;
	buf_add_char(&text, ',');
	if ((rc = pyroscope_add_side(c, left, &text, &qo.t_ns, &empty, err)))
		goto out;
	buf_add_char(&text, ')');
	if (empty)
		rc = err_set(err, ERR_INVALID, "a side of the difference has no length");
	if (!rc && !(rc = pyroscope_run(c, &text, &qo, &q, err))) {
		o.canceled = query_stop_flag(q);
		rc = pyroscope_end(
			q, pyroscope_answer_diff(c, query_result(q), &o, query_arena(q), err), err);
	}
out:
	buf_release(&text);
	return rc;
}
