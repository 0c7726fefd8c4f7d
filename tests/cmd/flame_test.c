#include "cmd/epitool/flame/color.h"
#include "cmd/epitool/flame/view.h"
#include "tests/check.h"
#include "tests/cmd/folded_profile.h"

#define TEXT \
	"main.main;main.handle;example.com/shop/prices.Parse 30\n" \
	"main.main;main.handle;example.com/shop/prices.Parse;runtime.memmove 20\n" \
	"main.main;main.serve 40\n" \
	"main.main;main.tiny 1\n" \
	"runtime.gc 9\n"

struct fixture {
	struct arena a;
	struct flame_tree t;
	struct flame_view v;
	struct err err;
	bool ok;
};

static void open_fixture(struct fixture *x, uint32_t width, uint32_t height)
{
	const struct pprof *p;

	*x = (struct fixture){ .ok = false };
	arena_init(&x->a, 0);
	p = folded_profile(&x->a, TEXT, "cpu", "nanoseconds");
	REQUIRE(p);
	REQUIRE_OK(flame_tree_make(&x->a, p, 0, &x->t, &x->err), &x->err);
	REQUIRE_OK(flame_view_open(&x->t, "shop", width, height, &x->v, &x->err), &x->err);
	x->ok = true;
}

static void close_fixture(struct fixture *x)
{
	flame_view_close(&x->v);
	flame_tree_release(&x->t);
	arena_release(&x->a);
}

static void check_plain(struct fixture *x, const char *want)
{
	struct buf out = { 0 };

	flame_print_plain(&x->t, &x->v.cells, x->v.width, &out);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
}

TEST(rows)
{
	struct fixture x;

	open_fixture(&x, 50, 24);
	if (x.ok) {
		CHECK_INT(x.t.nodes[FLAME_ROOT].total, 100);
		check_plain(&x,
			"|total\n"
			"|main.main                                   |run\xe2\x80\xa6\n"
			"|main.handle             |main.serve\n"
			"|prices.Parse\n"
			"|runtime.\xe2\x80\xa6\n");
	}
	close_fixture(&x);
}

/* At the width of a hundred each cost is a character, also the one of 1. */
TEST(every_cost_has_its_place)
{
	static const struct {
		const char *name;
		uint32_t row, x, width;
	} want[] = {
		{ "total", 0, 0, 100 },
		{ "main.main", 1, 0, 91 },
		{ "runtime.gc", 1, 91, 9 },
		{ "main.handle", 2, 0, 50 },
		{ "main.serve", 2, 50, 40 },
		{ "main.tiny", 2, 90, 1 },
		{ "example.com/shop/prices.Parse", 3, 0, 50 },
		{ "runtime.memmove", 4, 0, 20 },
	};
	struct fixture x;

	open_fixture(&x, 100, 24);
	CHECK_INT(x.v.cells.n, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; x.ok && i < x.v.cells.n && i < sizeof(want) / sizeof(want[0]); i++) {
		const struct flame_cell *c = &x.v.cells.v[i];

		CHECK_STR(flame_name(&x.t, c->node), want[i].name);
		CHECK_INT(c->row, want[i].row);
		CHECK_INT(c->x, want[i].x);
		CHECK_INT(c->width, want[i].width);
	}
	close_fixture(&x);
}

TEST(texts)
{
	static const struct {
		const char *name;
		uint32_t width;
		const char *want;
	} cases[] = {
		{ "main.main", 12, "main.main   " },
		{ "main.main", 9, "main.main" },
		{ "main.main", 5, "main\xe2\x80\xa6" },
		{ "main.main", 2, "  " },
		{ "main.main", 0, "" },
		{ "encoding/json.(*Decoder).Decode", 23, "json.(*Decoder).Decode " },
		{ "gr\xc3\xb6\xc3\x9f"
		  "e",
			4, "gr\xc3\xb6\xe2\x80\xa6" },
		{ "a\x1b[2J", 9, "a\\x1b[2J " },
	};
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&out);
		flame_text(&out, str_of(cases[i].name), cases[i].width);
		CHECK_STR(buf_str(&out), cases[i].want);
	}
	buf_release(&out);
}

static void type(struct fixture *x, const int *keys)
{
	for (; *keys; keys++)
		CHECK_OK(flame_view_key(&x->v, *keys, &x->err), &x->err);
}

#define SELECTED(x) flame_name(&(x).t, (x).v.selected)
#define ZOOM(x) flame_name(&(x).t, (x).v.zoom)

TEST(keys)
{
	struct fixture x;

	open_fixture(&x, 50, 24);
	if (!x.ok)
		return;
	type(&x, (const int[]){ KEY_UP, KEY_LEFT, KEY_RIGHT, 0 }); /* nothing is there */
	CHECK_STR(SELECTED(x), "total");
	type(&x, (const int[]){ KEY_DOWN, KEY_DOWN, 0 });
	CHECK_STR(SELECTED(x), "main.handle");
	type(&x, (const int[]){ KEY_RIGHT, KEY_RIGHT, 0 });
	CHECK_STR(SELECTED(x), "main.serve");
	type(&x, (const int[]){ KEY_LEFT, KEY_ENTER, 0 });
	CHECK_STR(ZOOM(x), "main.handle");
	check_plain(&x,
		"|total\n"
		"|main.main\n"
		"|main.handle\n"
		"|example.com/shop/prices.Parse\n"
		"|runtime.memmove\n");
	type(&x, (const int[]){ KEY_DOWN, KEY_DOWN, KEY_BACK, 0 }); /* out of main.handle */
	CHECK_STR(ZOOM(x), "main.main");
	CHECK_STR(SELECTED(x), "main.handle");
	type(&x, (const int[]){ KEY_ERASE, KEY_BACK, KEY_BACK, 0 });
	CHECK_STR(ZOOM(x), "total");
	CHECK(!x.v.over);
	type(&x, (const int[]){ 'q', 0 });
	CHECK(x.v.over);
	close_fixture(&x);
}

