package job

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// String gives [redacted]; a conversion string(s) gives the secret itself.
func (s Secret) String() string { return redacted }

// GoString gives [redacted].
func (s Secret) GoString() string { return redacted }

// Format writes [redacted] whatever the verb, %d and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue logs [redacted].
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText encodes [redacted], for YAML and XML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON encodes "[redacted]".
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
