/*
 * Versions of the files of a data directory. Before anything is opened each file that has a version
 * is asked for it: a directory that a newer program wrote is refused, and nothing in it is changed.
 * A version counts only if the checksum of its file is right; else the file is damaged, and whoever
 * opens it deals with that. tsdb/head/aside.c checks stores of windows.
 *
 * Errors:  ERR_UNSUPPORTED names the file and both versions; ERR_NOMEM.
 * Threads: any.
 * Source:  tsdb/FORMAT.md, "Versions".
 */
#ifndef TSDB_LISTS_VERSIONS_H
#define TSDB_LISTS_VERSIONS_H

#include <stdbool.h>

#include "base/err.h"

/* The newest that this program reads and writes. */
#define LOSSES_VERSION 1
#define INVENTORY_VERSION 1
#define IDS_VERSION 2
#define DELETED_VERSION 2
#define MARK_VERSION 2
#define NAMES_VERSION 1

/* A missing directory or file is fine. with_head: also the files beside windows. */
MUST_CHECK enum err_code versions_check(const char *dir, bool with_head, struct err *err);
/* ERR_UNSUPPORTED: "PATH: version V was written by a newer program; ...". */
enum err_code versions_refuse(const char *path, unsigned version, unsigned newest, struct err *err);

#endif
