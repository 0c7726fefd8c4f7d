#include "base/clock.h"
#include "promql/rules/alerts.h"
#include "promql/rules/rules.h"
#include "promql/rules/template/template.h"
#include "tests/check.h"

/* A rule, and what its expression has at times: "a=1 b=2" are elements {x="a"} 1, {x="b"} 2. */
struct scene {
	struct rule_set *set;
	struct alert_state *state;
	struct arena arena;
};

static bool open_scene(struct scene *s, const char *group, const char *rule)
{
	static const struct rules_load l = { .interval_ns = NS_PER_MIN };
	struct buf text = { 0 };
	struct err err;
	enum err_code rc;

	arena_init(&s->arena, 0);
	buf_printf(&text, "groups: [{name: g%s, rules: [{alert: A, expr: up%s}]}]", group, rule);
	rc = rule_set_load_text("f", buf_str(&text), &l, &s->set, &err);
	buf_release(&text);
	if (rc) {
		CHECK_FAIL("%s", err.msg);
		return false;
	}
	s->state = alert_state_open(s->set->groups[0].rules, s->set->groups);
	return s->state != NULL;
}

static void close_scene(struct scene *s)
{
	alert_state_close(s->state);
	rule_set_unref(s->set);
	arena_release(&s->arena);
}

static enum err_code take(struct scene *s, int64_t minute, const char *elements, struct err *err)
{
	struct template_data data = { .external_url = STR("http://epi") };
	struct alert_element v[8];
	size_t n = 0;

	while (*elements) {
		struct label *l = arena_array(&s->arena, struct label, 1);
		size_t name = strcspn(elements, "=");
		char *end;

		*l = (struct label){ STR("x"), { elements, name } };
		v[n].labels = (struct labels){ l, 1 };
		v[n++].value = strtod(elements + name + 1, &end);
		elements = end + (*end == ' ');
	}
	return alert_state_take(s->state, NULL, v, n, minute * NS_PER_MIN, &data, err);
}

static void print(struct scene *s, struct buf *out)
{
	static const char phases[] = "-PF";
	struct alert *a;

	buf_clear(out);
	for (size_t i = 0; (a = alert_state_at(s->state, i)); i++) {
		buf_printf(out, "%s" STR_FMT "%c%lld", i ? " " : "",
			STR_ARG(labels_get(a->labels, STR("x"))), phases[a->phase],
				(long long)(a->active_at_ns / NS_PER_MIN));
		if (a->fired_at_ns)
			buf_printf(out, ",%lld", (long long)(a->fired_at_ns / NS_PER_MIN));
		if (a->resolved_at_ns)
			buf_printf(out, "/%lld", (long long)(a->resolved_at_ns / NS_PER_MIN));
		buf_printf(out, "=%g", a->value);
	}
}

struct moment {
	int64_t minute;
	const char *elements, *want; /* NAME PHASE active[,fired][/resolved]=value */
};

static void play(const char *group, const char *rule, const struct moment *m, size_t n)
{
	struct buf text = { 0 };
	struct scene s;
	struct err err;

	REQUIRE(open_scene(&s, group, rule));
	for (size_t i = 0; i < n; i++) {
		err.msg[0] = '\0';
		if (take(&s, m[i].minute, m[i].elements, &err)) {
			buf_clear(&text);
			buf_add_cstr(&text, err.msg);
		} else {
			print(&s, &text);
		}
		if (!str_is(buf_str(&text), m[i].want))
			CHECK_FAIL("%s%s at %d: is \"" STR_FMT "\", want \"%s\"", group, rule, (int)m[i].minute,
				STR_ARG(buf_str(&text)), m[i].want);
	}
	close_scene(&s);
	buf_release(&text);
}

#define PLAY(group, rule, ...) \
	do { \
		static const struct moment moments_[] = { __VA_ARGS__ }; \
		play(group, rule, moments_, sizeof(moments_) / sizeof(moments_[0])); \
	} while (0)

TEST(without_for_it_fires_at_once)
{
	PLAY("", "", { 1, "a=1", "aF1,1=1" }, { 2, "a=2", "aF1,1=2" }, { 3, "", "a-1,1/3=2" });
}

