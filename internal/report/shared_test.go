package report

import (
	"errors"
	"flag"
	"math"
	"reflect"
)

var update = flag.Bool("update", false, "write the golden files anew")

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("no space left")

// nans makes a float of the value no number at all, wherever there is one.
func nans(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(math.NaN())
	case reflect.Pointer:
		if !v.IsNil() {
			nans(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			nans(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				nans(v.Field(i))
			}
		}
	}
}
