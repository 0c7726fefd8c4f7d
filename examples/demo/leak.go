package main

import "sync"

const (
	receiptSize = 8 << 10
	receiptsMax = 12288 // 96 MiB, which the load reaches in about 43 minutes
)

// leak is what --leak makes the shop forget to let go: every checkout keeps its receipt, and every
// export leaves a goroutine behind that waits for a review. At receiptsMax all of it is let go, as
// if the process had been killed and started again, so that a demo fills no machine.
type leak struct {
	lock     sync.Mutex
	receipts [][]byte      // guarded by lock
	reviewed chan struct{} // guarded by lock; closed when all is let go, and by nobody else
}

func newLeak() *leak {
	return &leak{reviewed: make(chan struct{})}
}

// keepReceipt does nothing in a shop that does not leak.
func (l *leak) keepReceipt(receipt []byte) {
	if l == nil {
		return
	}
	kept := make([]byte, receiptSize)
	copy(kept, receipt)
	l.lock.Lock()
	defer l.lock.Unlock()
	l.receipts = append(l.receipts, kept)
	if len(l.receipts) < receiptsMax {
		return
	}
	l.receipts = nil
	close(l.reviewed)
	l.reviewed = make(chan struct{})
}

// startReview does nothing in a shop that does not leak.
func (l *leak) startReview() {
	if l == nil {
		return
	}
	l.lock.Lock()
	reviewed := l.reviewed
	l.lock.Unlock()
	go awaitReview(reviewed)
}

func awaitReview(reviewed <-chan struct{}) {
	<-reviewed
}
