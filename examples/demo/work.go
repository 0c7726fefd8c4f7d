package main

// The candidates for a regression (regress.go). Each is a function of its own that calls nothing
// but rounds, so that all it costs is flat cost under its own name; their results do not depend
// on the rounds, so that a regressed version answers the same bytes, only later.

const (
	features  = 8   // numbers that describe an item
	tokenSize = 32  // bytes of a session's signature
	cartWidth = 64  // columns of a rendered cart
	thumbSize = 48  // pixels of a thumbnail's side
	photoSize = 192 // pixels of a photo's side, a multiple of thumbSize
)

// parsePrices reads decimal prices, one per line, into cents and returns how many it read.
//
//go:noinline
func parsePrices(text []byte, cents []int64) int {
	n := 0
	for round := rounds(parsePricesID); round > 0; round-- {
		n = 0
		value := int64(0)
		for _, c := range text {
			if c >= '0' && c <= '9' {
				value = value*10 + int64(c-'0')
			} else if c == '\n' && n < len(cents) {
				cents[n] = value
				value = 0
				n++
			}
		}
	}
	return n
}

// renderCart lays out a line per price, right-aligned and padded with dots, and returns the
// bytes of page it used.
//
//go:noinline
func renderCart(cents []int64, page []byte) int {
	used := 0
	for round := rounds(renderCartID); round > 0; round-- {
		used = 0
		for _, value := range cents {
			if used+cartWidth > len(page) {
				break
			}
			row := page[used : used+cartWidth]
			row[cartWidth-1] = '\n'
			for col := cartWidth - 2; col >= 0; col-- {
				switch {
				case col == cartWidth-4:
					row[col] = ','
				case value > 0:
					row[col] = byte('0' + value%10)
					value /= 10
				default:
					row[col] = '.'
				}
			}
			used += cartWidth
		}
	}
	return used
}

// scoreItems gives each item the likeness of its features to what was asked for.
//
//go:noinline
func scoreItems(items []float64, wanted *[features]float64, scores []float64) {
	for round := rounds(scoreItemsID); round > 0; round-- {
		for i := range scores {
			dot, norm := 0.0, 1e-9
			for f := 0; f < features; f++ {
				x := items[i*features+f]
				dot += x * wanted[f]
				norm += x * x
			}
			scores[i] = dot / norm
		}
	}
}

// rankOffers puts the indices of the highest scores into best, highest first.
//
//go:noinline
func rankOffers(scores []float64, best []int) {
	for round := rounds(rankOffersID); round > 0; round-- {
		n := 0
		for i, score := range scores {
			at := n
			for at > 0 && scores[best[at-1]] < score {
				at--
			}
			if at == len(best) {
				continue
			}
			if n < len(best) {
				n++
			}
			for k := n - 1; k > at; k-- {
				best[k] = best[k-1]
			}
			best[at] = i
		}
	}
}

// sumCategory adds up the sales of a category and, recursively, of all below it.
//
//go:noinline
func sumCategory(c *category) int64 {
	own := int64(0)
	for round := rounds(sumCategoryID); round > 0; round-- {
		own = 0
		for _, sold := range c.sold {
			own += sold % 997
		}
	}
	for _, below := range c.below {
		own += sumCategory(below)
	}
	return own
}

// signToken mixes a user's number and a secret into a session's signature.
//
//go:noinline
func signToken(user uint64, secret []byte, token *[tokenSize]byte) {
	for round := rounds(signTokenID); round > 0; round-- {
		state := user | 1
		for i, c := range secret {
			state ^= uint64(c)
			state *= 0x9e3779b97f4a7c15
			state ^= state >> 29
			token[i%tokenSize] = byte(state >> 56)
		}
	}
}

// resizeImage shrinks a grey photo to a thumbnail by averaging squares of pixels.
//
//go:noinline
func resizeImage(photo, thumb []byte) {
	const square = photoSize / thumbSize
	for round := rounds(resizeImageID); round > 0; round-- {
		for y := 0; y < thumbSize; y++ {
			for x := 0; x < thumbSize; x++ {
				sum := 0
				for dy := 0; dy < square; dy++ {
					from := (y*square+dy)*photoSize + x*square
					for dx := 0; dx < square; dx++ {
						sum += int(photo[from+dx])
					}
				}
				thumb[y*thumbSize+x] = byte(sum / (square * square))
			}
		}
	}
}

// checksumExport is Adler-32, a byte at a time.
//
//go:noinline
func checksumExport(data []byte) uint32 {
	low, high := uint32(1), uint32(0)
	for round := rounds(checksumExportID); round > 0; round-- {
		low, high = 1, 0
		for _, c := range data {
			low = (low + uint32(c)) % 65521
			high = (high + low) % 65521
		}
	}
	return high<<16 | low
}
