#include "tests/check.h"
#include "web/mcp/reply.h"

static struct arena arena;
static struct reply reply;
static struct buf text, object;

static void start(void)
{
	arena_init(&arena, 16u << 20);
	reply = (struct reply){ .arena = &arena };
}

static void write(size_t max_bytes)
{
	struct json j;
	struct err err;

	buf_clear(&text);
	buf_clear(&object);
	json_init(&j, &object);
	REQUIRE_OK(reply_write(&reply, max_bytes, &text, &j, &err), &err);
}

static void stop(void)
{
	buf_release(&text);
	buf_release(&object);
	arena_release(&arena);
}

static const char *const columns[] = { "flat", "flat%", "function", "where" };

static void add_row(struct reply_table *t, int64_t flat, double percent, const char *name)
{
	reply_cell_amount(&reply, t, flat, STR("nanoseconds"));
	reply_cell_percent(&reply, t, percent);
	reply_cell_text(&reply, t, str_of(name));
	reply_cell_text(&reply, t, STR("a.go:1"));
	reply_row_share(&reply, t, percent);
}

TEST(a_reply_is_text_and_the_same_as_an_object)
{
	struct reply_table *t;
	struct buf arguments;
	struct json j;

	start();
	reply_fact(&reply, "profiles", STR("cpu{job=\"api\"}"));
	reply_fact_amount(&reply, "total", 12300000000, STR("nanoseconds"));
	t = reply_table(&reply, "functions", "functions", columns, 4);
	add_row(t, 9100000000, 73.98, "main.work");
	add_row(t, 1200000000, 9.76, "main.rest");
	t->all_n = 4;
	t->share_of = "flat cost";
	t->shares_all = 100;
	reply_note(&reply, STR("a note"));
	reply_note(&reply, STR("a note"));
	reply_next_begin(&j, &arguments);
	json_key(&j, "function");
	json_cstr(&j, "main.work");
	reply_next(&reply, "function", &j, "who calls it");
	write(REPLY_BYTES_DEFAULT);
	CHECK_STR(buf_str(&text),
		"profiles: cpu{job=\"api\"}\n"
		"total: 12.30s\n"
		"functions:\n"
		" flat   flat%  function  where\n"
		"9.10s  73.98%  main.work  a.go:1\n"
		"1.20s   9.76%  main.rest  a.go:1\n"
		"2 of 4 functions; the other 2 have 16.26% of the flat cost\n"
		"note: a note\n"
		"next: function {\"function\":\"main.work\"} (who calls it)\n");
	CHECK_STR(buf_str(&object),
		"{\"profiles\":\"cpu{job=\\\"api\\\"}\",\"total\":12300000000,\"functions\":{\"columns\":"
		"[\"flat\",\"flat%\",\"function\",\"where\"],\"rows\":[[9100000000,73.98,\"main.work\","
		"\"a.go:1\"],[1200000000,9.76,\"main.rest\",\"a.go:1\"]],\"left_out\":2},\"notes\":"
		"[\"a "
		"note\"],\"next\":[{\"tool\":\"function\",\"arguments\":{\"function\":\"main.work\"}}]}");
	stop();
}

/* Whatever the names are, no text is longer, and the object has the rows of the text. */
TEST(a_reply_keeps_its_bound)
{
	static const size_t bounds[] = { REPLY_BYTES_MIN, 2000, REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX };
	struct reply_table *t[2];
	char name[2000];

	start();
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t k = 0; k < 2; k++) {
		t[k] = reply_table(&reply, k ? "callers" : "callees", "functions", columns, 4);
		for (int i = 0; i < 300; i++)
			add_row(t[k], 1000000 - i, 0.3, i % 3 ? "main.short" : name);
	}
	for (int i = 0; i < 20; i++)
		reply_notef(&reply, "note %d: %.200s", i, name);
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		write(bounds[i]);
		if (text.len > bounds[i])
			CHECK_FAIL("%zu bytes of %zu", text.len, bounds[i]);
		CHECK(buf_str(&text).ptr[text.len - 1] == '\n');
	}
	CHECK(t[0]->shown > 50 && t[1]->shown > 50);
	CHECK_INT(t[0]->all_n, 300);
	stop();
}

/* Names are the profiled program's choice. */
TEST(no_name_ends_a_line_or_moves_a_cursor)
{
	static const char *const name[] = { "name" };
	struct reply_table *t;

	start();
	t = reply_table(&reply, "functions", "functions", name, 1);
	reply_cell_text(&reply, t, STR("main.a\nnext: quit {}\x1b[2J\xff"));
	reply_fact(&reply, "source", STR("a\nb"));
	write(REPLY_BYTES_DEFAULT);
	CHECK_STR(buf_str(&text),
		"source: a\\nb\n"
		"functions:\n"
		"name\n"
		"main.a\\nnext: quit {}\\x1b[2J\\xff\n");
	stop();
}

TEST(a_body_is_cut_at_the_end_of_a_line)
{
	struct buf lines = { 0 };

	start();
	for (int i = 0; i < 1000; i++)
		buf_printf(&lines, "line %d\n", i);
	reply_body(&reply, buf_str(&lines));
	write(REPLY_BYTES_MIN);
	CHECK(text.len <= REPLY_BYTES_MIN && text.len > REPLY_BYTES_MIN - 100);
	CHECK(str_find(buf_str(&text), STR("line 0\nline 1\n")) == 0);
	CHECK(str_find(buf_str(&text), STR("\n... cut: raise max_bytes\n")) > 0);
	buf_release(&lines);
	stop();
}
