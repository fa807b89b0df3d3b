/** The format of scenes: lists of command lines that run one after the other. `../kubectl.ts` describes the syntax. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * `reads`: both look at the namespace `shown` and nothing changes. `twins`: each has a namespace of its own, and they go
 * line by line together. `turns`: one runs the whole scene, what it made goes away, then the other runs it.
 */
export type Mode = 'reads' | 'twins' | 'turns'

const MODES: ReadonlySet<string> = new Set<Mode>(['reads', 'twins', 'turns'])

export interface Scene {
  readonly name: string
  readonly mode: Mode
  readonly lines: readonly string[]
}

/** A line taken apart, with the variables still in it. */
export interface Line {
  readonly text: string
  /** Upstream's kubectl runs the line on both sides; the outputs are not compared. */
  readonly prepares: boolean
  readonly env: Readonly<Record<string, string>>
  readonly args: readonly string[]
  readonly stdin?: { readonly file: string } | { readonly text: string }
  readonly stop?: Stop
}

/** Sent after so long. */
export interface Stop {
  readonly afterMs: number
  readonly signal: 'SIGINT' | 'SIGTERM'
}

const FOLDER = join(import.meta.dirname, 'lines')

/** The scenes of a file: `== name mode` begins one; without, the file is one scene of twins with the file's name. */
export async function scenesOf(file: string): Promise<Scene[]> {
  const text = await readFile(join(FOLDER, `${file}.txt`), 'utf8')
  const scenes: { name: string; mode: Mode; lines: string[] }[] = [{ name: file, mode: 'twins', lines: [] }]
  for (const line of text.split('\n')) {
    if (line.trim() === '' || line.startsWith('#')) continue
    if (line.startsWith('== ')) scenes.push(headingOf(file, line))
    else scenes.at(-1)?.lines.push(line)
  }
  return scenes.filter(({ lines }) => lines.length > 0)
}

function headingOf(file: string, line: string): { name: string; mode: Mode; lines: string[] } {
  const [, name = '', mode = 'twins'] = line.split(/\s+/)
  if (!MODES.has(mode)) throw new Error(`${file}.txt: ${line}: no such mode`)
  return { name: `${file}/${name}`, mode: mode as Mode, lines: [] }
}

/** Words with quotes as a shell has them; inside double ones a backslash keeps what follows. */
export function wordsOf(text: string): string[] {
  const words = text.match(/(?:[^\s'"]+|'[^']*'|"(?:[^"\\]|\\.)*")+/gs) ?? []
  return words.map((word) =>
    word.replaceAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"/gs, (_whole, single?: string, double?: string) =>
      single === undefined ? (double ?? '').replaceAll(/\\(["\\$])/g, '$1') : single,
    ),
  )
}

export function lineOf(written: string): Line {
  const prepares = written.startsWith('!')
  const text = prepares ? written.slice(1) : written
  const stop = /^@(\d+)ms(\/TERM)? /.exec(text)
  const words = wordsOf(stop === null ? text : text.slice(stop[0].length))
  const env: Record<string, string> = {}
  while (/^[A-Z_]+=/.test(words[0] ?? '')) {
    const [name = '', ...value] = (words.shift() ?? '').split('=')
    env[name] = value.join('=')
  }
  const redirect = words.findIndex((word) => word === '<' || word === '<<<')
  const [sign, given = ''] = redirect < 0 ? [] : words.splice(redirect)
  return {
    text,
    prepares,
    env,
    args: words,
    ...(sign === '<' && { stdin: { file: given } }),
    ...(sign === '<<<' && { stdin: { text: given } }),
    ...(stop !== null && { stop: { afterMs: Number(stop[1]), signal: stop[2] === undefined ? 'SIGINT' : 'SIGTERM' } }),
  }
}
