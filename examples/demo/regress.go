package main

import (
	"fmt"
	"sync/atomic"
)

// slowdown is how many times more a regressed function costs.
const slowdown = 6

// candidate is a function that can regress. Its body runs `rounds` times, so that one row here
// sets what it costs: about the same for each, so that whichever regresses gains about as much
// and no other function's chance movement comes near it.
type candidate struct {
	name   string // as profiles show it, after "main."
	rounds int
}

// The candidates' indices in the table below.
const (
	parsePricesID = iota
	renderCartID
	scoreItemsID
	rankOffersID
	sumCategoryID
	signTokenID
	resizeImageID
	checksumExportID
)

var candidates = [...]candidate{
	parsePricesID:    {"parsePrices", 80},
	renderCartID:     {"renderCart", 125},
	scoreItemsID:     {"scoreItems", 52},
	rankOffersID:     {"rankOffers", 250},
	sumCategoryID:    {"sumCategory", 110},
	signTokenID:      {"signToken", 74},
	resizeImageID:    {"resizeImage", 44},
	checksumExportID: {"checksumExport", 8},
}

// regressed holds the index of the regressed candidate plus one; zero is none.
var regressed atomic.Int32

// rounds is small enough to be inlined: its cost belongs to the candidate that asks.
func rounds(id int32) int {
	n := candidates[id].rounds
	if regressed.Load() == id+1 {
		n *= slowdown
	}
	return n
}

func regressionName() string {
	if i := regressed.Load(); i > 0 {
		return candidates[i-1].name
	}
	return "none"
}

// setRegression makes the named function the one that regresses; "none" ends it.
func setRegression(name string) error {
	if name == "none" {
		regressed.Store(0)
		return nil
	}
	for i, c := range candidates {
		if c.name == name {
			regressed.Store(int32(i) + 1)
			return nil
		}
	}
	return fmt.Errorf("unknown regression %q: one of --list-regressions or none", name)
}
