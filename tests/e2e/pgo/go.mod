module pgo

go 1.19