TEST(pending_before_firing)
{
	PLAY("", ", for: 2m", { 1, "a=1", "aP1=1" }, { 2, "a=1", "aP1=1" }, { 3, "a=1", "aF1,3=1" },
		{ 4, "", "a-1,3/4=1" });
	PLAY("", ", for: 2m", { 1, "a=1", "aP1=1" }, { 2, "", "" }, { 3, "a=1", "aP3=1" },
		{ 5, "a=1", "aF3,5=1" });
	PLAY("", ", for: 2m", { 1, "a=1 b=5", "aP1=1 bP1=5" }, { 2, "b=5", "bP1=5" },
		{ 3, "a=1 b=6", "aP3=1 bF1,3=6" });
}

TEST(resolved_ones_are_kept_for_15_minutes)
{
	PLAY("", "", { 1, "a=1", "aF1,1=1" }, { 2, "", "a-1,1/2=1" }, { 17, "", "a-1,1/2=1" },
		{ 18, "", "" });
}

TEST(it_fires_again)
{
	PLAY("", "", { 1, "a=1", "aF1,1=1" }, { 2, "", "a-1,1/2=1" }, { 3, "a=4", "aF3,3=4" });
	PLAY("", ", for: 1m", { 1, "a=1", "aP1=1" }, { 2, "a=1", "aF1,2=1" }, { 3, "", "a-1,2/3=1" },
		{ 4, "a=4", "aP4=4" }, { 5, "", "" });
}

TEST(keep_firing_for)
{
	PLAY("", ", keep_firing_for: 3m", { 1, "a=1", "aF1,1=1" }, { 2, "", "aF1,1=1" },
		{ 4, "", "aF1,1=1" }, { 5, "", "a-1,1/5=1" });
	PLAY("", ", keep_firing_for: 3m", { 1, "a=1", "aF1,1=1" }, { 2, "", "aF1,1=1" },
		{ 4, "a=2", "aF1,1=2" }, { 6, "", "aF1,1=2" }, { 8, "", "aF1,1=2" },
		{ 9, "", "a-1,1/9=2" });
	PLAY("", ", for: 1m, keep_firing_for: 3m", { 1, "a=1", "aP1=1" }, { 2, "", "" });
}

TEST(a_limit_drops_all)
{
	PLAY(", limit: 1", "", { 1, "a=1", "aF1,1=1" },
		{ 2, "a=1 b=1", "exceeded limit of 1 with 2 alerts" }, { 3, "b=1", "bF3,3=1" },
		{ 4, "a=1", "aF4,4=1 b-3,3/4=1" });
}

TEST(equal_label_sets_are_refused)
{
	PLAY("", ", labels: {x: same}", { 1, "a=1", "sameF1,1=1" },
		{ 2, "a=1 b=2",
			"vector contains metrics with the same labelset after applying alert "
			"labels" },
		{ 3, "b=3", "sameF1,1=3" });
}

TEST(templates_in_labels_and_annotations)
{
	struct buf text = { 0 };
	struct alert *a;
	struct scene s;
	struct err err;

	REQUIRE(open_scene(&s, "",
		", labels: {level: '{{ if gt $value 5.0 }}high{{ end }}', y: '{{ $labels.x }}!'}"
		", annotations: {s: '{{ $labels.x }} at {{ $value }} of {{ $externalURL }}'"
		", e: '{{ humanize \"z\" }}', l: '{{ $labels.level }}.', plain: p}"));
	CHECK_OK(take(&s, 1, "a=1.5 b=7", &err), &err);
	for (size_t i = 0; (a = alert_state_at(s.state, i)); i++) {
		labels_print(&text, a->labels);
		labels_print(&text, a->annotations);
		buf_add_char(&text, '\n');
	}
	CHECK_STR(buf_str(&text),
		"{alertname=\"A\", level=\"high\", x=\"b\", y=\"b!\"}"
		"{e=\"<error expanding template: 1:4: error calling humanize: "
		"strconv.ParseFloat: parsing \\\"z\\\": invalid syntax>\", l=\".\", "
		"plain=\"p\", s=\"b at 7 of http://epi\"}\n"
		"{alertname=\"A\", x=\"a\", y=\"a!\"}"
		"{e=\"<error expanding template: 1:4: error calling humanize: "
		"strconv.ParseFloat: parsing \\\"z\\\": invalid syntax>\", l=\".\", "
		"plain=\"p\", s=\"a at 1.5 of http://epi\"}\n");
	buf_release(&text);
	close_scene(&s);
}

