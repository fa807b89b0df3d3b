/** Runs iptables, legacy or nft. Scripts contain the caller's chains only; other chains stay unchanged. */
import { type ChildProcess, execFile, type ExecFileException, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export type IptablesFamily = 'IPv4' | 'IPv6'

export type IptablesTable = 'mangle' | 'nat' | 'filter'

export class IptablesError extends Error {
  override readonly name = 'IptablesError'
  /** `missing`: there is no such program. `refused`: all other errors. */
  readonly code: 'missing' | 'refused'

  constructor(code: IptablesError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export interface IptablesOptions {
  readonly family: IptablesFamily
  /** Put before the programs, as in `ip netns exec <name>`. */
  readonly within?: readonly string[]
}

/** The wait for the iptables lock, as upstream. */
const WAIT = ['-w', '5']
/** The maximum length of an error text, because errors of a long script are long. */
const MAX_ERROR_CHARS = 2_000

/** Applies a script of `iptables-restore`, each table of it in one transaction, beside what is there. Throws IptablesError. */
export async function restoreIptables(script: string, options: IptablesOptions): Promise<void> {
  await run('-restore', [...WAIT, '--noflush', '--counters'], { ...options, input: script })
}

/** The lines of a table that are wanted, of however many; in the format of `iptables-save`. Throws IptablesError. */
export async function saveIptables(
  table: IptablesTable,
  isWanted: (line: string) => boolean,
  options: IptablesOptions,
): Promise<string[]> {
  const [program, ...args] = commandOf('-save', ['-t', table], options)
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = `${output}${text}`.slice(0, MAX_ERROR_CHARS)
  })
  const ended = once(child, 'close')
  const lines: string[] = []
  try {
    for await (const line of createInterface({ input: child.stdout })) if (isWanted(line)) lines.push(line)
    const [code] = (await ended) as [number | null]
    if (code === 0) return lines
  } catch (error) {
    throw refusal(program, error as ExecFileException, output)
  }
  throw new IptablesError('refused', `${program}: ${output.trim()}`)
}

/** The rules of one chain; undefined if it does not exist. Throws IptablesError if that cannot be determined. */
export async function listIptables(
  table: IptablesTable,
  chain: string,
  options: IptablesOptions,
): Promise<string | undefined> {
  try {
    return await run('', [...WAIT, '-t', table, '-S', chain], options)
  } catch (error) {
    if (
      error instanceof IptablesError &&
      /No chain|does a matching rule exist|No such file|is incompatible/i.test(error.message)
    )
      return undefined
    throw error
  }
}

/** As it says itself, such as `1.8.9`. Throws IptablesError. */
export async function iptablesVersion(options: IptablesOptions): Promise<string> {
  return /v(\d+(?:\.\d+)*)/.exec(await run('', ['--version'], options))?.[1] ?? ''
}

function commandOf(
  suffix: '' | '-save' | '-restore',
  args: readonly string[],
  { family, within = [] }: IptablesOptions,
): [program: string, ...args: string[]] {
  const program = `${family === 'IPv4' ? 'iptables' : 'ip6tables'}${suffix}`
  const [first = program, ...rest] = [...within, program, ...args]
  return [first, ...rest]
}

function run(
  suffix: '' | '-save' | '-restore',
  wanted: readonly string[],
  options: IptablesOptions & { readonly input?: string },
): Promise<string> {
  const [program, ...args] = commandOf(suffix, wanted, options)
  return new Promise((resolve, reject) => {
    const child: ChildProcess = execFile(program, args, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(refusal(program, error, stderr))
    })
    // It may have ended before it read all: the outcome above says why.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(options.input ?? '')
  })
}

function refusal(program: string, error: ExecFileException, stderr: string): IptablesError {
  const cause = { cause: error }
  if (error.code === 'ENOENT')
    return new IptablesError(
      'missing',
      `There is no ${program} on this machine (Debian: apt-get install iptables)`,
      cause,
    )
  const output = stderr.trim().slice(0, MAX_ERROR_CHARS)
  return new IptablesError('refused', `${program}: ${output === '' ? error.message : output}`, cause)
}
