# What failed, by the log of a stage: lines that begin with FAIL, TAP's "not ok", and below each of the latter the first lines of
# its error, so that the end of a run says why. A report may be there twice, once without its error. At most 20 are named.
/^FAIL / || /^ *(✖|not ok) / && !/✖ failing tests:/ {
	name = $0
	sub(/^ +/, "", name)
	if (!(name in error)) {
		error[name] = ""
		names[++count] = name
	}
	is_said = error[name] != "" || !/not ok/
	lines = 0
	next
}

!is_said && /^ +error: / {
	is_said = 1
	match($0, /^ +/)
	margin = RLENGTH
	text = $0
	sub(/^ +error: /, "", text)
	if (text ~ /^[|>]/)
		lines = 12 # those that follow, at most
	else
		error[name] = "    " text "\n"
	next
}

lines {
	match($0, /^ */)
	if (RLENGTH <= margin && NF) {
		lines = 0
		next
	}
	lines--
	if (NF)
		error[name] = error[name] "    " substr($0, margin + 3, 300) "\n"
}

END {
	for (i = 1; i <= count && i <= 20; i++)
		printf "%s\n%s", names[i], error[names[i]]
}
