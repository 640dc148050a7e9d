package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// MaxLine is the longest line, in bytes, that a record may hold. A batch of a
// thousand lanes that all failed, each with its output, stays below it.
const MaxLine = 16 << 20

// encoderWindow is how far back zstd looks for repetitions. It also is what a
// reader has to keep in memory.
const encoderWindow = 1 << 20

// Writer appends lines to a record. Everything that Write has returned for is
// readable, whatever happens to the process afterwards. It may be used by
// several goroutines.
type Writer struct {
	types   *Lines
	mu      sync.Mutex
	out     io.Writer
	encoder *zstd.Encoder // nil: plain text
	file    *os.File      // nil: the destination is the caller's
	begun   bool
	closed  bool
	err     error
}

// Create is [Create] for these types of line.
func (l *Lines) Create(path string) (*Writer, error) {
	file, err := createFile(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{types: l, out: file, file: file}
	if strings.HasSuffix(path, ".zst") {
		if w.encoder, err = newEncoder(file); err != nil {
			return nil, errors.Join(fmt.Errorf("create record %s: %w", path, err), file.Close())
		}
	}
	return w, nil
}

// NewWriter is [NewWriter] for these types of line.
func (l *Lines) NewWriter(w io.Writer) *Writer {
	return &Writer{types: l, out: w}
}

// Write appends one line: the struct of one of the writer's types of line, or a
// pointer to one. It fills in the line's type, and the header's schema, itself;
// the caller's value is not changed. The header comes first, and once.
//
// When the destination fails, all that was written before stays readable, and
// this and every later call returns the same first error.
func (w *Writer) Write(line any) error {
	text, word, err := w.types.encode(line)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if err := w.admit(word); err != nil {
		return err
	}
	if err := w.append(text); err != nil {
		w.err = w.cutShort(err)
		return w.err
	}
	w.begun = true
	return nil
}

// Another lets a second record begin behind the one that was written.
func (w *Writer) Another() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = false
}

// Err returns the first error of the destination, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the record's compression and closes a file that Create made. It
// returns the writer's first error, so that a caller who looks nowhere else
// still learns that the record is cut short.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	w.closed = true
	// The end of a frame behind a block that is missing would make the block
	// look damaged instead of cut off, so a failed record gets none.
	if w.encoder != nil && w.err == nil {
		w.keep(w.encoder.Close())
	}
	if w.file != nil {
		w.keep(syncFile(w.file))
		w.keep(w.file.Close())
	}
	return w.err
}

// admit says whether a line of this type may come now.
func (w *Writer) admit(word Type) error {
	switch {
	case w.closed:
		return fmt.Errorf("write a %s line: the record is closed", word)
	case !w.begun && word != TypeHeader:
		return fmt.Errorf("write a %s line: a record begins with its header; write that first", word)
	case w.begun && word == TypeHeader:
		return errors.New("write a header line: the record has one already; a second run needs a record of its own")
	}
	return nil
}

// append hands a whole line to the destination at once, so that a process
// killed between two calls leaves no half line.
func (w *Writer) append(text []byte) error {
	if w.encoder == nil {
		n, err := w.out.Write(text)
		if err == nil && n < len(text) {
			err = io.ErrShortWrite
		}
		return err
	}
	if _, err := w.encoder.Write(text); err != nil {
		return err
	}
	return w.encoder.Flush()
}

// keep remembers the first error.
func (w *Writer) keep(err error) {
	if w.err == nil && err != nil {
		w.err = w.cutShort(err)
	}
}

// cutShort says what a failed write means for the record, and what to do where
// that is known. The system's error names the path.
func (w *Writer) cutShort(err error) error {
	what, kept := "the record could not be begun", ""
	if w.begun {
		what, kept = "the record is cut short", "; the lines before are kept"
	}
	advice := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		advice = ": free space, or write the record to another disk"
	case errors.Is(err, syscall.EIO):
		advice = ": the disk is failing (see dmesg), write the record to another one"
	}
	return fmt.Errorf("%s: %w%s%s", what, err, kept, advice)
}

// newEncoder compresses in the calling goroutine: what Flush has returned for
// is in the file, and no CPU is used beside a batch.
func newEncoder(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w,
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(encoderWindow),
		zstd.WithLowerEncoderMem(true))
}

func createFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600) // command lines are in it
	if err == nil {
		lock(file) // see AddLabels
		return file, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create record: %w; give a file in a folder that exists and can be written", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("create record: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("create record: %s is a folder; give the path of a file", path)
	case info.Mode().IsRegular():
		return nil, fmt.Errorf("create record: %s exists and is not overwritten; move it away or give another path", path)
	}
	if mode := info.Mode(); mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0 {
		return nil, fmt.Errorf("create record: %s is a disk; give the path of a file", path)
	}
	// A pipe or a character device holds no record that could be lost.
	if file, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		return nil, fmt.Errorf("create record: %w", err)
	}
	return file, nil
}

// syncFile makes the disk admit errors that it has put off. Pipes and devices
// cannot be synced, and need not be.
func syncFile(file *os.File) error {
	err := file.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}
