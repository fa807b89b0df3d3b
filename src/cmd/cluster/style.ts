/** Styles for terminals; without a terminal or with NO_COLOR the text is plain. */
import type { ProgramContext } from '#lib/program.ts'

export interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
}

/** The start and end codes of each style. */
const CODES = { bold: [1, 22], dim: [2, 22], good: [32, 39], bad: [31, 39] } as const

/** Only a terminal has a width. */
export function styleFor({ columns }: ProgramContext['stdout'], { NO_COLOR = '' }: ProgramContext['env']): Style {
  const isPlain = columns === undefined || NO_COLOR !== ''
  const styled =
    (name: keyof typeof CODES) =>
    (text: string): string =>
      isPlain ? text : `\u001B[${CODES[name][0]}m${text}\u001B[${CODES[name][1]}m`
  return { bold: styled('bold'), dim: styled('dim'), good: styled('good'), bad: styled('bad') }
}
