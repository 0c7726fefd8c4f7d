# What failed, by the log of a stage: lines that begin with FAIL, TAP's "not ok", and below each of the latter the first lines of
# its error, so that the end of a run says why. A report that is shown twice counts once. At most 20 are named.
/^FAIL / || /^ *(✖|not ok) / && !/✖ failing tests:/ {
	name = $0
	sub(/^ +/, "", name)
	why = 0
	if (named[name]++ || ++count > 20)
		next
	print name
	tap = /not ok/
	next
}

tap && /^ +error: / {
	tap = 0
	match($0, /^ +/)
	margin = RLENGTH
	text = $0
	sub(/^ +error: /, "", text)
	if (text !~ /^[|>]/) {
		print "    " text
		next
	}
	why = 12 # lines of it
	next
}

why {
	match($0, /^ */)
	if (RLENGTH <= margin && NF) {
		why = 0
		next
	}
	why--
	if (NF)
		print "    " substr($0, margin + 3, 300)
}
