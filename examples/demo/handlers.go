package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"time"
)

const (
	seedMax      = 1 << 20
	watchMax     = 30 * time.Second
	cartItems    = 120
	cartLines    = 6 // of a cart at its checkout
	receiptItems = 600
	exportItems  = 1200
)

var cartPage = template.Must(template.New("cart").Parse(
	`<h1>Cart of {{.User}}</h1><ul>{{range .Items}}<li>` +
		`<a href="/item/{{.SKU}}">{{.Title}}</a> {{.Cents}}</li>{{end}}</ul>` +
		`<pre>{{.Bill}}</pre>`))

// seedOf reads which of its many variants a request asks for.
func seedOf(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("seed"))
	if err != nil || n < 0 {
		return 0
	}
	return n % seedMax
}

func answerJSON(w http.ResponseWriter, v interface{}) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // fails only if the client is gone
}

// search: a regular expression over the titles, then scores, then a sort.
func (s *shop) search(w http.ResponseWriter, r *http.Request) {
	seed := seedOf(r)
	re := regexp.MustCompile(`(?i)^\w+ (` + nouns[seed%len(nouns)] + `|` +
		nouns[seed/8%len(nouns)] + `) no\. \d*` + strconv.Itoa(seed%10) + `$`)
	var wanted [features]float64
	for f := range wanted {
		wanted[f] = float64(seed>>f&1)*2 - 1
	}
	scores := make([]float64, itemCount)
	scoreItems(s.features, &wanted, scores)
	var found []item
	for i := seed % 2; i < itemCount; i += 2 {
		if hit := s.items[i]; re.MatchString(hit.Title) {
			hit.Score = scores[i]
			found = append(found, hit)
		}
	}
	sort.Slice(found, func(a, b int) bool { return found[a].Score > found[b].Score })
	answerJSON(w, found)
}

// cart: a template and a laid-out bill.
func (s *shop) cart(w http.ResponseWriter, r *http.Request) {
	seed := seedOf(r)
	first := seed % (itemCount - cartItems)
	items := s.items[first : first+cartItems]
	cents := make([]int64, len(items))
	for i := range items {
		cents[i] = items[i].Cents
	}
	bill := make([]byte, len(items)*cartWidth)
	bill = bill[:renderCart(cents, bill)]
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	cartPage.Execute(w, map[string]interface{}{
		"User": seed, "Items": items, "Bill": string(bill),
	})
}

// checkout: a goroutine per line of the cart, all after the same lock.
func (s *shop) checkout(w http.ResponseWriter, r *http.Request) {
	seed := seedOf(r)
	cents := make([]int64, itemCount)
	n := parsePrices(s.prices, cents)
	left := make([]int, cartLines)
	sum := int64(0)
	var lines sync.WaitGroup
	for i := 0; i < cartLines; i++ {
		which := (seed + i*7) % n
		sum += cents[which]
		lines.Add(1)
		go func(i int) {
			defer lines.Done()
			left[i] = s.reserve(which)
		}(i)
	}
	lines.Wait()
	first := seed % (itemCount - receiptItems)
	receipt, _ := json.Marshal(s.items[first : first+receiptItems])
	digest := sha256.Sum256(receipt)
	s.leaks.keepReceipt(receipt)
	answerJSON(w, map[string]interface{}{
		"cents": sum, "left": left, "receipt": hex.EncodeToString(digest[:]),
	})
}

// account: signs a session and keeps it, so that the heap fills up to a level.
func (s *shop) account(w http.ResponseWriter, r *http.Request) {
	kept := &session{user: uint64(seedOf(r)), notes: make([]byte, 1024)}
	signToken(kept.user, s.secret, &kept.token)
	digest := sha256.Sum256(s.secret)
	s.keepSession(kept)
	answerJSON(w, map[string]string{
		"token":  hex.EncodeToString(kept.token[:]),
		"secret": hex.EncodeToString(digest[:4]),
	})
}

// recommend: a recursive walk and a ranking.
func (s *shop) recommend(w http.ResponseWriter, r *http.Request) {
	seed := seedOf(r)
	sold := sumCategory(s.root)
	scores := make([]float64, itemCount)
	for i := range scores {
		scores[i] = s.features[(i*features+seed)%len(s.features)]
	}
	best := make([]int, 12)
	rankOffers(scores, best)
	offers := make([]item, len(best))
	for i, which := range best {
		offers[i] = s.items[which]
		offers[i].Score = scores[which]
	}
	answerJSON(w, map[string]interface{}{"sold": sold, "offers": offers})
}

// image: a thumbnail, compressed and kept.
func (s *shop) image(w http.ResponseWriter, r *http.Request) {
	thumb := make([]byte, thumbSize*thumbSize)
	resizeImage(s.photo, thumb)
	thumb[0] = byte(seedOf(r))
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	zip.Write(thumb)
	zip.Close()
	s.keepThumb(packed.Bytes())
	w.Header().Set("Content-Type", "application/gzip")
	w.Write(packed.Bytes())
}

// export: many small allocations, a table of text, a checksum, all of it compressed.
func (s *shop) export(w http.ResponseWriter, r *http.Request) {
	first := seedOf(r) % (itemCount - exportItems)
	var table bytes.Buffer
	rows := csv.NewWriter(&table)
	for _, it := range s.items[first : first+exportItems] {
		rows.Write([]string{it.SKU, it.Title, fmt.Sprintf("%.2f", float64(it.Cents)/100),
			fmt.Sprintf("%s/%s", it.SKU, it.Title)})
	}
	rows.Flush()
	w.Header().Set("Content-Type", "text/csv")
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("X-Checksum", fmt.Sprintf("%08x", checksumExport(table.Bytes())))
	zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // fails only for an unknown level
	zip.Write(table.Bytes())
	zip.Close()
	s.leaks.startReview()
}

// watch holds the request until its time is over: a goroutine that waits and costs nothing.
func (s *shop) watch(w http.ResponseWriter, r *http.Request) {
	wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
	if err != nil || wait < 0 || wait > watchMax {
		http.Error(w, "wait must be a duration of at most "+watchMax.String(),
			http.StatusBadRequest)
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	fmt.Fprintln(w, "nothing new")
}
