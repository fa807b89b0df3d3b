/** Reads flannel's `net-conf.json` for `flanneld` and for `up`, whose nodes include flannel. */
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { type NetConf, NetConfError, parseNetConf } from '#network/flannel/net-conf.ts'

/** Throws ProgramError. */
export function readNetConf(context: Pick<ProgramContext, 'readFile'>, path: string): Promise<NetConf> {
  return readNetConfAs(context, path, parseNetConf)
}

/** Throws ProgramError. */
export async function readNetConfAs<T>(
  { readFile }: Pick<ProgramContext, 'readFile'>,
  path: string,
  parse: (text: string) => T,
): Promise<T> {
  try {
    return parse(await readFile(path))
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new ProgramError(`failed to read net conf: there is no file ${path}`, { cause })
    if (cause instanceof NetConfError) throw new ProgramError(`error parsing subnet config: ${message}`, { cause })
    throw cause
  }
}
