package probe

import _ "embed"

//go:embed probe-amd64.elf
var program []byte
