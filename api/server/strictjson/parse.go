package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const jsonSpace = " \t\r\n"

// parse returns the one value in text, known to be valid JSON in valid UTF-8. Its
// errors give positions and never a character of the text, which may be a secret.
func parse(text []byte) (json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, malformed(text, invalidByte(text), "is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	var value json.RawMessage
	var syntax *json.SyntaxError
	switch err := dec.Decode(&value); {
	case errors.Is(err, io.EOF):
		return nil, &Error{Malformed, Root, "", "is empty"}
	case errors.As(err, &syntax):
		return nil, malformed(text, int(syntax.Offset)-1, "is not JSON")
	case err != nil:
		return nil, malformed(text, len(text), "ends too early")
	}
	if rest := bytes.TrimLeft(text[dec.InputOffset():], jsonSpace); len(rest) > 0 {
		return nil, malformed(text, len(text)-len(rest), "has something after the JSON value")
	}
	if at := loneSurrogate(text); at >= 0 {
		return nil, malformed(text, at, "holds half a character (a lone surrogate)")
	}
	return value, nil
}

func newDecoder(value json.RawMessage) *json.Decoder {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber() // a number is judged by its digits, not by what a float makes of it
	return dec
}

func malformed(text []byte, offset int, problem string) *Error {
	before := text[:min(max(offset, 0), len(text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return &Error{Malformed, Root, "", fmt.Sprintf("%s at line %d, column %d", problem, line, column)}
}

func invalidByte(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return len(text)
}

// loneSurrogate returns where valid JSON escapes half a UTF-16 pair, or -1.
// encoding/json would put U+FFFD there and so change what was sent.
func loneSurrogate(text []byte) int {
	for at := 0; at < len(text); at++ {
		if text[at] != '\\' {
			continue
		}
		first := escaped(text[at:])
		if !utf16.IsSurrogate(first) {
			at++ // the escaped character, which may be a backslash
			continue
		}
		const escape = len(`\u0000`)
		if utf16.DecodeRune(first, escaped(text[at+escape:])) == utf8.RuneError {
			return at
		}
		at += 2*escape - 1
	}
	return -1
}

// escaped returns the code unit of a \uXXXX at the start of text, or -1.
func escaped(text []byte) rune {
	const digits = 4
	if len(text) < 2+digits || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:2+digits]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
