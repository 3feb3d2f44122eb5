package server

import (
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/server/openapi"
)

// listAnswer is a 200 with a list of Proxies. It is written one Proxy after the other:
// what the generated answer would hold as one text is several times a large fleet's list.
type listAnswer openapi.ProxyList

func (l listAnswer) VisitListProxiesResponse(w http.ResponseWriter) error    { return l.write(w) }
func (l listAnswer) VisitListAllProxiesResponse(w http.ResponseWriter) error { return l.write(w) }

// write is what encoding/json would write of the whole.
func (l listAnswer) write(w http.ResponseWriter) error {
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(http.StatusOK)
	before := `{"items":[`
	if l.Continue != "" {
		token, err := json.Marshal(l.Continue)
		if err != nil {
			return err
		}
		before = `{"continue":` + string(token) + `,"items":[`
	}
	for _, p := range l.Items {
		item, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if _, err := w.Write(append([]byte(before), item...)); err != nil {
			return err
		}
		before = ","
	}
	if len(l.Items) > 0 {
		before = ""
	}
	_, err := w.Write([]byte(before + "]}\n"))
	return err
}
