#!/bin/bash
# Runs a command that may take long and says nothing, and prints a line every few seconds:
#   examples/progress.sh LABEL COMMAND [ARGUMENT...]
# The command's standard output is dropped, its errors and its exit status are passed on.
# EPI_PROGRESS_S=seconds between two lines, 3 unless given.
set -u
label=$1
shift
every=${EPI_PROGRESS_S:-3}
echo "$label"
# The shell waits in the foreground, so that apt-get and its like keep the terminal.
(
	while sleep "$every" >/dev/null 2>&1; do # it outlives us, and must not hold our output open
		echo "        $SECONDS s"
	done
) &
ticker=$!
"$@" >/dev/null
rc=$?
kill "$ticker" 2>/dev/null
wait "$ticker" 2>/dev/null
exit "$rc"
