package load

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"fortio.org/fortio/fhttp"
)

// buffer is the size in bytes of the answer buffer of fortio's client, and the largest answer.
// Unused pages take no memory.
const buffer = 128 << 10

// answer is the error in an answer, or "". fortio's client writes a whole answer, headers
// first. It accepts truncated and oversized answers.
type answer string

const (
	answerWhole   answer = ""
	answerCut     answer = "an answer that was cut off"
	answerLarge   answer = "an answer of more than 128 KiB"
	answerForeign answer = "an answer that is not HTTP"
	answerLength  answer = "an answer with an invalid length"
)

// Write judges an answer.
func (a *answer) Write(p []byte) (int, error) {
	*a = judge(p)
	return len(p), nil
}

func judge(p []byte) answer {
	const proto = "HTTP/"
	if !strings.HasPrefix(proto, string(p[:min(len(p), len(proto))])) || len(p) >= statusAt && strings.Trim(string(p[statusAt-3:statusAt]), "0123456789") != "" {
		return answerForeign
	}
	if len(p) >= buffer {
		return answerLarge
	}
	end := bytes.Index(p, []byte("\r\n\r\n"))
	if end < 0 {
		return answerCut
	}
	headers, body := p[:end+2], p[end+4:]
	if found, at := fhttp.FoldFind(headers, []byte("\r\ncontent-length:")); found {
		switch n := fhttp.ParseDecimal(headers[at+len("\r\ncontent-length:"):]); {
		case n < 0:
			return answerLength
		case int64(len(body)) < n:
			return answerCut
		}
		return answerWhole
	}
	if found, _ := fhttp.FoldFind(headers, []byte("\r\ntransfer-encoding: chunked")); found && !bytes.HasSuffix(body, []byte("0\r\n\r\n")) {
		return answerCut
	}
	return answerWhole
}

const statusAt = 12 // length of "HTTP/1.1 200", which fortio's client reads first

// wrong returns the reason why an answer is a failure. It returns "" for a good answer, and
// for a failure whose reason is in fortio's log. fortio treats a malformed status as an
// error of the connection and does not log it.
func (a answer) wrong(code int) string {
	if a == answerForeign {
		return string(a)
	}
	if code == fhttp.SocketError {
		return ""
	}
	if code/100 != 2 {
		return strings.TrimSpace(fmt.Sprintf("status %d %s", code, http.StatusText(code)))
	}
	return string(a)
}
