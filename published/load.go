package published

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// maxSize is what a file can have at most.
const maxSize = 1 << 20

// fileName is what the file of a publication is called in a folder of its own.
const fileName = "report.json"

// Names are those of the publications that come with tare.
func Names() []string {
	files, err := fs.Glob(shipped, "*/"+fileName)
	if err != nil {
		return nil // the pattern is ours
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = path.Dir(file)
	}
	return names
}

// Load reads a publication: one that comes with tare, as NAME or
// published/NAME, or else the file at a path, or the one in a folder. A record
// is not one, and the error says so.
func Load(name string) (*Report, error) {
	short := strings.TrimPrefix(path.Clean(filepath.ToSlash(name)), "published/")
	if text, err := shipped.ReadFile(path.Join(short, fileName)); err == nil {
		return Parse(name, text)
	}
	file := name
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		file = filepath.Join(name, fileName)
	}
	text, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("published figures %q: there is no such file; with tare come: published/%s", name, strings.Join(Names(), ", published/"))
	}
	if err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	return Parse(file, text)
}

func read(file string) ([]byte, error) {
	info, err := os.Stat(file) // opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	return io.ReadAll(io.LimitReader(f, maxSize+1))
}

// Parse reads a publication; name is for errors.
func Parse(name string, text []byte) (*Report, error) {
	if isRecord(text) {
		return nil, fmt.Errorf("%s is a record: tare compare A B sets records beside each other", name)
	}
	if len(text) > maxSize {
		return nil, fmt.Errorf("%s is larger than 1 MiB: it is no file of published figures", name)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	r := new(Report)
	if err := decoder.Decode(r); err != nil {
		var v struct{ Version int }
		if json.Unmarshal(text, &v) == nil && v.Version > Version {
			return nil, fmt.Errorf("%s has version %d of the form: this tare reads %d, use a later one", name, v.Version, Version)
		}
		return nil, fmt.Errorf("%s does not hold published figures: %w; published/isulad-2020/report.json is an example", name, err)
	}
	if decoder.More() {
		return nil, fmt.Errorf("%s holds more than one publication: give each a file of its own", name)
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.ofALifecycle()
	return r, nil
}

// ofALifecycle says of a publication of operations what is akin to them.
func (r *Report) ofALifecycle() {
	if r.Experiment != "" {
		return
	}
	r.Experiment = "lifecycle"
	for i := range r.Tables {
		t := &r.Tables[i]
		t.Ours = Ours{Quantity: "trimmed-mean", Unit: r.Unit, Labels: map[string]string{"lanes": strconv.Itoa(t.Lanes)}}
		for j := range t.Rows {
			t.Rows[j].Labels = map[string]string{"op": t.Rows[j].Op}
		}
	}
}

// isRecord knows a record by its first line, or by the magic of zstd.
func isRecord(text []byte) bool {
	if bytes.HasPrefix(text, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return true
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var first struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(line, &first) == nil && first.Type == "header"
}
