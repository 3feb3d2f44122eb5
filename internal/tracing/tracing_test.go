package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/egressfleet/egressfleet/internal/tracing"
	"github.com/egressfleet/egressfleet/testsuite/workflowenv"
)

func TestTracesAreMadeWhereTheVariablesSaySo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"nothing is set":                    {nil, false},
		"an endpoint":                       {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}, true},
		"an endpoint for traces":            {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}, true},
		"an exporter":                       {map[string]string{"OTEL_TRACES_EXPORTER": "console"}, true},
		"another signal's endpoint is none": {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://a"}, false},
		"none, whatever the endpoint": {
			map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}, false,
		},
		"the SDK is disabled, as a word may": {
			map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_TRACES_EXPORTER": "otlp"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, tracing.Wanted(func(key string) string { return c.env[key] }))
		})
	}
}

func TestNothingIsMadeWithoutTraces(t *testing.T) {
	t.Parallel()
	traces, err := tracing.Open(t.Context(), tracing.Options{Getenv: func(string) string { return "" }})
	require.NoError(t, err)
	require.Nil(t, traces)
	asks, does, err := traces.Interceptors(tracing.TemporalOptions{})
	require.NoError(t, err)
	require.Nil(t, asks)
	require.Nil(t, does)
	_, span := traces.Requests().Tracer("").Start(t.Context(), "a")
	require.False(t, span.SpanContext().IsValid())
	require.NoError(t, traces.Close(t.Context()))
}

func recorded(t *testing.T) (*tracing.Traces, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	traces, err := tracing.New(t.Context(), "test", sdktrace.WithSpanProcessor(spans))
	require.NoError(t, err)
	return traces, spans
}

func TestWorkBeginsNoTrace(t *testing.T) {
	t.Parallel()
	traces, spans := recorded(t)
	ctx, none := traces.Work().Tracer("").Start(t.Context(), "a sweep")
	none.End()
	require.Equal(t, t.Context(), ctx)
	require.Empty(t, spans.Ended())
	ctx, request := traces.Requests().Tracer("").Start(t.Context(), "a request")
	_, call := traces.Work().Tracer("").Start(ctx, "a call")
	call.End()
	require.Equal(t, request.SpanContext().SpanID(), spans.Ended()[0].Parent().SpanID())
}

// activities of the workflow below: each fails as its name says.
func looks() error { return temporal.NewNonRetryableApplicationError("secret words", "NotFound", nil) }

func creates() error {
	return temporal.NewNonRetryableApplicationError("secret words", "Permanent", nil)
}
func watches() error { return nil }
func lives(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 1e9})
	for _, name := range []string{"looks", "creates", "watches"} {
		_ = workflow.ExecuteActivity(ctx, name).Get(ctx, nil)
	}
	_ = workflow.Sleep(ctx, 16*60*1e9)
	_ = workflow.ExecuteActivity(ctx, "looks").Get(ctx, nil)
	return nil
}

// live runs the workflow with a header of a span, or without.
func live(t *testing.T, asked bool) (names map[string]sdktrace.ReadOnlySpan, request string) {
	t.Helper()
	traces, spans := recorded(t)
	ctx, root := traces.Requests().Tracer("").Start(t.Context(), "request")
	asks, does, err := traces.Interceptors(tracing.TemporalOptions{
		Background: []string{"watches"},
		Expected: func(err error) bool {
			app, ok := errors.AsType[*temporal.ApplicationError](err)
			return ok && app.Type() == "NotFound"
		},
	})
	require.NoError(t, err)
	env := workflowenv.New()
	env.SetWorkerOptions(workflowenv.Options(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		asks.(interceptor.WorkerInterceptor), does,
	}}))
	if asked {
		header, err := tracing.Header(ctx)
		require.NoError(t, err)
		env.SetHeader(header)
	}
	env.RegisterWorkflow(lives)
	env.RegisterActivity(looks)
	env.RegisterActivity(creates)
	env.RegisterActivity(watches)
	env.ExecuteWorkflow(lives)
	require.NoError(t, env.GetWorkflowError())
	names = map[string]sdktrace.ReadOnlySpan{}
	for _, span := range spans.Ended() {
		require.NotContains(t, names, span.Name(), "each once")
		names[span.Name()] = span
	}
	return names, root.SpanContext().SpanID().String()
}

func TestWhatAWorkflowDoesIsBelowWhatAskedForIt(t *testing.T) {
	t.Parallel()
	spans, request := live(t, true)
	for _, name := range []string{"RunWorkflow:lives", "StartActivity:looks", "StartActivity:creates"} {
		require.Contains(t, spans, name)
		require.Equal(t, request, spans[name].Parent().SpanID().String(), name)
	}
	require.Equal(t, spans["StartActivity:looks"].SpanContext().SpanID(), spans["RunActivity:looks"].Parent().SpanID())
	require.Len(t, spans, 5, "neither what watches, nor what is done a quarter of an hour later")
}

func TestNotFoundIsAnAnswerAndNoErrorTellsItsText(t *testing.T) {
	t.Parallel()
	spans, _ := live(t, true)
	require.Equal(t, codes.Unset, spans["RunActivity:looks"].Status().Code)
	require.Equal(t, sdktrace.Status{Code: codes.Error}, spans["RunActivity:creates"].Status())
	require.Empty(t, spans["RunActivity:creates"].Events())
}

// speaks and says write a line each.
func says(ctx context.Context) error {
	activity.GetLogger(ctx).Info("by the activity")
	return nil
}

func speaks(ctx workflow.Context) error {
	workflow.GetLogger(ctx).Info("by the workflow")
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 1e9})
	return workflow.ExecuteActivity(ctx, "says").Get(ctx, nil)
}

func TestLinesOfWorkflowsAndActivitiesNameTheirTrace(t *testing.T) {
	t.Parallel()
	traces, spans := recorded(t)
	ctx, root := traces.Requests().Tracer("").Start(t.Context(), "request")
	asks, does, err := traces.Interceptors(tracing.TemporalOptions{})
	require.NoError(t, err)
	var lines bytes.Buffer
	env := workflowenv.New(func(suite *testsuite.WorkflowTestSuite) {
		suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(&lines, nil))))
	})
	env.SetWorkerOptions(workflowenv.Options(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		asks.(interceptor.WorkerInterceptor), does,
	}}))
	header, err := tracing.Header(ctx)
	require.NoError(t, err)
	env.SetHeader(header)
	env.RegisterWorkflow(speaks)
	env.RegisterActivity(says)
	env.ExecuteWorkflow(speaks)
	require.NoError(t, env.GetWorkflowError())
	of := map[string]string{"by the workflow": root.SpanContext().SpanID().String()}
	for _, span := range spans.Ended() {
		if span.Name() == "RunActivity:says" {
			of["by the activity"] = span.SpanContext().SpanID().String()
		}
	}
	for who, span := range of {
		require.Regexp(t, `msg="`+who+`".* traceID=`+root.SpanContext().TraceID().String()+" spanID="+span, lines.String())
	}
	require.Len(t, of, 2)
}

func TestAWorkflowThatNobodyAskedForHasNoSpans(t *testing.T) {
	t.Parallel()
	spans, _ := live(t, false)
	require.Empty(t, spans)
}
