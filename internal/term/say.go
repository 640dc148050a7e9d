package term

import "context"

type sayer struct{}

// WithSayer returns a context in which [Say] passes on what long work waits for.
func WithSayer(ctx context.Context, say func(text string)) context.Context {
	return context.WithValue(ctx, sayer{}, say)
}

// Say tells a person what is waited for, where the context has a way to.
func Say(ctx context.Context, text string) {
	if say, _ := ctx.Value(sayer{}).(func(string)); say != nil {
		say(Clean(text))
	}
}
