package option

import "fmt"

// Stored is an option in a record.
type Stored struct {
	Key   string // in a plan
	Value []byte // JSON
	Help  string
}

// Stored returns the options of a set that a record has, in the order of declaration.
func (s *Set) Stored() (all []Stored, err error) {
	for _, o := range s.options {
		if o.key == "" || o.omitEmpty && o.empty() {
			continue
		}
		value, err := o.json()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.key, err)
		}
		all = append(all, Stored{o.key, value, o.help})
	}
	return all, nil
}
