package probe

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

const (
	// answerLimit bounds the head and the body of the target's answer.
	answerLimit = 16 << 10
	// egressLimit is more than an address in JSON needs.
	egressLimit = 1 << 10
)

// ask makes one request as a client would, and reads the address that the target saw
// where it tells. A target that answers nothing is no fault of the proxy: TLS has
// proven the way already. It returns what to say about it.
func ask(conn io.ReadWriter, target Target) (netip.Addr, string) {
	_, err := io.WriteString(conn, "GET "+target.path()+" HTTP/1.1\r\nHost: "+hostHeader(target)+
		"\r\nUser-Agent: egressfleet-probe\r\nAccept: application/json, text/plain, */*\r\nConnection: close\r\n\r\n")
	if err != nil {
		return netip.Addr{}, "it took no request"
	}
	response, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, answerLimit)), nil)
	if err != nil {
		return netip.Addr{}, "it did not answer a request"
	}
	defer func() { _ = response.Body.Close() }()
	status := "it answered " + strconv.Itoa(response.StatusCode)
	if response.StatusCode != http.StatusOK {
		return netip.Addr{}, status
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, egressLimit)) // a part of it is no address
	return egressFrom(body), status
}

func hostHeader(target Target) string {
	if target.Port == habitualPort {
		return strings.TrimSuffix(target.Address(), ":"+strconv.Itoa(habitualPort))
	}
	return target.Address()
}

// egressFrom reads {"ip": "203.0.113.7"} or the address alone; anything else is none.
// Pure.
func egressFrom(body []byte) netip.Addr {
	text := strings.TrimSpace(string(body))
	var document struct {
		IP string `json:"ip"`
	}
	if json.Unmarshal(body, &document) == nil && document.IP != "" {
		text = document.IP
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Addr{}
	}
	return address.Unmap()
}
