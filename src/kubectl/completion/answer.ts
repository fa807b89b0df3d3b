/**
 * The type of a completion answer: choices and a directive. The directive numbers are cobra's, which its shell scripts
 * use.
 */

export interface Answer {
  /** Each choice may have a tab and a description. */
  readonly choices: readonly string[]
  readonly directive: number
}

/** A bit mask; 0 leaves completion to the shell, which completes file names. */
export const DEFAULT = 0
/** Do not add a space after the choice. */
export const NO_SPACE = 2
/** Do not complete file names. */
export const NO_FILES = 4
/** The choices are file extensions. */
export const EXTENSIONS = 8

const NAMES = ['Error', 'NoSpace', 'NoFileComp', 'FilterFileExt', 'FilterDirs', 'KeepOrder']

/** The names of directives, for people who read standard error. */
export function directiveText(directive: number): string {
  const names = NAMES.filter((_, bit) => (directive & (1 << bit)) !== 0)
  return (names.length === 0 ? ['Default'] : names).map((name) => `ShellCompDirective${name}`).join(', ')
}

export function withoutFiles(choices: readonly string[]): Answer {
  return { choices, directive: NO_FILES }
}

/** The printed form: one choice a line, the directive last. */
export function answerText({ choices, directive }: Answer, isDescribed: boolean): string {
  const lines = choices.map((choice) => {
    const [first = ''] = (isDescribed ? choice : (choice.split('\t')[0] ?? '')).split('\n')
    return first.trim()
  })
  return [...lines, `:${directive}`].map((line) => `${line}\n`).join('')
}
