/* The rules of examples/rules/, as the files have them: each file's first comment, and its rules.
 */
#include "base/fs.h"
#include "base/yaml/yaml.h"
#include "cmd/book/book.h"
#include "cmd/book/markdown.h"

#define RULES_DIR "examples/rules"
#define PART_BYTES_MAX (16u << 20)

static void alerts_part_print_value(struct buf *out, const struct yaml_node *n, bool code)
{
	buf_add_cstr(out, " | ");
	if (n && code)
		markdown_code(out, n->text);
	else if (n)
		markdown_text(out, n->text);
}

static void alerts_part_print_rule(struct buf *out, const struct yaml_node *rule)
{
	const struct yaml_node *alert = yaml_get(rule, "alert"), *record = yaml_get(rule, "record");
	const struct yaml_node *texts = yaml_get(rule, "annotations");

	buf_add_cstr(out, alert ? "| alert" : "| record");
	alerts_part_print_value(out, alert ? alert : record, true);
	alerts_part_print_value(out, yaml_get(rule, "expr"), true);
	alerts_part_print_value(out, yaml_get(rule, "for"), false);
	alerts_part_print_value(out, yaml_get(texts, "summary"), false);
	alerts_part_print_value(out, yaml_get(texts, "description"), false);
	buf_add_cstr(out, " |\n");
}

/* The lines that begin with # before anything else, as one paragraph. */
static void alerts_part_print_comment(struct buf *out, struct str text)
{
	while (text.len && text.ptr[0] == '#') {
		const char *end = memchr(text.ptr, '\n', text.len);
		size_t n = end ? (size_t)(end - text.ptr) : text.len;

		if (n > 3 && text.ptr[2] == ' ') /* an example */
			break;
		markdown_text(out, (struct str){ text.ptr + 1, n - 1 });
		buf_add_char(out, '\n');
		text.ptr += n + (end != NULL);
		text.len -= n + (end != NULL);
	}
}

static enum err_code alerts_part_print_file(
	struct arena *a, const char *path, struct str name, struct buf *out, struct err *err)
{
	static const char *const columns[] = { "kind", "name", "expression", "for", "says",
		"what to do" };
	struct buf text = { 0 };
	struct yaml_node *root, *group, *rule;
	enum err_code rc;

	if ((rc = fs_read_file(path, YAML_FILE_BYTES_MAX, &text, err)) ||
		(rc = yaml_parse(a, path, buf_str(&text), &root, err)))
		goto done;
	buf_printf(out, "%s### " STR_FMT "\n\n", out->len ? "\n" : "", STR_ARG(name));
	alerts_part_print_comment(out, buf_str(&text));
	buf_add_char(out, '\n');
	markdown_table_begin(out, columns, 6);
	group = yaml_get(root, "groups");
	for (group = group ? group->child : NULL; group; group = group->next) {
		rule = yaml_get(group, "rules");
		for (rule = rule ? rule->child : NULL; rule; rule = rule->next)
			alerts_part_print_rule(out, rule);
	}
done:
	buf_release(&text);
	return rc;
}

enum err_code alerts_part_write(const struct book_part *part, struct buf *out, struct err *err)
{
	struct arena a;
	struct str *names;
	size_t n, files = 0;
	const char *path;
	enum err_code rc;

	arena_init(&a, PART_BYTES_MAX);
	if ((rc = fs_list(RULES_DIR, &a, &names, &n, err)))
		goto done;
	for (size_t i = 0; i < n && !rc; i++) { /* by name */
		if (!str_has_suffix(names[i], STR(".yml")))
			continue;
		files++;
		path = path_join(&a, STR(RULES_DIR), names[i]);
		rc = path ? alerts_part_print_file(&a, path, names[i], out, err) :
					arena_fail(&a, RULES_DIR, err);
	}
	if (!rc && !files)
		rc = err_set(err, ERR_NOT_FOUND, "%s has no rules", RULES_DIR);
done:
	arena_release(&a);
	return rc;
}
