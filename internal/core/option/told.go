package option

import "fmt"

// Told is an option as a reader meets it: its key in a plan, its value in JSON, and what
// it is for.
type Told struct {
	Key   string
	Value []byte
	Help  string
}

// Tell tells those of a set that a record holds, in the order in which they are declared.
func (s *Set) Tell() (all []Told, err error) {
	for _, o := range s.options {
		if o.key == "" || o.omitEmpty && o.empty() {
			continue
		}
		value, err := o.json()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.key, err)
		}
		all = append(all, Told{o.key, value, o.help})
	}
	return all, nil
}
