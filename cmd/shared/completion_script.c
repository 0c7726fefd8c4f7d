#include "cmd/shared/completion_script.h"

#include <assert.h>

enum err_code completion_shell_parse(const char *name, enum completion_shell *out, struct err *err)
{
	static const char *const names[] = {
		[COMPLETION_BASH] = "bash", [COMPLETION_ZSH] = "zsh", [COMPLETION_FISH] = "fish"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i])) {
			*out = (enum completion_shell)i;
			return ERR_OK;
		}
	return err_set(err, ERR_INVALID, "no completion for \"%s\"; known are bash, zsh, fish", name);
}

/* In single quotes; fish escapes within them, the others leave them for a moment. */
static void completion_add_quoted(const struct completion *c, const char *text)
{
	bool fish = c->shell == COMPLETION_FISH;

	buf_add_char(c->out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			buf_add_cstr(c->out, fish ? "\\'" : "'\\''");
		else if (*text == '\\' && fish)
			buf_add_cstr(c->out, "\\\\");
		else
			buf_add_char(c->out, *text);
	buf_add_char(c->out, '\'');
}

/* On unless it is taken back: that is what one types. */
static bool completion_script_is_on(const struct flag *f)
{
	return f->kind == FLAG_BOOL && f->default_text && !strcmp(f->default_text, "true");
}

/* "--format=", "--json", "--no-sandbox" */
static void completion_script_add_flag(struct buf *out, const struct flag *f)
{
	buf_printf(out, "--%s%s%s", completion_script_is_on(f) ? "no-" : "", f->name,
		f->kind == FLAG_BOOL ? "" : "=");
}

static struct str completion_script_first_word(const char *words)
{
	return (struct str){ words, strcspn(words, " ") };
}

static const char *completion_script_second_word(const char *words) /* NULL: there is none */
{
	const char *space = strchr(words, ' ');

	return space ? space + 1 : NULL;
}

static bool completion_is_new_first(const struct completion *c, size_t i)
{
	return !i ||
		!str_eq(completion_script_first_word(c->words[i]),
			completion_script_first_word(c->words[i - 1]));
}

/* All first words, or the second words of one first; each behind a blank. */
static void completion_add_words(const struct completion *c, const struct str *first)
{
	for (size_t i = 0; i < c->words_n; i++) {
		struct str one = completion_script_first_word(c->words[i]);

		if (!first && completion_is_new_first(c, i))
			buf_printf(c->out, " " STR_FMT, STR_ARG(one));
		else if (first && str_eq(one, *first))
			buf_printf(c->out, " %s", completion_script_second_word(c->words[i]));
	}
}

/* ---- bash: a case per command ---- */

static void completion_bash_begin(struct completion *c)
{
	buf_printf(c->out,
		"# bash completion for %s\n"
		"_%s()\n"
		"{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} typed=() flags='' i\n"
		"\tCOMPREPLY=()\n"
		"\t[[ $cur == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]] && return\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\tcase ${COMP_WORDS[i]} in -* | =) ;; *) typed+=(\"${COMP_WORDS[i]}\") ;; esac\n"
		"\tdone\n"
		"\tcase \"${typed[0]} ${typed[1]} \" in\n",
		c->program, c->program);
}

static void completion_bash_command(
	struct completion *c, const char *words, const struct flag *flags, size_t n)
{
	if (words[0])
		buf_printf(c->out, "\t'%s '*) flags='--help --version", words);
	else
		buf_add_cstr(c->out, "\t*) flags='--help --version");
	for (size_t i = 0; i < n; i++) {
		buf_add_char(c->out, ' ');
		completion_script_add_flag(c->out, &flags[i]);
	}
	buf_add_cstr(c->out, "' ;;\n");
}

static void completion_bash_end(struct completion *c)
{
	for (size_t i = 0; i < c->words_n; i++) {
		struct str first = completion_script_first_word(c->words[i]);

		if (!completion_script_second_word(c->words[i]) || !completion_is_new_first(c, i))
			continue;
		buf_printf(c->out, "\t'" STR_FMT "  ') COMPREPLY=($(compgen -W '", STR_ARG(first));
		completion_add_words(c, &first);
		buf_add_cstr(c->out, "' -- \"$cur\")) ;;\n");
	}
	if (c->words_n) {
		buf_add_cstr(c->out, "\t'  ') COMPREPLY=($(compgen -W '--help --version");
		completion_add_words(c, NULL);
		buf_add_cstr(c->out, "' -- \"$cur\")) ;;\n");
	}
	buf_printf(c->out,
		"\tesac\n"
		"\t[[ $cur == -* && $flags ]] && COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
		"\t[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
		"\treturn 0\n"
		"}\n"
		"complete -o default -F _%s %s\n",
		c->program, c->program);
}

/* ---- zsh: _arguments per command ---- */

static void completion_zsh_flag(const struct completion *c, const struct flag *f)
{
	struct buf spec = { 0 };

	if (f->kind == FLAG_LIST)
		buf_add_char(&spec, '*');
	completion_script_add_flag(&spec, f);
	buf_add_char(&spec, '[');
	for (const char *p = f->help; *p; p++) {
		if (strchr("[]:\\", *p)) /* they mean something in a specification */
			buf_add_char(&spec, '\\');
		buf_add_char(&spec, *p);
	}
	buf_add_cstr(&spec, f->kind == FLAG_BOOL ? "]" : "]:value:_files");
	buf_add_char(&spec, '\0');
	buf_add_cstr(c->out, " \\\n\t\t");
	if (buf_failed(&spec))
		c->out->failed = true;
	else
		completion_add_quoted(c, spec.ptr);
	buf_release(&spec);
}

static void completion_zsh_begin(struct completion *c)
{
	buf_printf(c->out,
		"#compdef %s\n"
		"_%s()\n"
		"{\n"
		"\tlocal -a typed\n"
		"\ttyped=(${words[2,CURRENT-1]:#-*})\n"
		"\tcase \"${typed[1]} ${typed[2]} \" in\n",
		c->program, c->program);
}

static void completion_zsh_command(
	struct completion *c, const char *words, const struct flag *flags, size_t n)
{
	if (words[0])
		buf_printf(c->out, "\t'%s '*) _arguments", words);
	else
		buf_add_cstr(c->out, "\t*) _arguments");
	buf_add_cstr(c->out, " '--help[Show this help.]' '--version[Show the version.]'");
	for (size_t i = 0; i < n; i++)
		completion_zsh_flag(c, &flags[i]);
	buf_add_cstr(c->out, " \\\n\t\t'*:file:_files' ;;\n");
}

static void completion_zsh_end(struct completion *c)
{
	for (size_t i = 0; i < c->words_n; i++) {
		struct str first = completion_script_first_word(c->words[i]);

		if (!completion_script_second_word(c->words[i]) || !completion_is_new_first(c, i))
			continue;
		buf_printf(c->out, "\t'" STR_FMT "  ') compadd --", STR_ARG(first));
		completion_add_words(c, &first);
		buf_add_cstr(c->out, " ;;\n");
	}
	if (c->words_n) {
		buf_add_cstr(c->out, "\t'  ') compadd -- --help --version");
		completion_add_words(c, NULL);
		buf_add_cstr(c->out, " ;;\n");
	}
	buf_printf(c->out,
		"\tesac\n"
		"}\n"
		"if [ \"$funcstack[1]\" = _%s ]; then _%s \"$@\"; else compdef _%s %s; fi\n",
		c->program, c->program, c->program, c->program);
}

/* ---- fish: a line per flag ---- */

static void completion_fish_name(const struct completion *c, const char *words, const char *help)
{
	struct str first = completion_script_first_word(words);
	const char *second = completion_script_second_word(words);

	if (completion_is_new_first(c, c->words_n - 1))
		buf_printf(c->out, "complete -c %s -n __fish_use_subcommand -a " STR_FMT, c->program,
			STR_ARG(first));
	if (second && completion_is_new_first(c, c->words_n - 1))
		buf_add_char(c->out, '\n');
	if (second)
		buf_printf(c->out, "complete -c %s -n '__fish_seen_subcommand_from " STR_FMT "' -a %s",
			c->program, STR_ARG(first), second);
	buf_add_cstr(c->out, " -d ");
	completion_add_quoted(c, help);
	buf_add_char(c->out, '\n');
}

static void completion_fish_command(
	struct completion *c, const char *words, const char *help, const struct flag *flags, size_t n)
{
	struct str first = completion_script_first_word(words);
	const char *second = completion_script_second_word(words);

	if (words[0])
		completion_fish_name(c, words, help);
	for (size_t i = 0; i < n; i++) {
		buf_printf(c->out, "complete -c %s", c->program);
		if (words[0])
			buf_printf(c->out, " -n '__fish_seen_subcommand_from " STR_FMT "%s%s'", STR_ARG(first),
				second ? "; and __fish_seen_subcommand_from " : "", second ? second : "");
		buf_printf(
			c->out, " -l %s%s", completion_script_is_on(&flags[i]) ? "no-" : "", flags[i].name);
		if (flags[i].short_name)
			buf_printf(c->out, " -s %c", flags[i].short_name);
		buf_printf(c->out, "%s -d ", flags[i].kind == FLAG_BOOL ? "" : " -r");
		completion_add_quoted(c, flags[i].help);
		buf_add_char(c->out, '\n');
	}
}

static void completion_fish_begin(struct completion *c)
{
	buf_printf(c->out,
		"# fish completion for %s\n"
		"complete -c %s -l help -s h -d 'Show this help.'\n"
		"complete -c %s -l version -d 'Show the version.'\n",
		c->program, c->program, c->program);
}

/* ---- all ---- */

void completion_begin(struct completion *c)
{
	if (c->shell == COMPLETION_BASH)
		completion_bash_begin(c);
	else if (c->shell == COMPLETION_ZSH)
		completion_zsh_begin(c);
	else
		completion_fish_begin(c);
}

void completion_command(
	struct completion *c, const char *words, const char *help, const struct flag *flags, size_t n)
{
	assert(c->words_n < COMPLETION_COMMANDS_MAX);
	if (words[0])
		c->words[c->words_n++] = words;
	if (c->shell == COMPLETION_BASH)
		completion_bash_command(c, words, flags, n);
	else if (c->shell == COMPLETION_ZSH)
		completion_zsh_command(c, words, flags, n);
	else
		completion_fish_command(c, words, help, flags, n);
}

void completion_end(struct completion *c)
{
	if (c->shell == COMPLETION_BASH)
		completion_bash_end(c);
	else if (c->shell == COMPLETION_ZSH)
		completion_zsh_end(c);
}
