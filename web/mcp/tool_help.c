/* help: the language by example, and its functions from their own table. */
#include "base/quote.h"
#include "promql/syntax/functions.h"
#include "web/mcp/tool.h"

#define EXAMPLES \
	"Selectors: NAME[:TYPE]{label=\"value\", label=~\"regex\", label!=\"value\"}, as in PromQL.\n" \
	"  cpu{__service__=\"cart\"}        CPU time; __service__ is service_name, or else job\n" \
	"  memory{version=\"v2\"}           bytes in use; memory:alloc_space what was allocated\n" \
	"  mutex, block, goroutine        waits for locks; waits for anything; goroutines\n" \
	"  cpu[5m], cpu[5m] offset 1h     windows; cpu[5m] @ 1700000000 ends then\n" \
	"Profiles from profiles:\n" \
	"  merge(cpu)                     all as one; merge by (version) (cpu) one a version\n" \
	"  merge(cpu{version=\"v2\"}) - merge(cpu{version=\"v1\"})   the difference\n" \
	"  focus(P, \"json\")               stacks with a match; also ignore, hide, show\n" \
	"  callers(P, \"^main.f$\"), callees(P, \"^main.f$\")\n" \
	"  rate(cpu[5m])                  per second: / 1e9 gives cores\n" \
	"Numbers from profiles:\n" \
	"  topk(5, flat(merge(cpu)))      the functions that cost most themselves; cum: with " \
	"callees\n" \
	"  flat by (function, line) (merge(cpu), {function=\"main.f\"})\n" \
	"  cum_share(merge by (version) (cpu), {function=\"main.f\"})   a share, 0 to 1\n" \
	"  total(merge by (__service__) (rate(cpu[5m]))) / 1e9         cores of each service\n" \
	"  total(memory), max(...), sum by (pod) (...), A / B, A > 0.1  as in PromQL\n" \
	"Tables and verdicts:\n" \
	"  top(10, merge(cpu))            as go tool pprof -top\n" \
	"  changed(cpu[15m], cpu[15m] offset 15m)   functions whose share moved beyond chance\n" \
	"Bare selectors take the whole window of a tool's call (window, end).\n" \
	"Times: 15m, 1h30m, 7d. Errors say line and column. topic=functions lists all functions.\n"

static void help_tell_function(struct tool_call *c, const struct function *f)
{
	struct buf b = { 0 };

	reply_fact(&c->reply, "usage", str_of(f->usage));
	reply_fact(&c->reply, "help", str_of(f->help));
	value_types_print(&b, f->result);
	reply_fact(&c->reply, "gives", buf_str(&b));
	c->reply.failed |= buf_failed(&b);
	buf_release(&b);
}

static void help_tell_functions(struct tool_call *c)
{
	static const char *const columns[] = { "usage", "help" };
	struct reply_table *t = reply_table(&c->reply, "functions", "functions", columns, 2);

	for (size_t i = 0; i < FUNCTIONS; i++) {
		reply_cell_text(&c->reply, t, str_of(functions[i].usage));
		reply_cell_text(&c->reply, t, str_of(functions[i].help));
	}
}

enum err_code tool_help_run(struct tool_call *c, struct err *err)
{
	struct str topic = tool_string(c, "topic");
	const struct function *f = function_find(topic);
	struct nearest near = nearest_to(topic);

	if (!topic.len) {
		reply_body(&c->reply, STR(EXAMPLES));
	} else if (str_is(topic, "functions")) {
		help_tell_functions(c);
	} else if (f) {
		help_tell_function(c, f);
	} else {
		for (size_t i = 0; i < FUNCTIONS; i++)
			nearest_try(&near, str_of(functions[i].name));
		return err_set(err, ERR_NOT_FOUND, "no function is called %s%s; topic functions lists all",
			QUOTED(topic), DID_YOU_MEAN(&near));
	}
	return ERR_OK;
}
