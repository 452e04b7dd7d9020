package hbase

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
)

// complaints is gohbase's log handler. gohbase logs as errors what it then
// retries, often for ever: here that is kept for the error that ends the
// retries, and logged at debug level.
type complaints struct {
	slog.Handler
	last *atomic.Pointer[string]
}

func newComplaints(log *slog.Logger) *complaints {
	return &complaints{Handler: log.Handler(), last: new(atomic.Pointer[string])}
}

// Enabled lets errors pass whatever the level of the log is: they are kept.
func (c *complaints) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || c.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle keeps errors and lowers every record to the debug level.
func (c *complaints) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "err" || a.Key == "error" {
				text += ": " + shortError(a.Value.String())
			}
			return true
		})
		c.last.Store(&text)
	}
	r.Level = slog.LevelDebug
	if !c.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs keeps the wrapper around the derived handler.
func (c *complaints) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &complaints{c.Handler.WithAttrs(attrs), c.last}
}

// WithGroup keeps the wrapper around the derived handler.
func (c *complaints) WithGroup(name string) slog.Handler {
	return &complaints{c.Handler.WithGroup(name), c.last}
}

// text is what was complained about last, or "".
func (c *complaints) text() string {
	if s := c.last.Load(); s != nil && !strings.Contains(*s, "client is closed") {
		return *s
	}
	return ""
}
