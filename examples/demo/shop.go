package main

import (
	"fmt"
	"math/rand"
	"sync"
	"time"
)

const (
	itemCount    = 2000
	sessionsKept = 4096
	thumbsKept   = 256
	secretSize   = 8192
)

var (
	adjectives = []string{"amber", "brave", "calm", "dusty", "eager", "faint", "grand", "huge"}
	nouns      = []string{"anvil", "basket", "candle", "drum", "easel", "flask", "gong", "harp"}
)

type item struct {
	SKU   string  `json:"sku"`
	Title string  `json:"title"`
	Cents int64   `json:"cents"`
	Score float64 `json:"score"`
}

type category struct {
	sold  []int64
	below []*category
}

type session struct {
	user  uint64
	token [tokenSize]byte
	notes []byte
}

// shop is what all requests share. Everything above the locks is built once and only read.
type shop struct {
	items    []item
	features []float64 // of item i at [i*features, (i+1)*features)
	prices   []byte    // one decimal price per line, in the order of items
	root     *category
	photo    []byte
	secret   []byte
	leaks    *leak // nil in a shop that does not leak

	stockLock sync.Mutex
	stock     []int // guarded by stockLock

	cacheLock sync.RWMutex
	sessions  [sessionsKept]*session // guarded by cacheLock; the newest replaces the oldest
	sessionN  int                    // guarded by cacheLock
	thumbs    [thumbsKept][]byte     // guarded by cacheLock; likewise
	thumbN    int                    // guarded by cacheLock
}

// newShop builds the same shop in every process: two versions must differ in code only.
func newShop() *shop {
	rnd := rand.New(rand.NewSource(1))
	s := &shop{
		items:    make([]item, itemCount),
		features: make([]float64, itemCount*features),
		photo:    make([]byte, photoSize*photoSize),
		secret:   make([]byte, secretSize),
		stock:    make([]int, itemCount),
		root:     newCategory(rnd, 5),
	}
	for i := range s.items {
		s.items[i] = item{
			SKU: fmt.Sprintf("sku-%05d", i),
			Title: fmt.Sprintf("%s %s no. %d", adjectives[rnd.Intn(len(adjectives))],
				nouns[rnd.Intn(len(nouns))], i),
			Cents: 100 + rnd.Int63n(100000),
		}
		s.prices = append(s.prices, fmt.Sprintf("%d.%02d\n", s.items[i].Cents/100,
			s.items[i].Cents%100)...)
		s.stock[i] = 1000
	}
	for i := range s.features {
		s.features[i] = rnd.NormFloat64()
	}
	rnd.Read(s.photo)
	rnd.Read(s.secret)
	return s
}

func newCategory(rnd *rand.Rand, depth int) *category {
	c := &category{sold: make([]int64, 24)}
	for i := range c.sold {
		c.sold[i] = rnd.Int63n(1 << 40)
	}
	for i := 0; depth > 0 && i < 3; i++ {
		c.below = append(c.below, newCategory(rnd, depth-1))
	}
	return c
}

// reserve takes one piece of an item from the stock. The lock is held for as long as a database
// would take to answer: this is the shop's contended lock.
func (s *shop) reserve(i int) int {
	s.stockLock.Lock()
	defer s.stockLock.Unlock()
	time.Sleep(500 * time.Microsecond)
	if s.stock[i] == 0 {
		s.stock[i] = 1000
	}
	s.stock[i]--
	return s.stock[i]
}

func (s *shop) keepSession(kept *session) {
	s.cacheLock.Lock()
	defer s.cacheLock.Unlock()
	s.sessions[s.sessionN%sessionsKept] = kept
	s.sessionN++
}

func (s *shop) keepThumb(thumb []byte) {
	s.cacheLock.Lock()
	defer s.cacheLock.Unlock()
	s.thumbs[s.thumbN%thumbsKept] = thumb
	s.thumbN++
}
