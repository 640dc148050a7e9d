package option

import "fmt"

// Stored is an option as stored in a record.
type Stored struct {
	Key   string // key in a plan
	Value []byte // JSON
	Help  string
}

// Stored returns the options of a set that are stored in a record, in order of declaration.
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
