#include "proto/report/frame_text.h"

struct str frame_path_base(struct str path)
{
	size_t start;

	if (path.len == 0)
		return STR(".");
	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	for (start = path.len; start > 0 && path.ptr[start - 1] != '/'; start--)
		;
	return start == path.len ? STR("/") : (struct str){ path.ptr + start, path.len - start };
}

struct str frame_binary_name(struct arena *a, struct str objfile)
{
	struct str base;
	char *text;

	if (objfile.len == 0)
		return STR("<unknown>");
	base = frame_path_base(objfile);
	text = arena_printf(a, "[" STR_FMT "]", STR_ARG(base));
	return (struct str){ text, text ? base.len + 2 : 0 };
}

struct str frame_simplified(struct str name)
{
	static const char *const kept[] = { "(anonymous namespace)", "operator()" };
	size_t i = 0;

	if (name.len > 0 && name.ptr[0] == '.')
		name = (struct str){ name.ptr + 1, name.len - 1 };
	while (i < name.len) {
		struct str rest = { name.ptr + i, name.len - i };
		size_t step = 1;

		for (size_t k = 0; k < 2; k++)
			if (str_has_prefix(rest, str_of(kept[k])))
				step = strlen(kept[k]);
		if (step == 1 && name.ptr[i] == '(')
			return (struct str){ name.ptr, i };
		i += step;
	}
	return name;
}
