/*
 * The files that hold parts of a binary's debug data: .dwo and .dwp files of split DWARF, and the
 * common file that dwz made of several binaries. They lie where debuggers look for them:
 *
 *	FILE.dwp; for FILE.debug also what is left without .debug
 *	the name in a skeleton: absolute, or below its DW_AT_comp_dir, or below the binary's folder;
 *	there also without its own folders
 *	the name in .gnu_debugaltlink: absolute, or below the binary's folder; then
 *	/usr/lib/debug/.build-id/xx/yy.debug
 *
 * A file counts only if it is of the same build: it has the unit's id, or the build id.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT, ERR_INVALID (sections of the binary). A file that is not there,
 *            or is of another build, is no error, but listed.
 * Ownership: the caller's memory; debug_files_release.
 * Source:    gdb's dwarf2/read.c (try_open_dwop_file, open_and_init_dwp_file), elfutils'
 *            libdw_find_split_unit.c, gdb's "Separate Debug Files".
 */
#ifndef CMD_EPITOOL_DEBUGINFO_DEBUG_FILES_H
#define CMD_EPITOOL_DEBUGINFO_DEBUG_FILES_H

#include <sys/stat.h>

#include "cmd/epitool/debuginfo/native_file.h"
#include "tsdb/debuginfo/elf/bundle.h"

#define DEBUG_FILES_DIR "/usr/lib/debug"

struct debug_files_places {
	const char *const *dwo_dirs; /* beside the usual ones, for .dwo and .dwp files */
	size_t dwo_dirs_n;
	const char *debug_dir; /* NULL: DEBUG_FILES_DIR */
};

struct debug_file {
	enum bundle_kind kind;
	char *path;
	struct stat stat; /* whether another was put in its place */
};

struct debug_file_missing {
	enum bundle_kind kind;
	char *path; /* where it should be */
	const char *why; /* constant: "not found", "of another build" ... */
};

struct debug_files {
	struct debug_file *v;
	struct debug_file_missing *missing;
	size_t n, cap, missing_n, missing_cap;
	uint64_t bytes; /* of the files that were found */
};

/* path: of f. */
MUST_CHECK enum err_code debug_files_find(const char *path, const struct native_file *f,
	const struct debug_files_places *places, struct debug_files *out, struct err *err);
void debug_files_release(struct debug_files *d);

#endif
