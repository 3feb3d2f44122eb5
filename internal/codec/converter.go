package codec

import (
	"context"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Secure makes a Temporal client write what only a key of the ring can read, the texts
// of failures included. With an empty ring it writes as ever, and what others have
// encrypted blocks a workflow instead of failing it.
func (r *Ring) Secure(options *client.Options) {
	options.DataConverter = r.DataConverter()
	options.FailureConverter = r.FailureConverter()
}

// DataConverter returns the default converter with the ring around it.
func (r *Ring) DataConverter() converter.DataConverter {
	return guarded{converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), r), r}
}

// FailureConverter returns the default one. With keys it also hides message and stack;
// the type of a failure, which is its class, stays readable.
func (r *Ring) FailureConverter() converter.FailureConverter {
	return temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: r.DataConverter(), EncodeCommonAttributes: r.HasKeys(),
	})
}

// guarded is a data converter that, inside a workflow, blocks the task on a payload
// that cannot be decrypted. An error would not do everywhere: the SDK drops a signal
// that does not decode, and with it somebody's wish to delete.
type guarded struct {
	converter.DataConverter
	codec converter.PayloadCodec
}

var (
	_ workflow.ContextAware                           = guarded{}
	_ converter.PayloadCodecProvider                  = guarded{}
	_ converter.DataConverterWithSerializationContext = guarded{}
)

// WithWorkflowContext is called by the SDK for everything that a workflow decodes.
func (g guarded) WithWorkflowContext(workflow.Context) converter.DataConverter { return blocking{g} }

// WithContext changes nothing: to an activity or a client an error says enough.
func (g guarded) WithContext(context.Context) converter.DataConverter { return g }

// WithSerializationContext changes nothing: the keys are the same for every workflow.
func (g guarded) WithSerializationContext(converter.SerializationContext) converter.DataConverter {
	return g
}

// Codec is how the SDK finds the codec through this wrapper.
func (g guarded) Codec() converter.PayloadCodec { return g.codec }

// blocking panics where guarded returns an error about a key. The SDK takes that for a
// failed task, whatever its policy for panics, and tries the task again.
type blocking struct{ guarded }

// WithWorkflowContext keeps it as it is.
func (b blocking) WithWorkflowContext(workflow.Context) converter.DataConverter { return b }

// WithSerializationContext keeps it as it is.
func (b blocking) WithSerializationContext(converter.SerializationContext) converter.DataConverter {
	return b
}

// FromPayload decodes one payload.
func (b blocking) FromPayload(p *common.Payload, to any) error {
	return orBlock(b.guarded.FromPayload(p, to))
}

// FromPayloads decodes a list of arguments.
func (b blocking) FromPayloads(p *common.Payloads, to ...any) error {
	return orBlock(b.guarded.FromPayloads(p, to...))
}

func orBlock(err error) error {
	if IsUnreadable(err) {
		panic(err)
	}
	return err
}
