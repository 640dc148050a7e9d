package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Join appends all records of a file line by line, including lines of unknown types. It skips
// lines longer than [MaxLine] and an incomplete line left by a crash, and then returns
// broken = true.
func (w *Writer) Join(path string) (broken bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := w.types.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }()
	if _, err := r.Next(); err != nil {
		return false, err // not a record
	}
	again, err := w.types.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = again.Close() }()
	for {
		raw, err := again.read()
		whole := err == nil && !raw.long && (raw.whole || json.Valid(raw.text))
		if whole && len(raw.text) > 0 {
			if err := w.append(append(raw.text[:len(raw.text):len(raw.text)], '\n')); err != nil {
				return false, err
			}
		}
		broken = broken || !whole && (raw.long || len(raw.text) > 0)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return broken, nil
		case err != nil:
			return broken, fmt.Errorf("join %s: %w; the lines before it were joined", path, err)
		}
	}
}

// AddLabels appends labels to the file of a finished record. It appends all labels or none.
func (l *Lines) AddLabels(path string, labels []Label) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("label: %w; labels are lines of the record itself: label a writable copy", err)
	}
	defer func() { _ = file.Close() }() // already synced
	if lock(file) {
		return fmt.Errorf("label %s: a run still writes this record; label it when the run has ended", path)
	}
	defer unlock(file)
	all, err := l.LoadAll(path)
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return fmt.Errorf("label %s: it has %d records; label each before you join them", path, len(all))
	}
	if all[0].Truncated {
		return fmt.Errorf("label %s: its last line is incomplete, so no line can follow; remove it with: tare join %s -o FILE", path, path)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("label: %w", err)
	}
	var magic [4]byte
	_, _ = file.ReadAt(magic[:], 0) // a record is longer than this
	w := &Writer{types: l, out: file, begun: true}
	if [4]byte(zstdMagic) == magic {
		if w.encoder, err = newEncoder(file); err != nil { // a new frame
			return err
		}
	}
	for i := 0; i < len(labels) && err == nil; i++ {
		err = w.Write(labels[i])
	}
	if wrong := w.Close(); wrong != nil {
		err = errors.Unwrap(wrong)
	}
	if err == nil {
		err = syncFile(file)
	}
	if err != nil {
		return fmt.Errorf("label: %w; the record is unchanged: free space and try again", errors.Join(err, file.Truncate(info.Size())))
	}
	return nil
}
