/*
 * Saved rules: the groups of rules that users save through the page or the API, in a rule file of
 * their own below the data directory, with the versions before.
 *
 * DIR/saved.yml is the version in force: a rule file as `epitool check rules` reads it, with who
 * and when in comments. DIR/history/VERSION.yml are versions before it, SAVED_HISTORY_MAX of them.
 * A change writes the version in force into the history, then the new one over saved.yml. Each file
 * is written beside, synced and renamed, so after a crash the old version or the new one is there.
 * An error of the second write may leave either; the next change writes over both.
 *
 * A file that does not fit its checksum is moved to DIR/saved.yml.damaged-SECONDS. Then no saved
 * rule runs, and a warning says so until somebody saves a rule or undoes. A file of a newer
 * program, or one that cannot be read, stays where it is, and changes are refused.
 *
 * Units:     nanoseconds since 1970 (stored in milliseconds), bytes.
 * Errors:    ERR_INVALID with line and column of the rule that was sent; ERR_EXISTS; ERR_NOT_FOUND;
 *            ERR_LIMIT; ERR_CORRUPT: a version is damaged; ERR_UNAVAILABLE: the disk is full;
 * ERR_IO. Ownership: saved_rules_open hands *out to the caller. What is read lives in the arena
 * given. Threads:   any; changes one at a time: prepare and commit are of one thread.
 */
#ifndef PROMQL_RULES_SAVED_SAVED_RULES_H
#define PROMQL_RULES_SAVED_SAVED_RULES_H

#include "base/arena.h"
#include "base/fs.h"

#define SAVED_GROUPS_MAX 500u
#define SAVED_BYTES_MAX (1u << 20) /* of one version */
#define SAVED_HISTORY_MAX 20u
#define SAVED_USER_BYTES_MAX 256u /* longer names are cut */

struct saved_group {
	struct str name;
	struct str text; /* its item in the list `groups`, as YAML */
	struct str user; /* who saved it last */
	int64_t changed_ns;
};

struct saved_version {
	uint64_t version; /* 0: nothing was ever saved */
	int64_t changed_ns;
	struct str user, change; /* who, and what: "save \"HighCost\"" */
	struct saved_group *groups;
	size_t groups_n;
};

/* ---- saved_rules_text.c: a version as a file ---- */

void saved_version_print(const struct saved_version *v, struct buf *out);
/*
 * Texts are in the arena or in `text`. ERR_CORRUPT: it is not what saved_version_print wrote;
 * ERR_UNSUPPORTED: a newer program wrote it.
 */
MUST_CHECK enum err_code saved_version_parse(
	struct str text, struct arena *a, struct saved_version *out, struct err *err);
/*
 * One group of rules that somebody sends, a rule file in YAML or JSON, checked as a rule file is.
 * Only its name and text are set.
 */
MUST_CHECK enum err_code saved_group_read(
	struct str sent, struct arena *a, struct saved_group *out, struct err *err);

/* ---- saved_rules.c: the store ---- */

struct saved_rules_options {
	struct fs *fs;
	const char *dir; /* made by the first change */
	uint64_t free_bytes_min; /* on the disk, beside a version; 0: not looked at */
};

enum saved_change_kind { SAVED_PUT, SAVED_DELETE, SAVED_UNDO };

struct saved_change {
	enum saved_change_kind kind;
	struct str sent; /* of SAVED_PUT: one group */
	bool replace; /* a group of this name may be there */
	struct str name; /* of SAVED_DELETE */
	bool
		has_version; /* of SAVED_UNDO: `version` is restored; else the one before the last change */
	uint64_t version;
	struct str user;
	int64_t now_ns;
};

struct saved_rules;
/* Damage and files that cannot be read are no errors: saved_rules_read has a warning. */
MUST_CHECK enum err_code saved_rules_open(
	const struct saved_rules_options *o, struct saved_rules **out, struct err *err);
void saved_rules_close(struct saved_rules *s); /* NULL is fine */
const char *saved_rules_path(const struct saved_rules *s); /* of the rule file */

struct saved_reading {
	struct saved_version version; /* in force */
	struct str text; /* the rule file */
	struct str warning; /* why rules that were saved do not run; "": they do */
};
MUST_CHECK enum err_code saved_rules_read(
	struct saved_rules *s, struct arena *a, struct saved_reading *out, struct err *err);
/* Versions before the one in force, the newest first. Damaged ones are left out and logged. */
MUST_CHECK enum err_code saved_rules_history(
	struct saved_rules *s, struct arena *a, struct saved_version **out, size_t *n, struct err *err);
/* Why the version in force does not run although it is whole; "": it does. */
void saved_rules_set_refused(struct saved_rules *s, struct str why);

/* The version that the change makes, in the arena. Nothing is written. */
struct saved_next {
	struct saved_version version;
	struct str text;
	struct str group; /* the name of the group that is saved or deleted; "" of SAVED_UNDO */
};
MUST_CHECK enum err_code saved_rules_prepare(struct saved_rules *s, const struct saved_change *c,
	struct arena *a, struct saved_next *out, struct err *err);
/* Durable once it returns. */
MUST_CHECK enum err_code saved_rules_commit(
	struct saved_rules *s, const struct saved_next *next, struct err *err);

#endif
