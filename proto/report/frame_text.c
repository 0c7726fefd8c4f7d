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

/* ---- paths of source files ---- */

#define CWD "/proc/self/cwd/"

/* Takes the next element off a list by colon; an empty list has none, "a:" has two. */
static bool frame_path_next(struct str *list, bool *more, struct str *out)
{
	size_t n = 0;

	if (!*more)
		return false;
	while (n < list->len && list->ptr[n] != ':')
		n++;
	*out = (struct str){ list->ptr, n };
	*more = n < list->len;
	n += *more;
	*list = (struct str){ list->ptr + n, list->len - n };
	return true;
}

/* The length of "dir/" if path begins so, else 0. */
static size_t frame_path_prefix(struct str path, struct str dir)
{
	bool slash = dir.len == 0 || dir.ptr[dir.len - 1] != '/';

	if (!str_has_prefix(path, dir) || (slash && (path.len <= dir.len || path.ptr[dir.len] != '/')))
		return 0;
	return dir.len + slash;
}

/* The offset behind the first "/base/" in the path; 0: it is not there. */
static size_t frame_path_behind(struct str path, struct str base)
{
	for (size_t i = 0; i + base.len + 2 <= path.len; i++)
		if (path.ptr[i] == '/' && path.ptr[i + 1 + base.len] == '/' &&
			memcmp(path.ptr + i + 1, base.ptr, base.len) == 0)
			return i + base.len + 2;
	return 0;
}

struct str frame_file_cut(struct str path, struct str trim_path, struct str source_path)
{
	bool more_trim = trim_path.len > 0, more_source = !more_trim && source_path.len > 0;
	struct str dir;
	size_t cut = 0;

	while (!cut && frame_path_next(&source_path, &more_source, &dir))
		cut = frame_path_behind(path, frame_path_base(dir));
	while (!cut && frame_path_next(&trim_path, &more_trim, &dir))
		cut = frame_path_prefix(path, dir);
	if (!cut && str_has_prefix(path, STR(CWD)))
		cut = str_has_prefix(path, STR(CWD "./")) ? sizeof(CWD "./") - 1 : sizeof(CWD) - 1;
	return (struct str){ path.ptr + cut, path.len - cut };
}

/* No "//", no "." or ".." as an element, no "/" at the end. */
static bool frame_path_is_clean(struct str path)
{
	for (size_t i = 0; i < path.len; i++) {
		size_t left = path.len - i - 1;

		if (path.ptr[i] == '/' && (left == 0 || path.ptr[i + 1] == '/') && path.len > 1)
			return false;
		if (path.ptr[i] == '.' && (i == 0 || path.ptr[i - 1] == '/') &&
			(left == 0 || path.ptr[i + 1] == '/' ||
				(path.ptr[i + 1] == '.' && (left == 1 || path.ptr[i + 2] == '/'))))
			return path.len == 1;
	}
	return true;
}

bool frame_file_clean(struct arena *a, struct str path, struct str *out)
{
	bool rooted = path.len > 0 && path.ptr[0] == '/';
	size_t n = 0, fixed = rooted; /* what ".." does not take away */
	char *text;

	*out = path;
	if (frame_path_is_clean(path))
		return true;
	if (!(text = arena_alloc_raw(a, path.len + 1, 1)))
		return false;
	if (rooted)
		text[n++] = '/';
	for (size_t i = 0, end; i < path.len; i = end + 1) {
		struct str element;

		for (end = i; end < path.len && path.ptr[end] != '/'; end++)
			;
		element = (struct str){ path.ptr + i, end - i };
		if (element.len == 0 || str_is(element, "."))
			continue;
		if (str_is(element, "..") && n > fixed) {
			while (n > fixed && text[--n] != '/')
				;
			continue;
		}
		if (str_is(element, "..") && rooted)
			continue;
		if (n > (size_t)rooted)
			text[n++] = '/';
		memcpy(text + n, element.ptr, element.len);
		n += element.len;
		if (str_is(element, ".."))
			fixed = n;
	}
	if (n == 0)
		text[n++] = '.';
	*out = (struct str){ text, n };
	return true;
}

/* ---- names ---- */

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
