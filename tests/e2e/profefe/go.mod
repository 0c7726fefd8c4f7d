module profefe

go 1.19