/* A query of a template: it takes the state's lock, as others do meanwhile, and may fail. */
struct asking {
	struct mutex lock;
	enum err_code rc;
};

static enum err_code query_under_way(void *ctx, struct arena *a, struct str expr,
	struct template_sample **out, size_t *n, struct err *err)
{
	struct asking *x = ctx;

	(void)a;
	(void)expr;
	mutex_lock(&x->lock); /* others look at the alerts meanwhile */
	mutex_unlock(&x->lock);
	*out = NULL;
	*n = 0;
	return x->rc ? err_set(err, x->rc, "query was canceled in query queue") : ERR_OK;
}

TEST(a_canceled_query_of_a_template_changes_nothing)
{
	struct alert_element v = { .value = 1 };
	struct asking x = { .rc = ERR_OK };
	struct template_data data = { .query = query_under_way, .ctx = &x };
	struct buf text = { 0 };
	struct scene s;
	struct err err;

	mutex_init(&x.lock);
	REQUIRE(open_scene(&s, "", ", labels: {x: '{{ len (query \"up\") }}'}"));
	CHECK_OK(alert_state_take(s.state, &x.lock, &v, 1, NS_PER_MIN, &data, &err), &err);
	x.rc = ERR_CANCELED;
	CHECK_INT(alert_state_take(s.state, &x.lock, &v, 1, 2 * NS_PER_MIN, &data, &err), ERR_CANCELED);
	CHECK_STR(str_of(err.msg), "query was canceled in query queue");
	print(&s, &text);
	CHECK_STR(buf_str(&text), "0F1,1=1");
	x.rc = ERR_TIMEOUT;
	CHECK_OK(alert_state_take(s.state, &x.lock, &v, 1, 3 * NS_PER_MIN, &data, &err), &err);
	print(&s, &text);
	CHECK_STR(buf_str(&text),
		"0-1,1/3=1 <error expanding template: 1:9: error calling query: query was canceled "
		"in query queue>F3,3=1");
	buf_release(&text);
	close_scene(&s);
	mutex_destroy(&x.lock);
}

TEST(when_it_is_sent)
{
	static const struct {
		int64_t minute;
		const char *elements;
		bool due;
		int64_t valid_until; /* minutes */
	} rows[] = {
		{ 1, "a=1", false, 0 }, /* pending */
		{ 2, "a=1", true, 14 }, /* fires */
		{ 3, "a=1", false, 14 },
		{ 5, "a=1", true, 17 },
		{ 4, "a=1", true, 16 }, /* the clock was set back */
		{ 5, "a=1", false, 16 },
		{ 6, "", true, 18 }, /* resolved: at once */
		{ 7, "", false, 18 },
		{ 9, "", true, 21 },
	};
	struct scene s;
	struct err err;
	struct alert *a;

	REQUIRE(open_scene(&s, "", ", for: 1m"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE_OK(take(&s, rows[i].minute, rows[i].elements, &err), &err);
		a = alert_state_at(s.state, 0);
		CHECK_INT(
			alert_due(a, rows[i].minute * NS_PER_MIN, 3 * NS_PER_MIN, NS_PER_MIN), rows[i].due);
		CHECK_INT(a->valid_until_ns / NS_PER_MIN, rows[i].valid_until);
	}
	close_scene(&s);
}

TEST(restored)
{
	struct buf text = { 0 };
	struct scene s;
	struct err err;

	REQUIRE(open_scene(&s, "", ", for: 10m"));
	CHECK_OK(take(&s, 20, "a=1 b=1", &err), &err);
	alert_state_restore(
		s.state, alert_state_at(s.state, 0)->labels, 12 * NS_PER_MIN, 20 * NS_PER_MIN);
	CHECK_INT(alert_state_phase(s.state), ALERT_PENDING);
	CHECK_OK(take(&s, 22, "a=1 b=1", &err), &err);
	print(&s, &text);
	CHECK_STR(buf_str(&text), "aF12,22=1 bP20=1");
	CHECK_INT(alert_state_phase(s.state), ALERT_FIRING);
	buf_release(&text);
	close_scene(&s);
}
