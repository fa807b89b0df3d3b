/**
 * Lists the accepted differences between our kubectl and upstream's, each with its reason. A complete run fails if a
 * listed difference no longer occurs.
 */

export interface Listed {
  /** Of the line as it is written. */
  readonly lines: RegExp
  readonly reason: string
}

export const LISTED: readonly Listed[] = [
  {
    lines: /^__completeNoDesc options/,
    reason: 'upstream writes what is for people to standard output there, and to standard error everywhere else',
  },
  {
    lines: /^__completeNoDesc config -/,
    reason: 'the same flags in another order: upstream has --kubeconfig once more for config',
  },
  { lines: /^kuberc view <<< n$/, reason: 'upstream panics when nobody wants the file that it offers' },
  {
    lines: /^bad(?:flag|value) --kuberc/,
    reason: 'upstream names the file that it runs from where it means the alias',
  },
  { lines: /^-v=1 /, reason: 'upstream logs the feature gates of its client library' },
  {
    lines: /^completion bash --(?:request-timeout|context)=/,
    reason: 'the script for the shell is our own; what it completes is what upstream completes',
  },
  {
    lines: /^set selector .*--context=nosuch$/,
    reason: 'upstream says twice, in different words, that the context is not there; ours says it once',
  },
  {
    lines: /^set image -f \$M\/dep\.yaml --local/,
    reason: 'with --local upstream refuses a file whose image is a boolean (`y`); ours looks for the container first',
  },
  { lines: /^options --help$/, reason: 'upstream has no help for options: it prints the options' },
]
