package providers

import "io"

// Unwrapper is what a decorator implements, so that As can see through it.
type Unwrapper interface {
	Unwrap() Provider
}

// As finds an optional interface anywhere in a stack of decorators. A plain type
// assertion only sees the outermost one.
func As[T any](p Provider) (T, bool) {
	for p != nil {
		if t, ok := p.(T); ok {
			return t, true
		}
		u, ok := p.(Unwrapper)
		if !ok {
			break
		}
		p = u.Unwrap()
	}
	var none T
	return none, false
}

// Close closes a provider that is an io.Closer, once its calls have ended.
func Close(p Provider) error {
	if c, ok := As[io.Closer](p); ok {
		return c.Close()
	}
	return nil
}
