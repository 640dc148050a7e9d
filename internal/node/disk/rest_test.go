package disk

import (
	"context"
	"errors"
	"io/fs"
	"testing"
)

func TestADropHearsThatItIsToStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	hangs, over := make(chan struct{}), make(chan struct{})
	began := func() { stop(); <-hangs; close(over) }
	err := dropAfter(ctx, began, func() error { t.Error("it was dropped all the same"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	close(hangs)
	<-over
}

func TestADropWritesBackBeforeIt(t *testing.T) {
	done := ""
	err := dropAfter(t.Context(), func() { done += "sync " }, func() error { done += "drop"; return fs.ErrPermission })
	if !errors.Is(err, fs.ErrPermission) || done != "sync drop" {
		t.Errorf("%q, %v", done, err)
	}
}
