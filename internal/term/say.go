package term

import "context"

type sayer struct{}

// WithSayer returns a context in which [Say] calls a function.
func WithSayer(ctx context.Context, say func(text string)) context.Context {
	return context.WithValue(ctx, sayer{}, say)
}

// Say passes a text to the function of WithSayer, if the context has one.
func Say(ctx context.Context, text string) {
	if say, _ := ctx.Value(sayer{}).(func(string)); say != nil {
		say(Clean(text))
	}
}