TEST(search)
{
	struct fixture x;

	open_fixture(&x, 50, 24);
	if (!x.ok)
		return;
	type(&x, (const int[]){ '/', 'R', 'u', 'n', 'x', KEY_ERASE, KEY_ENTER, 0 });
	CHECK_INT(x.v.found, 29);
	CHECK_STR(SELECTED(x), "runtime.gc");
	type(&x, (const int[]){ 'n', 0 });
	CHECK_STR(SELECTED(x), "runtime.memmove");
	type(&x, (const int[]){ 'n', 0 });
	CHECK_STR(SELECTED(x), "runtime.gc");
	type(&x, (const int[]){ KEY_BACK, 0 });
	CHECK_INT(x.v.search_n, 0);
	type(&x, (const int[]){ '/', 'q', KEY_BACK, 0 }); /* q is a letter while one types */
	CHECK(!x.v.over && !x.v.typing);
	close_fixture(&x);
}

/* A low screen shows the rows around the selected one. */
TEST(drawing)
{
	struct buf out = { 0 };
	struct fixture x;

	open_fixture(&x, 50, 4);
	if (!x.ok)
		return;
	flame_view_draw(&x.v, &out);
	CHECK(str_find(buf_str(&out), STR("cpu  100ns  shop")) >= 0);
	CHECK(str_find(buf_str(&out), STR("main.main")) >= 0);
	CHECK(str_find(buf_str(&out), STR("main.handle")) < 0);
	buf_clear(&out);
	type(&x, (const int[]){ KEY_DOWN, KEY_DOWN, KEY_DOWN, 0 });
	flame_view_draw(&x.v, &out);
	CHECK(str_find(buf_str(&out), STR("main.main")) < 0);
	CHECK(str_find(buf_str(&out), STR("main.serve")) >= 0);
	CHECK(str_find(buf_str(&out), STR("\033[4;1H\033[0m50ns (50.00%), itself 30ns (30.00%)")) >= 0);
	buf_clear(&out);
	flame_view_print(&x.v, &out);
	CHECK(str_find(buf_str(&out), STR("\033[2J")) < 0);
	CHECK(str_find(buf_str(&out), STR("main.main")) >= 0);
	buf_release(&out);
	close_fixture(&x);
}

TEST(resizing)
{
	struct fixture x;

	open_fixture(&x, 100, 24);
	if (!x.ok)
		return;
	type(&x, (const int[]){ KEY_DOWN, KEY_DOWN, KEY_RIGHT, KEY_RIGHT, 0 });
	CHECK_STR(SELECTED(x), "main.tiny");
	CHECK_OK(flame_view_resize(&x.v, 20, 2, &x.err), &x.err); /* its cell is gone */
	CHECK_STR(SELECTED(x), "main.main");
	CHECK_OK(flame_view_resize(&x.v, 1, 1, &x.err), &x.err);
	CHECK_OK(flame_view_resize(&x.v, 0, 0, &x.err), &x.err);
	close_fixture(&x);
}

TEST(bytes_of_keys)
{
	static const struct {
		const char *bytes;
		bool complete;
		int key;
		size_t used;
	} cases[] = {
		{ "", true, KEY_NONE, 0 },
		{ "\033[A", false, KEY_UP, 3 },
		{ "\033OB", false, KEY_DOWN, 3 },
		{ "\033[Cq", false, KEY_RIGHT, 3 },
		{ "\033", false, KEY_NONE, 0 },
		{ "\033", true, KEY_BACK, 1 },
		{ "\033[", false, KEY_NONE, 0 },
		{ "\033q", false, KEY_BACK, 1 },
		{ "\033[15~", false, KEY_NONE, 5 },
		{ "\033[1;5A", false, KEY_NONE, 6 },
		{ "\r", false, KEY_ENTER, 1 },
		{ "\177", false, KEY_ERASE, 1 },
		{ "q", false, 'q', 1 },
		{ "\xc3\xb6", false, 0xc3, 1 },
	};
	size_t used;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(flame_key_read(str_of(cases[i].bytes), cases[i].complete, &used), cases[i].key);
		CHECK_INT(used, cases[i].used);
	}
}

TEST(nothing_to_show)
{
	const struct pprof *p;
	struct flame_tree t;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	p = folded_profile(&a, "", "cpu", "nanoseconds");
	if (p && p->types_n) {
		CHECK(flame_tree_make(&a, p, 0, &t, &err) == ERR_INVALID);
		CHECK_STR(str_of(err.msg), "the profile has no costs of type cpu");
		flame_tree_release(&t);
	}
	arena_release(&a);
}

TEST(colors)
{
	CHECK_INT(color_hash(STR("")), 0x811c9dc5);
	CHECK_INT(color_hash(STR("a")), 0xe40c292c); /* FNV-1a's own test value */
	CHECK_INT(color_nearest(1, 0, 0), 231); /* white */
	CHECK_INT(color_nearest(0, 0, 0), 16);
	CHECK_INT(color_of(STR("main.f")), color_of(STR("main.f")));
	CHECK_INT(color_of(STR("[kernel]")), COLOR_UNNAMED);
	CHECK_INT(color_of(STR("0x4005d0")), COLOR_UNNAMED);
	CHECK(color_of(STR("runtime.memmove")) >= COLOR_RUNTIME - 1 &&
		color_of(STR("runtime.memmove")) <= COLOR_RUNTIME + 1);
}
