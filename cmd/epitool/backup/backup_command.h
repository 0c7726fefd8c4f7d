/* Commands of backups; each is called as epitool.h says. */
#ifndef CMD_EPITOOL_BACKUP_BACKUP_COMMAND_H
#define CMD_EPITOOL_BACKUP_BACKUP_COMMAND_H

int tsdb_backup(int argc, char **argv);
int tsdb_restore(int argc, char **argv);
int tsdb_backups(int argc, char **argv);

#endif
