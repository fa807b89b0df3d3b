/**
 * Runs nft. A script is one transaction, applied completely or not at all. Scripts contain the caller's tables only.
 */
import { type ChildProcess, execFile, type ExecFileException } from 'node:child_process'

/** Families that have addresses of one kind, and the one that has both. */
export type NftFamily = 'ip' | 'ip6' | 'inet'

/** A thing of `nft -j`: one member, named after its type (`table`, `chain`, `rule`, `set`, `map`). */
export type NftObject = Readonly<Record<string, unknown>>

export class NftError extends Error {
  override readonly name = 'NftError'
  /** `missing`: there is no such program. `absent`: the named object does not exist. `refused`: all other errors. */
  readonly code: 'missing' | 'absent' | 'refused'

  constructor(code: NftError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export interface NftOptions {
  /** The program; default: `nft` where the environment finds it. */
  readonly program?: string
  /** Put before it, as in `ip netns exec <name>`. */
  readonly within?: readonly string[]
}

/** Rules of many thousands of services, listed. */
const MOST_BYTES = 512 * 1024 * 1024
/** The maximum length of an error text, because errors of a long script are long. */
const MAX_ERROR_CHARS = 2_000

/** Applies a script in one transaction. Throws NftError. */
export async function applyNft(script: string, options: NftOptions = {}): Promise<void> {
  await run(['-f', '-'], script, options)
}

/**
 * The content of the table, in nft's order; undefined if it does not exist. `terse`: without the elements of sets and
 * maps, of which there may be very many.
 */
export async function listNftTable(
  family: NftFamily,
  table: string,
  { terse = false, ...options }: NftOptions & { readonly terse?: boolean } = {},
): Promise<readonly NftObject[] | undefined> {
  const args = ['-j', ...(terse ? ['-t'] : []), 'list', 'table', family, table]
  try {
    const { nftables } = JSON.parse(await run(args, '', options)) as { readonly nftables: readonly NftObject[] }
    return nftables.filter((one) => !('metainfo' in one))
  } catch (error) {
    if (error instanceof NftError && error.code === 'absent') return undefined
    throw error
  }
}

/** Lists what the commands ask for, as text; undefined when any of it is not there. */
export async function listNft(commands: readonly string[], options: NftOptions = {}): Promise<string | undefined> {
  try {
    return await run(['-f', '-'], `${commands.join('\n')}\n`, options)
  } catch (error) {
    if (error instanceof NftError && error.code === 'absent') return undefined
    throw error
  }
}

/** Names of the tables of all families: `ip kube-proxy`. */
export async function listNftTables(options: NftOptions = {}): Promise<readonly string[]> {
  const lines = (await run(['list', 'tables'], '', options)).split('\n')
  return lines.flatMap((line) => (line.startsWith('table ') ? [line.slice('table '.length).trim()] : []))
}

/** The script that replaces a table by these chains in one transaction. */
export function replacingTable(family: NftFamily, table: string, chains: readonly string[]): string {
  const named = `table ${family} ${table}`
  return [`add ${named}`, `delete ${named}`, `${named} {`, ...chains, '}', ''].join('\n')
}

/** Harmless where there is none. */
export async function deleteNftTable(family: NftFamily, table: string, options: NftOptions = {}): Promise<void> {
  // Made first, because one that is not there cannot be deleted.
  await applyNft(`add table ${family} ${table}\ndelete table ${family} ${table}\n`, options)
}

function run(args: readonly string[], input: string, { program = 'nft', within = [] }: NftOptions): Promise<string> {
  const [first = program, ...rest] = [...within, program, ...args]
  return new Promise((resolve, reject) => {
    const child: ChildProcess = execFile(first, rest, { maxBuffer: MOST_BYTES }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(refusal(error, stderr))
    })
    // It may have ended before it read all: the outcome above says why.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })
}

function refusal(error: ExecFileException, stderr: string): NftError {
  const cause = { cause: error }
  if (error.code === 'ENOENT')
    return new NftError('missing', 'There is no nft on this machine (Debian: apt-get install nftables)', cause)
  const errorText = stderr.trim().slice(0, MAX_ERROR_CHARS)
  const isAbsent = errorText.includes('No such file or directory')
  return new NftError(isAbsent ? 'absent' : 'refused', `nft: ${errorText === '' ? error.message : errorText}`, cause)
}
