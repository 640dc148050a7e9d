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

// MaxLine is the maximum length of a line in bytes. It is enough for a batch of a thousand failed
// lanes with their output.
const MaxLine = 16 << 20

// encoderWindow is the window in which zstd searches for repetitions. A reader needs the same
// amount of memory.
const encoderWindow = 1 << 20

// Writer appends lines to a record. A line is readable once Write has returned, even if the
// process is killed. Writer is safe for concurrent use.
type Writer struct {
	types   *Lines
	mu      sync.Mutex
	out     io.Writer
	encoder *zstd.Encoder // nil: plain text
	file    *os.File      // nil if the caller owns the destination
	begun   bool
	closed  bool
	err     error
}

// Create is [Create] for the line types in l.
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

// NewWriter is [NewWriter] for the line types in l.
func (l *Lines) NewWriter(w io.Writer) *Writer {
	return &Writer{types: l, out: w}
}

// Write appends a line. line is a struct of one of the writer's line types, or a pointer to one.
// Write sets the type of the line and the schema of the header without modifying the caller's value.
// The header must be the first line, and the only header.
//
// If writing to the destination fails, all earlier lines stay readable, and all later calls return
// the same error.
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
	return w.append(text)
}

// Another allows the next line to be the header of another record.
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

// Close finishes the compression and closes a file opened by Create. It returns the first error of
// the writer, so checking the error of Close is sufficient.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	w.closed = true
	// Do not end the frame after an error: with a missing block, the record would look damaged
	// instead of cut off.
	if w.encoder != nil && w.err == nil {
		w.keep(w.encoder.Close())
	}
	if w.file != nil {
		w.keep(syncFile(w.file))
		unlock(w.file)
		w.keep(w.file.Close())
	}
	return w.err
}

// admit returns an error if a line of this type is not allowed at this point.
func (w *Writer) admit(word Type) error {
	switch {
	case w.closed:
		return fmt.Errorf("write a %s line: the record is closed", word)
	case !w.begun && word != TypeHeader:
		return fmt.Errorf("write a %s line: a record begins with its header; write that first", word)
	case w.begun && word == TypeHeader:
		return errors.New("write a header line: the record has one already; write a second run to another record")
	}
	return nil
}

// append writes a whole line in a single call, so being killed between calls leaves no incomplete
// line.
func (w *Writer) append(text []byte) error {
	var err error
	if w.encoder == nil {
		_, err = w.out.Write(text)
	} else if _, err = w.encoder.Write(text); err == nil {
		err = w.encoder.Flush()
	}
	if w.keep(err); err != nil {
		return w.err
	}
	w.begun = true
	return nil
}

// keep stores the first error.
func (w *Writer) keep(err error) {
	if w.err == nil && err != nil {
		w.err = w.cutShort(err)
	}
}

// cutShort adds the consequence for the record and advice to a write error. The system error
// contains the path.
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

// newEncoder returns an encoder that compresses in the calling goroutine. After Flush all text is in
// the file, and the encoder uses no CPU time during a batch.
func newEncoder(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w,
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(encoderWindow),
		zstd.WithLowerEncoderMem(true))
}

func createFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600) // private, because it contains command lines
	if err == nil {
		lock(file) // see AddLabels
		return file, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create record: %w; give a file in an existing, writable folder", err)
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
	// Writing to a pipe or a character device cannot overwrite a record.
	if file, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		return nil, fmt.Errorf("create record: %w", err)
	}
	return file, nil
}

// syncFile returns delayed write errors of the disk. It ignores that pipes and devices cannot be synced.
func syncFile(file *os.File) error {
	err := file.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}
