/**
 * Derives the behavior of a simulated container from its command: `sleep 5`, `exit 1`, `true`, `echo` and shell lists
 * of them. Any other command counts as a server that runs until it is stopped. Pure.
 */

/** Output and duration of a program, relative to its start. */
export interface Script {
  readonly lines: readonly ScriptLine[]
  /** Infinity: until it is stopped. */
  readonly runMs: number
  readonly exitCode: number
  /** Lines that repeat after the others. */
  readonly repeated?: { readonly lines: readonly ScriptLine[]; readonly everyMs: number }
}

export interface ScriptLine {
  readonly afterMs: number
  readonly text: string
}

const SHELLS = /^(?:\/(?:usr\/)?bin\/)?(?:ba|da|a|z|k)?sh$/
/** Programs that succeed at once. */
const QUICK: ReadonlySet<string> = new Set(
  ': [ awk basename cat cd chmod chown cp cut date df dirname du env export find grep head hostname id ln ls mkdir mktemp mv printenv ps pwd rm sed seq set shift sort stat tail tee test touch tr trap true ulimit umask uname uniq unset wc which whoami'.split(
    ' ',
  ),
)
/** Longer scripts are not parsed. */
const MAX_LENGTH = 16_384

/** Undefined when the behavior is unknown. */
export function readScript(command: readonly string[] = [], args: readonly string[] = []): Script | undefined {
  const words = [...command, ...args]
  const [program = ''] = words
  if (command.length === 0 || program === '') return undefined
  const flags = SHELLS.test(program) ? words.findIndex((word, at) => at > 0 && /^-\w*c$/.test(word)) : -1
  if (flags < 0) return runScript([{ words, joint: ';' }])
  const text = words[flags + 1] ?? ''
  if (text.length > MAX_LENGTH) return undefined
  return readShell(text)
}

/** A program with its arguments, and the operator before it. */
interface Command {
  readonly words: readonly string[]
  readonly joint: ';' | '&&' | '||'
}

function readShell(text: string): Script | undefined {
  const loop = /^([^]*?)\bwhile\s+(?:true|:|\[ 1 \])\s*[;\n]\s*do\b([^]*)\bdone\s*;?\s*$/.exec(text)
  if (loop === null) {
    const commands = splitCommands(text)
    return commands === undefined ? undefined : runScript(commands)
  }
  const [before, body] = [splitCommands(loop[1] ?? ''), splitCommands(loop[2] ?? '')]
  if (before === undefined || body === undefined) return undefined
  const [first, repeated] = [runScript(before), runScript(body)]
  if (first === undefined || repeated === undefined) return undefined
  if (repeated.runMs === Infinity || endsItself(body)) return first.runMs === Infinity ? first : follow(first, repeated)
  const everyMs = Math.max(repeated.runMs, 1000)
  const lines = repeated.lines.map(({ afterMs, text: line }) => ({ afterMs: first.runMs + afterMs, text: line }))
  return { lines: first.lines, runMs: Infinity, exitCode: 0, repeated: { lines, everyMs } }
}

const endsItself = (commands: readonly Command[]): boolean => commands.some(({ words }) => words[0] === 'exit')

function follow(first: Script, second: Script): Script {
  const lines = second.lines.map(({ afterMs, text }) => ({ afterMs: first.runMs + afterMs, text }))
  return { lines: [...first.lines, ...lines], runMs: first.runMs + second.runMs, exitCode: second.exitCode }
}

const TOKEN = /\s*(?:(\n|;|&&|\|\||[|&<>(){}])|((?:'[^']*'|"(?:\\[^]|[^"\\])*"|\\[^]|[^\s;&|<>(){}'"\\])+))/y
const WORD_PART = /'([^']*)'|"((?:\\[^]|[^"\\])*)"|\\([^])|([^'"\\]+)/g

/** Undefined for syntax beyond a list of programs. */
function splitCommands(text: string): Command[] | undefined {
  const commands: Command[] = []
  let words: string[] = []
  let joint: Command['joint'] = ';'
  const finish = (next: Command['joint']): void => {
    if (words.length > 0) commands.push({ words, joint })
    words = []
    joint = next
  }
  TOKEN.lastIndex = 0
  const trimmed = text.trim()
  while (TOKEN.lastIndex < trimmed.length) {
    const [, mark, word] = TOKEN.exec(trimmed) ?? []
    if (mark === undefined && word === undefined) return undefined
    if (word !== undefined) words.push(unquote(word))
    else if (mark === '>') TOKEN.lastIndex = skipWord(trimmed, TOKEN.lastIndex)
    else if (mark === '&&' || mark === '||') finish(mark)
    else if (mark === ';' || mark === '\n') finish(';')
    else return undefined
  }
  finish(';')
  return commands
}

/** Redirections are ignored. */
function skipWord(text: string, from: number): number {
  const rest = /^>?&?\s*[^\s;&|]*/.exec(text.slice(from))
  return from + (rest?.[0].length ?? 0)
}

function unquote(word: string): string {
  const parts = Array.from(word.matchAll(WORD_PART), ([, single, double, escaped, plain]) => {
    return single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped ?? plain ?? ''
  })
  return parts.join('')
}

function runScript(commands: readonly Command[]): Script | undefined {
  const lines: ScriptLine[] = []
  let [atMs, status] = [0, 0]
  for (const { words, joint } of commands) {
    if ((joint === '&&' && status !== 0) || (joint === '||' && status === 0)) continue
    const step = runProgram(words[0] === 'exec' ? words.slice(1) : words)
    if (step === undefined) return commands.length === 1 ? undefined : { lines, runMs: Infinity, exitCode: 0 }
    if (step.line !== undefined) lines.push({ afterMs: atMs, text: step.line })
    atMs += step.tookMs
    status = step.status
    if (step.isLast || atMs === Infinity) break
  }
  return { lines, runMs: atMs, exitCode: status }
}

interface Step {
  readonly tookMs: number
  readonly status: number
  readonly line?: string
  readonly isLast?: boolean
}

function runProgram([path = '', ...args]: readonly string[]): Step | undefined {
  const program = path.replace(/^.*\//, '')
  if (program === 'sleep') return { tookMs: sleepMs(args), status: 0 }
  if (program === 'exit') return { tookMs: 0, status: Number(args[0] ?? 0) & 255, isLast: true }
  if (program === 'false') return { tookMs: 0, status: 1 }
  if (program === 'echo' || program === 'printf') return { tookMs: 0, status: 0, line: outputOf(program, args) }
  return QUICK.has(program) || /^\w+=/.test(path) ? { tookMs: 0, status: 0 } : undefined
}

function outputOf(program: string, args: readonly string[]): string {
  const words = args.filter((word, at) => !(at === 0 && /^-[neE]+$/.test(word)))
  return words.join(' ').replace(program === 'printf' ? /\\n$/ : /(?!)/, '')
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function sleepMs(args: readonly string[]): number {
  return args.reduce((sum, arg) => {
    const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(arg) ?? []
    return amount === undefined ? Infinity : sum + Number(amount) * (UNIT_MS[unit || 's'] ?? 1000)
  }, 0)
}
