package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/egressfleet/egressfleet/api/server/strictjson"
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/starter/fleet"
)

// problemOf returns what a client is told about an error. What it does not know is
// a fault of ours, and its text stays in the log.
func problemOf(c echo.Context, err error) *problem {
	var known *problem
	if errors.As(err, &known) {
		return known
	}
	for _, of := range []func(echo.Context, error) *problem{inputProblem, routeProblem, fleetProblem} {
		if found := of(c, err); found != nil {
			return found
		}
	}
	return &problem{kind: internalFault, detail: "the server failed; its log says why"}
}

func inputProblem(_ echo.Context, err error) *problem {
	var field *v1.FieldError
	var text *strictjson.Error
	switch {
	case errors.As(err, &field):
		return &problem{invalidField, field.Field, field.Value, field.Problem}
	case !errors.As(err, &text):
		return nil
	case text.Kind == strictjson.Malformed:
		return &problem{kind: malformedRequest, detail: "the body " + text.Problem}
	default:
		return &problem{jsonKinds[text.Kind], text.Field, text.Value, text.Problem}
	}
}

var jsonKinds = map[strictjson.Kind]kind{
	strictjson.Duplicate:  duplicateField,
	strictjson.Unknown:    unknownField,
	strictjson.WrongType:  wrongType,
	strictjson.OutOfRange: invalidField,
}

func fleetProblem(c echo.Context, err error) *problem {
	var against *fleet.ConflictError
	switch {
	case errors.As(err, &against) && against.IsPrecondition():
		return &problem{preconditionFailed, against.Field, against.Value, against.Problem}
	case errors.As(err, &against):
		return &problem{conflict, against.Field, against.Value, against.Problem}
	case errors.Is(err, fleet.ErrConflict):
		return &problem{kind: conflict, detail: "the Proxy that is there does not allow it"}
	case errors.Is(err, fleet.ErrNotFound):
		return &problem{
			notFound, "metadata.name", c.Param("name"),
			fmt.Sprintf("is not a Proxy of namespace %q, or is gone", c.Param("namespace")),
		}
	case errors.Is(err, fleet.ErrNoWorker):
		return &problem{kind: unavailable, detail: "no worker answers; " + again(c)}
	case errors.Is(err, fleet.ErrUnavailable):
		return &problem{kind: unavailable, detail: "Temporal cannot be reached; " + again(c)}
	case errors.Is(err, context.DeadlineExceeded), c.Request().Context().Err() != nil:
		return &problem{kind: unavailable, detail: "Temporal did not answer in time; " + again(c)}
	default:
		return nil
	}
}

// again says what became of a request that nobody answered: a wish may have reached
// Temporal, where a worker finds it later.
func again(c echo.Context) string {
	r := c.Request()
	switch {
	case r.Method == http.MethodGet:
		return "try again"
	case r.Method != http.MethodPost:
		return "what was asked may stand already, and asking again is harmless"
	case r.Header.Get(idempotencyKey) != "":
		return "what was asked may stand already, and asking again with the same " + idempotencyKey + " is harmless"
	default:
		return "what was asked may stand already; read the Proxy before asking again"
	}
}

// routeProblem is about what echo and the generated code refuse by themselves.
func routeProblem(c echo.Context, err error) *problem {
	var refused *echo.HTTPError
	if !errors.As(err, &refused) {
		return nil
	}
	switch refused.Code {
	case http.StatusNotFound:
		return &problem{kind: noSuchRoute, detail: "there is nothing at this path"}
	case http.StatusMethodNotAllowed:
		return &problem{
			methodNotAllowed, "method", c.Request().Method,
			"is not one of " + c.Response().Header().Get(echo.HeaderAllow),
		}
	case http.StatusBadRequest:
		return &problem{kind: malformedRequest, detail: "a parameter cannot be read"}
	default:
		return nil
	}
}
