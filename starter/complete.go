package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

// completeWithin is how long a shell waits for a name that is being typed.
const completeWithin = 3 * time.Second

const completionHelp = `Print a script that completes commands, flags, and the names of proxies and namespaces.

bash, with the package bash-completion:
  source <(starter completion bash)
zsh, after compinit:
  source <(starter completion zsh)
fish:
  starter completion fish | source

In a start file of the shell, the line holds for every shell. Names come from the fleet as
it is; where it cannot be reached, nothing is offered.`

func (a *app) completionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "completion {bash|zsh|fish}", Short: "Print a script that completes names in a shell", Long: completionHelp,
		Args: exactly(1), ValidArgs: []string{"bash", "zsh", "fish"}, DisableFlagsInUseLine: true,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch root := cmd.Root(); args[0] {
		case "bash":
			return root.GenBashCompletionV2(a.Out, true)
		case "zsh":
			return root.GenZshCompletion(a.Out)
		case "fish":
			return root.GenFishCompletion(a.Out, true)
		default:
			return usagef("%s: %q is neither bash, zsh nor fish", cmd.CommandPath(), args[0])
		}
	}
	return cmd
}

// completeNames completes the names of proxies that are not there yet on the line.
func (a *app) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, p := range a.listed(cmd.Context(), a.namespace) {
		if !slices.Contains(args, p.Metadata.Name) {
			names = append(names, p.Metadata.Name+"\t"+string(p.Status.Phase)+" at "+p.Spec.Provider)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeOneName(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(cmd, args, typed)
}

// completeWords completes what each Proxy of the whole fleet has one of.
func (a *app) completeWords(of func(v1.Proxy) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		words := map[string]bool{}
		for _, p := range a.listed(cmd.Context(), "") {
			words[of(p)] = true
		}
		return slices.Sorted(maps.Keys(words)), cobra.ShellCompDirectiveNoFileComp
	}
}

// listed is silent: what is printed here would land in somebody's command line.
func (a *app) listed(ctx context.Context, namespace string) []v1.Proxy {
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	f, done, err := a.Connect(ctx, a.temporal)
	if err != nil {
		return nil
	}
	defer done()
	proxies, err := f.List(ctx, namespace)
	if err != nil {
		return nil
	}
	return proxies
}

// complete says what the flags of all commands take.
func (a *app) complete(root *cobra.Command) error {
	namespaces := a.completeWords(func(p v1.Proxy) string { return p.Metadata.Namespace })
	if err := root.RegisterFlagCompletionFunc("namespace", namespaces); err != nil {
		return err
	}
	forms := cobra.FixedCompletions(outputs(), cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc("output", forms); err != nil {
		return err
	}
	providers := a.completeWords(func(p v1.Proxy) string { return p.Spec.Provider })
	return a.completeProviders(root, providers)
}

// completeProviders goes through all commands: many have a flag for providers.
func (a *app) completeProviders(cmd *cobra.Command, providers cobra.CompletionFunc) error {
	if cmd.Flags().Lookup("provider") != nil {
		if err := cmd.RegisterFlagCompletionFunc("provider", providers); err != nil {
			return err
		}
	}
	for _, sub := range cmd.Commands() {
		if err := a.completeProviders(sub, providers); err != nil {
			return err
		}
	}
	return nil
}
