package lane

import _ "embed"

//go:embed lane-amd64.elf
var program []byte
