/** What a shell is told: choices, and how to complete with them. The numbers are cobra's, which all its scripts know. */

export interface Answer {
  /** Each perhaps with a tab and what it means. */
  readonly choices: readonly string[]
  readonly directive: number
}

/** Each a bit; none: the shell does what it does by itself, which is to look for files. */
export const DEFAULT = 0
/** More is to follow without a blank. */
export const NO_SPACE = 2
/** Never files. */
export const NO_FILES = 4
/** The choices are endings of files. */
export const EXTENSIONS = 8

const NAMES = ['Error', 'NoSpace', 'NoFileComp', 'FilterFileExt', 'FilterDirs', 'KeepOrder']

/** For people who look at what a shell would be told. */
export function directiveText(directive: number): string {
  const names = NAMES.filter((_, bit) => (directive & (1 << bit)) !== 0)
  return (names.length === 0 ? ['Default'] : names).map((name) => `ShellCompDirective${name}`).join(', ')
}

export function withoutFiles(choices: readonly string[]): Answer {
  return { choices, directive: NO_FILES }
}

/** As it is printed: one line each, the directive last. */
export function answerText({ choices, directive }: Answer, isDescribed: boolean): string {
  const lines = choices.map((choice) => {
    const [first = ''] = (isDescribed ? choice : (choice.split('\t')[0] ?? '')).split('\n')
    return first.trim()
  })
  return [...lines, `:${directive}`].map((line) => `${line}\n`).join('')
}
